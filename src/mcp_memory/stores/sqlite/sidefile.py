"""A small database beside a memory file of another format, for what that format has no place for.

It knows entities by name, because ids of plain files live only as long as a process. Opened for a moment
at a time; deleting it costs no fact."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import apsw

from mcp_memory.stores.sqlite.connection import plain_words
from mcp_memory.stores.sqlite.schema import documented

BUSY_MILLISECONDS = 2000
# The documented tables that are about usage, and those they lean on.
TABLES = {
    "db_metadata",
    "entity_access",
    "entity_access_log",
    "co_occurrences",
    "search_events",
    "search_results",
    "implicit_feedback",
}
OWN = (
    "CREATE TABLE IF NOT EXISTS entities (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE IF NOT EXISTS space_state (key TEXT PRIMARY KEY, value INTEGER NOT NULL)",
)


class SideFile:
    """The database at this path, which is made when something is first written to it."""

    has_vectors = False  # those who ask with SQL ask a database

    def __init__(self, path: str) -> None:
        self.path = path
        self._metadata: tuple[object, dict[str, str]] = (None, {})  # and when it was read

    @property
    def wants_endings(self) -> bool:
        return os.path.exists(self.path)

    def mark(self) -> object:
        """Another thing when others wrote."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def metadata(self) -> dict[str, str]:
        """What stands in db_metadata now: read again when somebody wrote."""
        from mcp_memory.stores.sqlite.usage import metadata

        mark = self.mark()
        if mark != self._metadata[0]:
            with self.reading() as connection:
                self._metadata = (mark, {} if connection is None else metadata(connection))
        return self._metadata[1]

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection | None]:
        if not os.path.exists(self.path):
            yield None
            return
        with plain_words(self.path):
            connection = self._readable()
            try:
                with connection:
                    # Somebody may have made the file a moment ago and be about to commit its tables.
                    yield connection if "entities" in _names(connection) else None
            finally:
                connection.close()

    def _readable(self) -> apsw.Connection:
        """A connection that reads; where a process was killed while it wrote, the half is taken back first."""
        connection = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            try:
                _names(connection)
            except apsw.ReadOnlyError:  # only who may write can take it back
                connection.close()
                connection = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE)
                connection.set_busy_timeout(BUSY_MILLISECONDS)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """A connection inside a transaction, committed at the end."""
        with plain_words(self.path):
            connection = apsw.Connection(self.path)
            try:
                connection.set_busy_timeout(BUSY_MILLISECONDS)
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("begin immediate")
                _bring_tables(connection)
                yield connection
                connection.execute("commit")
            finally:
                connection.close()  # an open transaction ends with its connection, undone

    def bring(self, connection: apsw.Connection, names: Sequence[str]) -> None:
        connection.executemany("insert or ignore into entities (name) values (?)", [(name,) for name in names])


def _names(connection: apsw.Connection) -> set[str]:
    return {name for (name,) in connection.execute("select name from sqlite_master")}


def _bring_tables(connection: apsw.Connection) -> None:
    if "entities" not in _names(connection):
        for statement in OWN:
            connection.execute(statement)
        for piece in documented():
            table = piece.sql.partition(" ON ")[2].partition("(")[0].strip() if piece.kind == "index" else piece.name
            if table in TABLES:
                connection.execute(piece.sql)
