"""numpy, loaded when the first vector is needed and told to keep to one thread.

Law: nothing else in the package imports numpy before this did, or it may come up with a thread for each core.
Those threads spin between products: measured here on small matrices they gain nothing and take a core from
the server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float32]]"

# What the libraries that numpy may be built on are called by: OpenBLAS, Accelerate, MKL.
THREADS = ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "MKL_NUM_THREADS")


def numpy() -> Any:
    """The module. A number of threads that the user has chosen is left as it is."""
    for variable in THREADS:
        os.environ.setdefault(variable, "1")
    import numpy as module

    return module
