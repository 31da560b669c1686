"""Where the usage of a space is kept: in its database, or in a small one beside a file of another format.

Usage is no fact: losing it costs an order of results, never a memory. So it is written in quiet moments
only, and a file beside (`<file>-usage`) may be deleted at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from mcp_memory.search.habits import Habits
from mcp_memory.search.limbic import Use
from mcp_memory.search.usage import Notes
from mcp_memory.stores.sqlite import usage
from mcp_memory.stores.sqlite.sidefile import SideFile
from mcp_memory.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    import apsw

    from mcp_memory.search.trials import Trial
    from mcp_memory.stores.store import Store

SUFFIX = "-usage"


class Place(Protocol):
    """A database that has room for usage."""

    @property
    def wants_endings(self) -> bool:
        """Must it be told when an entity is no more?"""

    def mark(self) -> object:
        """Another thing when what was read from here must be read again."""

    def reading(self) -> AbstractContextManager[apsw.Connection | None]:
        """A connection to ask; None where nothing was written yet."""

    def writing(self) -> AbstractContextManager[apsw.Connection]:
        """A connection inside a transaction, committed at the end."""

    def metadata(self) -> dict[str, str]:
        """What stands in db_metadata now, without waiting for whoever writes. For who holds the space."""

    def bring(self, connection: apsw.Connection, names: Sequence[str]) -> None:
        """Let it know the entities of these names, if they exist."""


class KeptUsage:
    """The usage of one space between runs: a home for `Usage`, and what metrics and the tuner read."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._mark: object = None
        self._batch = -1

    def is_same(self) -> bool:
        return self._mark == self._place.mark()

    def load(self) -> Habits:
        habits, self._batch = Habits(), 0
        with self._place.reading() as connection:
            if connection is not None:
                habits, self._batch = usage.load(connection)
        self._mark = self._place.mark()
        return habits

    def shown(self) -> dict[str, Use]:
        with self._place.reading() as connection:
            return {} if connection is None else usage.shown(connection)

    def constants(self) -> dict[str, str]:
        return self._place.metadata()

    def opened(self, counts: Mapping[str, int], at: float) -> None:
        is_same = self.is_same()
        with self._place.writing() as connection:
            self._place.bring(connection, list(counts))
            usage.opened(connection, counts, at)
        if is_same:
            self._mark = self._place.mark()

    def write(self, notes: Notes, most_events: int) -> bool:
        names = [row.candidate.name for search in notes.searches for row in search.rows]
        endings = notes.endings if self._place.wants_endings else []
        if not (notes.searches or notes.credits or endings):
            return False
        try:
            with self._place.writing() as connection:
                usage.end(connection, endings)
                self._place.bring(connection, names)
                batch = usage.write(connection, notes.searches, notes.credits, most_events)
        except BaseException:
            for search in notes.searches:  # the ids were taken back, and others may get them
                search.event_id = None
            raise
        others_wrote = self._batch >= 0 and batch != self._batch + 1
        self._batch = batch
        if not others_wrote:
            self._mark = self._place.mark()
        return others_wrote

    def trials(self, most: int) -> list[Trial]:
        """The newest logged searches, oldest first."""
        with self._place.reading() as connection:
            return [] if connection is None else usage.trials(connection, most)

    def tune(self, values: dict[str, float]) -> None:
        """Make constants other than they were; every process ranks by them from its next search on."""
        with self._place.writing() as connection:
            usage.tune(connection, values)


def usage_of(store: Store) -> KeptUsage:
    """The usage of what this store holds."""
    if isinstance(store, SqliteStore):
        return KeptUsage(store.guest)
    path: str = store.path  # type: ignore[attr-defined]  # every store of ours has one file
    return KeptUsage(SideFile(path + SUFFIX))
