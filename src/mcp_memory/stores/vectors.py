"""Where vectors are kept between runs: in the database, or in a small one beside a file of another format.

A vector is derived from its text, so losing it costs a moment of computing. It is written in small
transactions, and a file beside (`<file>-vectors`) may be deleted at any time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp_memory.stores.sqlite.queries import Queries, read_sql
from mcp_memory.stores.sqlite.sidefile import SideFile
from mcp_memory.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    import apsw

    from mcp_memory.stores.store import Store
    from mcp_memory.stores.usage import Place

SQL = Queries("vectors")
SUFFIX = "-vectors"
# Keys looked up while others may wait for the file.
AT_ONCE = 512


class KeptVectors:
    """The vectors of one space between runs."""

    def __init__(self, place: Place, may_write: bool = True) -> None:
        self._place = place
        self._may_write = may_write

    def find(self, stamp: str, keys: Sequence[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for start in range(0, len(keys), AT_ONCE):
            with self._place.reading() as connection:
                if connection is None or (model := _model(connection, stamp)) is None:
                    break
                for key in keys[start : start + AT_ONCE]:
                    vector = connection.execute(SQL.find, (model, key)).get
                    if vector is not None:
                        found[key] = vector
        return found

    def keep(self, stamp: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        if not self._may_write:
            return
        with self._place.writing() as connection:
            model = _model(connection, stamp)
            if model is None:
                if not _is_there(connection):
                    connection.execute(read_sql("schema", "vectors.sql"))
                connection.execute(SQL.add_model, (stamp,))
                model = _model(connection, stamp)
            connection.executemany(SQL.keep, [(model, key, vector) for key, vector in vectors])

    def models(self) -> dict[str, int]:
        """The stamps there are, and how many vectors of each."""
        with self._place.reading() as connection:
            if connection is None or not _is_there(connection):
                return {}
            return dict(connection.execute(SQL.models))


def _is_there(connection: apsw.Connection) -> bool:
    return bool(connection.execute(SQL.is_there).get)


def _model(connection: apsw.Connection, stamp: str) -> int | None:
    found: int | None = connection.execute(SQL.model, (stamp,)).get if _is_there(connection) else None
    return found


def vectors_of(store: Store, may_write: bool = True) -> KeptVectors:
    """The vectors of what this store holds."""
    if isinstance(store, SqliteStore):
        return KeptVectors(store.guest, may_write)
    path: str = store.path  # type: ignore[attr-defined]  # every store of ours has one file
    return KeptVectors(SideFile(path + SUFFIX), may_write)
