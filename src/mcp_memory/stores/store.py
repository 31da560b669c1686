"""What a durable home of a space must answer. Everything above it is the same for every store.

The law: `write` inside `begin` is durable when `begin` is left without an exception, all of it or
nothing; whoever left it with an exception finds the store as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from mcp_memory.changes import Entry
from mcp_memory.facts import MemoryFault
from mcp_memory.graph import Graph
from mcp_memory.history.examining import Fingerprint
from mcp_memory.views import View

RESTORED = "put a backup in its place: mcp-memory restore FILE"


class StoreFault(MemoryFault):
    """The store cannot do this now. Nothing was changed."""

    remedy = "put right what the finding says, and ask again"  # what a person can do about it


class StoreBusy(StoreFault):
    code = "store_busy"
    retryable = True
    remedy = "ask again in a moment, or end the program that keeps the file"


class StoreLocked(StoreBusy):
    """Somebody else writes just now. Worth waiting for."""


class StoreFull(StoreFault):
    code = "store_full"
    retryable = True
    remedy = "make room on the disk, or have it examined, and ask again"


class StoreReadOnly(StoreFault):
    code = "store_read_only"
    remedy = "allow writing to the file and to its folder"


class StoreDamaged(StoreFault):
    code = "store_damaged"
    remedy = RESTORED


class StoreTooNew(StoreFault):
    code = "store_too_new"
    remedy = "upgrade mcp-memory"


class CannotHold(StoreFault):
    """The format of this store has no place for what was asked to be kept."""

    code = "store_cannot_hold"


class Finding(Exception):
    """One thing that `check` found to be wrong; `repaired` if it is right again.

    What could not be understood cannot be put right, only out of the way: `moved_to` says where it is then."""

    def __init__(self, text: str, repaired: bool = False, *, remedy: str, moved_to: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.repaired = repaired
        self.remedy = remedy  # what a person can do about it
        self.moved_to = moved_to if repaired else ""

    @property
    def outcome(self) -> str:
        if self.moved_to:
            return f"moved to {self.moved_to}"
        return "repaired" if self.repaired else "found"


# What `--repair` does about it: put it right where it stands, or make everything anew that follows from the feed.
MENDED, REBUILT = "doctor --repair puts it right", "doctor --repair makes it anew from the feed, after a copy"
HEALED = "nothing: the next write puts it right, and doctor --repair at once"


class Store(Protocol):
    """A durable home. Not thread-safe by itself: the space lets in one caller at a time."""

    quick: bool  # a small write takes microseconds: nobody notices who waits for it

    def begin(self, wait: bool = True) -> AbstractContextManager[None]:
        """Take the write lock of every process, wait for it politely, commit at the end.

        Who does not want to wait is told `StoreLocked` at once when somebody else holds it."""

    def write(self, entries: list[Entry]) -> None:
        """Append these to the feed. Only inside `begin`; `entry.seq` continues the feed."""

    def news_since(self, graph: Graph) -> list[Entry] | None:
        """What was written after `graph.seq`; None when the store was replaced: load it again.

        Cheap when nothing happened (microseconds): it is asked before every call."""

    def load(self) -> Graph:
        """The whole space as it is now, in a new graph."""

    def feed(self) -> Iterator[Entry] | None:
        """Every entry from the first on; None for a store that keeps no history."""

    def settle(self, seconds: float | None = None) -> None:
        """Bring every projection up to the feed, or as far as `seconds` allow.

        The space calls it in a quiet moment, from a thread of its own, and at the end."""

    def behind(self) -> int:
        """How many entries the projections lag; 0 when there is nothing to settle."""

    def check(self, repair: bool) -> list[Finding]:
        """Compare feed, projections and indexes with each other; repair what is derived, if asked."""

    def rebuild(self) -> None:
        """Make everything derived anew, where there is anything to make it from."""

    def compact(self, progress: Callable[[int, int | None], None] | None = None) -> None:
        """Give unused space back without losing a fact. What `progress` raises calls it off, as if it never began."""

    def close(self) -> None:
        """Let go of the file. A store may be used again afterwards: it opens by itself."""


class Calls(NamedTuple):
    """Which calls of the history are wanted; what is empty filters nothing."""

    before: int | None = None  # only calls with a lower number
    entities: set[int] | None = None  # that these are in
    by: str = ""  # somewhere in who asked, whatever the case
    tool: str = ""
    since: str = ""
    until: str = ""


class Retention(NamedTuple):
    """How much history is kept when a memory is compacted; what is None keeps everything."""

    days: int | None = None
    calls: int | None = None


class Dropped(NamedTuple):
    """What compacting took from the history: so many calls, the last of them at this time."""

    calls: int
    until: str | None


class History(Protocol):
    """What a store with a feed can tell about the past. The space sees it by the attribute `history`."""

    @property
    def floor(self) -> int:
        """The last entry of the beginning, before which nothing is known call by call."""

    @property
    def first(self) -> int:
        """The first entry there is, of the beginning or of the history."""

    @property
    def last(self) -> int:
        """The last entry."""

    def set_floor(self, seq: int) -> None:
        """Say which entry is the last of the beginning. Inside the write that brings a whole feed."""

    def between(self, after: int, upto: int) -> Iterator[Entry]:
        """The entries with after < seq <= upto, oldest first, with what they altered."""

    def noted(self, after: int) -> Iterator[Entry]:
        """The entries after this one that note a request, oldest first, without what they altered."""

    def calls(self, wanted: Calls) -> Iterator[Entry]:
        """The first entries of these calls, newest first; about entities, every piece for itself."""

    def call(self, number: int) -> list[Entry]:
        """Every entry of a call; [] if there is none of this number."""

    def newest(self, count: int) -> list[int]:
        """The numbers of the last calls, newest first, without what the server did by itself."""

    def size_of(self, entry: Entry) -> int:
        """How many changes the whole call of this first entry made."""

    def at(self, moment: str) -> int | None:
        """The last entry that was written by then; None when that is before the first."""

    def ids_named(self, name: str) -> list[int]:
        """Every entity that bears this name or bore it."""

    def name_of(self, entity_id: int) -> str | None:
        """The name of an entity, also of one that is gone."""

    def beginning_for(self, cutoff: str | None, most_calls: int | None) -> int:
        """The last entry that need not be known as history: written before `cutoff`, or by more than so many calls."""

    def begin_after(self, seq: int, state: Graph) -> Dropped:
        """Make the state after this entry the beginning, in place of every entry up to it. Inside a write."""

    @property
    def indexed(self) -> int:
        """The last entry that the index by entity knows."""

    def fingerprint(self) -> Fingerprint:
        """Of the index by entity, as it stands."""

    def nameless(self) -> int:
        """How many entities the history tells about without knowing their names."""


class ColdStore(Store, Protocol):
    """A store that can answer before its graph is loaded. The space sees it by the method `view`."""

    def view(self) -> View | None:
        """Where loading would keep a caller waiting: what answers a graph's questions, for one call."""

    def load_apart(self) -> tuple[Graph, object]:
        """As `load`, in a thread beside the calls; the token says of which state of the store."""

    def accept(self, graph: Graph, token: object) -> bool:
        """Is a graph loaded apart the one to go on with?"""

    def wants_snapshot(self) -> bool:
        """Should `settle` get a quiet moment though nothing was written?"""

    def append(self, entry: Entry) -> bool:
        """Write what follows what the graph has seen, if nobody wrote meanwhile and it can be done at once: one
        step instead of begin, look and commit. False: nothing was written."""

    def leave_off(self) -> None:
        """This process ends: what another thread makes for the next start, or loads, is not worth waiting for."""
