"""The packed graph beside the database, `<file>-graph`: what makes a large space resident at once.

It is derived, and may be deleted at any time. Whether it belongs to this history is told by the entry
it ends with: the same number, time and content in the same space. The file is mapped, never read."""

from __future__ import annotations

import logging
import mmap
import os
import zlib
from collections.abc import Callable
from typing import BinaryIO

import apsw

from mcp_memory.base import Base, read_header
from mcp_memory.packing import Packer
from mcp_memory.sections import no_pause
from mcp_memory.stores.derived import whole
from mcp_memory.stores.sqlite import loading
from mcp_memory.stores.sqlite.queries import Queries

log = logging.getLogger("mcp_memory")
FEED = Queries("feed")

# Below this many entities the tables are read as fast as a map would be opened.
LARGE = 5000
# Above this many a graph is packed into the file and not into memory: a million take 300 MB.
HUGE = 200_000


class Snapshot:
    """The one snapshot of a database."""

    def __init__(self, database: str) -> None:
        self.path = database + "-graph"

    def read(self, connection: apsw.Connection) -> Base | None:
        """The packed graph, if there is one and this history goes on from it."""
        try:
            with open(self.path, "rb") as file:
                buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # none, or empty
            return None
        header = read_header(buffer)
        if header is None or header.origin != origin(connection, header.counts.seq):
            return None
        return Base(buffer, header)

    def write(self, connection: apsw.Connection, pause: Callable[[], None] = no_pause) -> int | None:
        """Pack the tables as this connection sees them, words included; the entry they stand at, or None.

        `pause` is called often, and may end it by raising."""
        try:
            with whole(self.path) as file:
                return self._write(file, connection, pause)
        except OSError as error:
            # A full disk, or (on Windows) a reader that has the old one mapped: the next moment will do.
            log.debug("no snapshot of %s: %s", self.path, error)
            return None

    def _write(self, file: BinaryIO, connection: apsw.Connection, pause: Callable[[], None]) -> int:
        from tempfile import TemporaryFile

        def scratch() -> BinaryIO:
            return TemporaryFile(dir=os.path.dirname(self.path))

        with connection:  # one moment, however long it takes
            seq = int(connection.execute(FEED.projected).get)
            packer = Packer(with_words=True, file=file, pause=pause, scratch=scratch)
            loading.pack(connection, origin(connection, seq), packer)
        return seq


def origin(connection: apsw.Connection, seq: int) -> str:
    """What no other history has at this entry."""
    for at, body in connection.execute(FEED.entry, (seq,)):
        space = connection.execute(FEED.space_id).get
        return f"{space} {seq} {at} {zlib.crc32(body)}"
    return f"nothing at {seq}"  # an empty feed has no snapshot worth reading
