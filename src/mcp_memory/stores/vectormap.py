"""Rows of vectors as a file that is mapped, never read: a large space has its index at once.

Derived, and may be deleted at any time. A row carries the key of its text, so an old file is not wrong, only less
useful; one of another model, or that is not whole, is passed over."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from mcp_memory.embedding.numerics import numpy
from mcp_memory.search.matrix import Table
from mcp_memory.stores.derived import whole

log = logging.getLogger("mcp_memory")

MAGIC = b"MCPMEM vectors 1\n"
HEADER = 4096


class Header(msgspec.Struct):
    """What the rows are, and how many."""

    stamp: str
    dimension: int
    rows: int


class VectorMap:
    """The one file of a memory."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self, stamp: str, dimension: int) -> Table | None:
        """The rows, if the file is whole and of this model. Altering what is mapped alters this process's copy."""
        try:
            with open(self.path, "rb") as file:
                start, size = file.read(HEADER), os.fstat(file.fileno()).st_size
            header = msgspec.json.decode(start.removeprefix(MAGIC).rstrip(b"\0"), type=Header)
        except (OSError, msgspec.DecodeError):
            return None
        parts = _parts(header)
        if not start.startswith(MAGIC) or (header.stamp, header.dimension) != (stamp, dimension) or not header.rows:
            return None
        if size != parts[-1][0] + parts[-1][1].itemsize * header.rows * parts[-1][2]:
            return None
        np = numpy()
        return Table(
            *(
                np.memmap(self.path, kind, "c", at, (header.rows, width) if width > 1 else (header.rows,))
                for at, kind, width in parts
            )
        )

    def write(self, stamp: str, dimension: int, rows: int, pieces: Iterator[Callable[[], Any]]) -> None:
        header = msgspec.json.encode(Header(stamp, dimension, rows))
        try:
            with whole(self.path) as file:
                file.write((MAGIC + header).ljust(HEADER, b"\0"))
                for piece in pieces:
                    file.write(piece().data)
        except OSError as error:
            # A full disk, or (on Windows) a process that has the old one mapped: another time will do.
            log.debug("no map of vectors: %s", error)

    def remove(self) -> None:
        with suppress(OSError):
            os.unlink(self.path)


def _parts(header: Header) -> list[tuple[int, Any, int]]:
    """Where each column begins, of what kind its numbers are, and how many stand in a row."""
    np = numpy()
    columns = [(np.int64, 1)] * 3 + [(np.float32, 1), (np.int8, header.dimension), (np.float16, header.dimension)]
    parts, at = [], HEADER
    for kind, width in columns:
        parts.append((at, np.dtype(kind), width))
        at += np.dtype(kind).itemsize * width * header.rows
    return parts
