"""numpy, loaded when the first vector is needed and told to keep to one thread.

Law: nothing else in the package imports numpy before this did, or it may come up with a thread for each core.
Those threads spin between products: measured here on small matrices they gain nothing and take a core from
the server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float32]]"

# What the libraries that numpy may be built on are called by: OpenBLAS, Accelerate, MKL.
THREADS = ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "MKL_NUM_THREADS")


_module: list[Any] = []  # once it is there: it is asked for many times in a search


def has_numpy() -> bool:
    """Can there be vectors at all? Without numpy (mcp-memory-slim) everything goes by words."""
    return sys.modules.get("numpy") is not None or find_spec("numpy") is not None


def numpy() -> Any:
    """The module. A number of threads that the user has chosen is left as it is."""
    if not _module:
        for variable in THREADS:
            os.environ.setdefault(variable, "1")
        import numpy as module

        _module.append(module)
    return _module[0]


Scan = Callable[[Any, Any], Any]
_scan: list[Scan] = []


def scanner() -> Scan:
    """What multiplies one row of bytes with many: 32-bit floats come out.

    numkong does it as fast as memory is read. Where it cannot be had, numpy does it in blocks, ten times slower."""
    if not _scan:
        np = numpy()
        try:
            import numkong
        except ImportError:
            _scan.append(_scan_in_blocks)
        else:

            def scan(row: Any, rows: Any) -> Any:
                return np.asarray(numkong.cdist(row[None], rows, "dot"), np.float32)[0] if len(rows) else np.zeros(0)

            _scan.append(scan)
    return _scan[0]


BLOCK = 4096


def _scan_in_blocks(row: Any, rows: Any) -> Any:
    np = numpy()
    out = np.empty(len(rows), np.float32)
    wide = row.astype(np.float32)
    for start in range(0, len(rows), BLOCK):
        out[start : start + BLOCK] = rows[start : start + BLOCK].astype(np.float32) @ wide
    return out
