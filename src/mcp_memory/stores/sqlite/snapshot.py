"""The packed graph beside the database, `<file>-graph`: what makes a large space resident at once.

It is derived, and may be deleted at any time. Whether it belongs to this history is told by the entry
it ends with: the same number, time and content in the same space. The file is mapped, never read."""

from __future__ import annotations

import logging
import mmap
import os
import zlib
from contextlib import suppress

import apsw

from mcp_memory.base import Base, decode_header_of, is_intact
from mcp_memory.stores.sqlite import loading
from mcp_memory.stores.sqlite.queries import Queries

log = logging.getLogger("mcp_memory")
FEED = Queries("feed")

# Below this many entities the tables are read as fast as a map would be opened.
LARGE = 5000


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
        if not is_intact(buffer):
            return None
        header = decode_header_of(buffer)
        if header.origin != origin(connection, header.counts.seq):
            return None
        return Base(buffer)

    def write(self, connection: apsw.Connection) -> int:
        """Pack the tables as this connection sees them, words included; the entry they stand at."""
        with connection:  # one moment, however long it takes
            seq = connection.execute(FEED.projected).get
            packed = loading.pack(connection, origin(connection, seq), with_words=True)
        beside = f"{self.path}.{os.getpid()}.tmp"
        try:
            with open(beside, "wb") as file:
                file.write(packed)
                file.flush()
                os.fsync(file.fileno())  # a power cut must not leave the name of a whole one on a part
            os.replace(beside, self.path)
        except OSError as error:
            # A full disk, or (on Windows) a reader that has the old one mapped: the next moment will do.
            log.debug("no snapshot of %s: %s", self.path, error)
            with suppress(OSError):
                os.unlink(beside)
        return int(seq)


def origin(connection: apsw.Connection, seq: int) -> str:
    """What no other history has at this entry."""
    for at, body in connection.execute(FEED.entry, (seq,)):
        space = connection.execute(FEED.space_id).get
        return f"{space} {seq} {at} {zlib.crc32(body)}"
    return f"nothing at {seq}"  # an empty feed has no snapshot worth reading
