"""numpy, loaded when the first vector is needed and told to keep to one thread.

Law: nothing else in the package imports numpy before this did, or it may come up with a thread for each core.
Those threads spin between products: measured here on small matrices they gain nothing and take a core from
the server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from math import inf
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


# Of so many values at a time the highest is looked for first: to part all of 40,000 takes ten times as long.
HIGHEST_OF = 64


def highest(values: Any, most: int, above: float = -inf) -> Any:
    """The places of so many highest values, in no order; of those above this."""
    np = numpy()
    if most <= 0:
        return np.zeros(0, np.int64)
    lowest, blocks = above, len(values) // HIGHEST_OF
    if blocks > 2 * most:
        # So many blocks hold something as high as the lowest of their maxima: what is lower is not among the highest.
        maxima = values[: blocks * HIGHEST_OF].reshape(blocks, HIGHEST_OF).max(axis=1)
        lowest = float(np.partition(maxima, blocks - most)[blocks - most])
    found = np.flatnonzero(values >= lowest if lowest > above else values > above)
    if len(found) <= most:
        return found
    return found[np.argpartition(values[found], len(found) - most)[len(found) - most :]]
