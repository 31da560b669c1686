"""The packed passages of a large database beside it, `<file>-passages`: what lets a fresh process search at once.

Derived, and may be deleted at any time. They are those of one entry of the feed, and belong to a graph that stands
on nothing newer: what was changed after the graph's base is packed again. The file is mapped; one that is not whole,
or was made by other rules, is passed over."""

from __future__ import annotations

import logging
import mmap
import sys
import unicodedata
import zlib
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mcp_memory.embedding.numerics import numpy
from mcp_memory.stores.derived import whole
from mcp_memory.stores.sqlite.snapshot import origin
from mcp_memory.stores.sqlite.store import LeftOff, SqliteStore

if TYPE_CHECKING:
    from mcp_memory.graph import Graph
    from mcp_memory.search.passages import Passages
    from mcp_memory.stores.store import Store

log = logging.getLogger("mcp_memory")

SUFFIX = "-passages"
# Fewer are packed in a tenth of a second.
LARGE = 5000
VERSION = 1
# Magic, the size of the header behind it, and the CRC32 of all that follows.
PREAMBLE = Struct("<8s2Q")
MAGIC = b"MCPPASS1"
ALIGNMENT = 64
PIECE = 1 << 20  # what is written between two looks at who waits


class Column(NamedTuple):
    name: str
    dtype: str
    length: int


class Header(msgspec.Struct):
    rules: str
    origin: str
    seq: int
    columns: list[Column]
    notes: tuple[Any, ...]


class KeptPassages:
    """The passages of one database between two processes."""

    def __init__(self, store: SqliteStore, may_write: bool) -> None:
        self.path = store.path + SUFFIX
        self._store = store
        self._may_write = may_write

    def load(self, graph: Graph) -> Passages | None:
        """Those of this graph, or of the same one earlier, but not before its base. For whoever holds it."""
        try:
            with open(self.path, "rb") as file:
                buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # none, or empty
            return None
        header, start = _header(buffer)
        if header is None or header.rules != rules() or not graph.base_seq <= header.seq <= graph.seq:
            return None
        with self._store.guest.reading() as connection:
            if header.origin != origin(connection, header.seq):
                return None
        from mcp_memory.search.passages import Notes, Passages

        np, columns = numpy(), {}
        for name, dtype, length in header.columns:
            start += -start % ALIGNMENT
            columns[name] = np.frombuffer(buffer, dtype, length, start)
            start += columns[name].nbytes
        return Passages.of(Notes(*header.notes), columns)

    def keep(self, passages: Passages, seq: int) -> None:
        """Write them: whole or not at all."""
        if not self._may_write or len(passages) < LARGE:
            return
        with self._store.guest.reading() as connection:
            where = origin(connection, seq)
        notes, arrays = passages.parts()
        columns = [Column(name, array.dtype.str, len(array)) for name, array in arrays.items()]
        header = msgspec.msgpack.encode(Header(rules(), where, seq, columns, tuple(notes)))
        try:
            with whole(self.path) as file:
                file.write(bytes(PREAMBLE.size))
                crc, at = 0, PREAMBLE.size

                def put(part: Any) -> None:
                    nonlocal crc, at
                    crc, at = zlib.crc32(part, crc), at + len(part)
                    file.write(part)
                    self._store.give_way()

                put(header)
                for array in arrays.values():
                    put(bytes(-at % ALIGNMENT))
                    column = memoryview(array).cast("B") if len(array) else b""
                    for start in range(0, len(column), PIECE):
                        put(column[start : start + PIECE])
                file.seek(0)
                file.write(PREAMBLE.pack(MAGIC, len(header), crc))
        except (OSError, LeftOff) as error:
            # A full disk, the end, or (on Windows) a process that has the old one mapped: another time will do.
            log.debug("passages are not kept: %s", error)


def _header(buffer: mmap.mmap) -> tuple[Header | None, int]:
    """The header, if all of the file is as it was written, and where the columns begin."""
    if len(buffer) < PREAMBLE.size:
        return None, 0
    magic, size, crc = PREAMBLE.unpack_from(buffer)
    start = PREAMBLE.size + size
    with memoryview(buffer) as view:
        if magic != MAGIC or start > len(view) or zlib.crc32(view[PREAMBLE.size :]) != crc:
            return None, 0
        try:
            return msgspec.msgpack.decode(view[PREAMBLE.size : start], type=Header), start
        except msgspec.DecodeError:
            return None, 0


def rules() -> str:
    """What passages are made by: others are made of the same facts by another version, stemmer or alphabet."""
    import Stemmer

    from mcp_memory import __version__
    from mcp_memory.search import passages
    from mcp_memory.search.stopwords import STOP_WORDS

    weights = (passages.NEIGHBOURS, passages.NAME_WEIGHT, passages.WRITTEN, passages.SPEAKS_FOR_ITSELF)
    parts = (VERSION, __version__, Stemmer.version(), unicodedata.unidata_version, sys.byteorder, weights)
    return f"{parts} {zlib.crc32(' '.join(sorted(STOP_WORDS)).encode())}"


def passages_of(store: Store, may_write: bool) -> KeptPassages | None:
    """Where the passages of this store are kept, if they are."""
    return KeptPassages(store, may_write) if isinstance(store, SqliteStore) else None
