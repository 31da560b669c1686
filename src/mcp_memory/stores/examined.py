"""How far duplicates were looked for: a few numbers in the database, so that nothing is looked at twice and nothing
is forgotten when a process ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.stores.sqlite.queries import Queries
from mcp_memory.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from mcp_memory.stores.sqlite.guest import Guest
    from mcp_memory.stores.store import Store

SQL = Queries("examined")
KEYS = {"last": "examined_observation", "by_words": "examined_by_words", "seq": "examined_seq"}


class Mark(NamedTuple):
    """How far somebody came."""

    last: int | None = None  # the last observation that was compared; None where nobody ever wrote it down
    by_words: int = 0  # the last that was compared by its words, while there was no model
    seq: int = -1  # the entry of the feed after which nothing was left to look at


class Examined:
    """The mark, between runs."""

    def __init__(self, place: Guest) -> None:
        self._place = place

    def load(self) -> Mark:
        with self._place.reading() as connection:
            known: dict[str, int] = dict(connection.execute(SQL.marks))
        return Mark(**{name: known[key] for name, key in KEYS.items() if key in known})

    def save(self, mark: Mark) -> None:
        with self._place.writing() as connection:
            connection.execute(SQL.reach, (mark.last,))
            connection.execute(SQL.note, (mark.by_words, mark.seq))


def examined_of(store: Store) -> Examined | None:
    """Where this store keeps it; None for one that has no place for flags."""
    return Examined(store.guest) if isinstance(store, SqliteStore) else None
