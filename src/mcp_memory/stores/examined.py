"""Up to which observation duplicates were looked for: one number in the database, so that nothing is looked at
twice and nothing is forgotten when a process ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_memory.stores.sqlite.queries import Queries
from mcp_memory.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from mcp_memory.stores.sqlite.guest import Guest
    from mcp_memory.stores.store import Store

SQL = Queries("examined")


class Examined:
    """The number, between runs."""

    def __init__(self, place: Guest) -> None:
        self._place = place

    def load(self) -> int | None:
        """The id of the last observation that was looked at; None where nobody ever wrote it down."""
        with self._place.reading() as connection:
            found: int | None = connection.execute(SQL.last).get
            return found

    def save(self, last: int) -> None:
        with self._place.writing() as connection:
            connection.execute(SQL.reach, (last,))


def examined_of(store: Store) -> Examined | None:
    """Where this store keeps it; None for one that has no place for flags."""
    return Examined(store.guest) if isinstance(store, SqliteStore) else None
