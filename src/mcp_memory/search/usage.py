"""What was served and what was then used, when, and together.

A call only leaves a note here; notes are written in the next quiet moment, behind the reply. The law:
being shown is no merit. Whatever is served is recorded as documented, but the ranking weighs only what
somebody then opened, extended or related: once for each search."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from mcp_memory.facts import MemoryFault
from mcp_memory.origins import session_of
from mcp_memory.search.habits import Credit, Ending, Habits, Note, Search
from mcp_memory.search.limbic import Candidate, Constants, Ranked, Use, constants_in, rank
from mcp_memory.search.routing import SHARES, route

log = logging.getLogger("mcp_memory")

# What is used so long after a search was found by it.
SOON = 600.0
# Searches that an origin may come back to, and origins that may have searched lately.
REMEMBERED_SEARCHES, REMEMBERED_ORIGINS = 8, 64
# Notes beyond this many do not wait for a quiet moment; those of so many searches are written in one go.
MOST_WAITING, WRITTEN_AT_ONCE = 200, 20
# Of a store that cannot be written for long, only so many notes are kept.
MOST_KEPT = 2000
MOST_EVENTS = 5000


class Notes(msgspec.Struct):
    """What can be written down in one go: first what ended, then what was searched, then what was used."""

    endings: list[Ending] = []
    searches: list[Search] = []
    credits: list[Credit] = []

    def __len__(self) -> int:
        return len(self.endings) + len(self.searches) + len(self.credits)

    def takes(self, note: Note) -> bool:
        """Add it, unless it must wait for the next go."""
        if len(self) >= MOST_WAITING or len(self.searches) >= WRITTEN_AT_ONCE:
            return False
        if isinstance(note, Ending):
            if self.searches or self.credits:  # they may be about an entity that ends here
                return False
            self.endings.append(note)
        elif isinstance(note, Search):
            self.searches.append(note)
        else:
            self.credits.append(note)
        return True


def first_of(waiting: Iterable[Note]) -> Notes:
    notes = Notes()
    for note in waiting:
        if not notes.takes(note):
            break
    return notes


class UsageHome(Protocol):
    """Where usage is kept between runs. Raises MemoryFault where that fails."""

    def load(self) -> Habits:
        """Everything used so far."""

    def is_same(self) -> bool:
        """Is what was loaded still about this file, as far as can be seen in microseconds?"""

    def shown(self) -> dict[str, Use]:
        """What was ever shown or used, whatever came of it. It is only read."""

    def constants(self) -> dict[str, str]:
        """The metadata among which tuned constants stand."""

    def opened(self, counts: Mapping[str, int], at: float) -> None:
        """Count these as accessed, which alters no ranking."""

    def write(self, notes: Notes, most_events: int) -> bool:
        """Keep these, all or nothing, and give logged searches their ids. Did others write since `load`?"""


class Usage:
    """The usage of one space. Any thread may ask and tell."""

    def __init__(
        self,
        home: UsageHome,
        clock: Callable[[], float],
        wake: Callable[[], None],
        *,
        is_kept: bool = True,
        most_events: int = MOST_EVENTS,
    ) -> None:
        """`wake` asks for a quiet moment in which `settle` is called. `is_kept`: False where nothing may be
        written. `most_events`: how many searches the log holds; 0 keeps no log."""
        self._home = home
        self._clock = clock
        self._wake = wake
        self._is_kept = is_kept
        self._most_events = most_events
        self._habits: Habits | None = None
        self._recent: dict[str, list[Search]] = {}
        self._waiting: list[Note] = []  # to be written, in the order in which it happened
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        self._listening_until = 0.0

    # ── for the ranking ──────────────────────────────────────────────────────────────────────────

    def rank(self, query: str, candidates: Sequence[Candidate], limit: int) -> list[Ranked]:
        """What a search found, best first: by relevance and habit, as far as this query lets habit speak."""
        habits = self.view()
        share = SHARES[route(query, limit)]
        return rank(candidates, habits, self.now(), self.constants(), share, habits.echoes.of(query))

    def view(self) -> Habits:
        """What was used, up to this moment."""
        habits = self._habits
        if habits is None or not self._home.is_same():
            habits = self._load()
        return habits

    def _load(self) -> Habits:
        try:
            loaded = self._home.load()
        except MemoryFault as fault:
            log.warning("ranking without earlier usage: %s", fault)
            loaded = Habits()
        with self._lock:
            for note in self._waiting:
                if isinstance(note, Credit):
                    loaded.take(note)
                elif isinstance(note, Ending):
                    loaded.end(note)
            self._habits = loaded
        return loaded

    def shown(self) -> dict[str, Use]:
        """How often and when last each entity was shown by a search or used after one."""
        try:
            return self._home.shown()
        except MemoryFault as fault:
            log.warning("reporting without earlier usage: %s", fault)
            return {}

    def constants(self) -> Constants:
        """The constants as they are now: whoever tunes them need not restart anything."""
        try:
            return constants_in(self._home.constants())
        except MemoryFault as fault:
            log.warning("ranking with the standard constants: %s", fault)
            return Constants()

    def now(self) -> float:
        return self._clock()

    # ── for the tools ────────────────────────────────────────────────────────────────────────────

    def served(
        self,
        query: str,
        rows: Sequence[Ranked],
        *,
        limit: int,
        origin: str = "",
        engine: str = "limbic",
        began: float | None = None,
    ) -> Search:
        """Note what a search answers, in the order of the answer. `began`: when, by `now`, the call came in."""
        now, origin = self._clock(), session_of(origin)
        duration = None if began is None else max(now - began, 0.0) * 1000
        search = Search(query, origin, now, limit, engine, duration, list(rows), self._most_events > 0)
        with self._lock:
            recent = self._recent.pop(origin, [])
            recent.append(search)
            self._recent[origin] = recent[-REMEMBERED_SEARCHES:]
            if len(self._recent) > REMEMBERED_ORIGINS:
                del self._recent[next(iter(self._recent))]
            self._listening_until = now + SOON
            if self._is_kept:
                self._waiting.append(search)
        if self._is_kept:
            self._wake()
        return search

    def is_listening(self) -> bool:
        """Was anything searched lately?"""
        return self._clock() < self._listening_until

    def used(self, names: Iterable[str], origin: str = "") -> list[str]:
        """Credit what a search of this origin, in the same session, served a short while ago; the others."""
        names = list(names)
        if not self.is_listening():
            return names
        now, origin = self._clock(), session_of(origin)
        with self._lock:
            recent = [search for search in self._recent.get(origin, ()) if now - search.at < SOON]
            fresh = [credit for name in dict.fromkeys(names) if (credit := _credit(name, recent, now)) is not None]
            if self._habits is not None:
                for credit in fresh:
                    self._habits.take(credit)
            if self._is_kept:
                self._waiting += fresh
        if fresh and self._is_kept:
            self._wake()
        credited = {credit.name for credit in fresh}
        return [name for name in names if name not in credited]

    def opened(self, counts: Mapping[str, int], at: float) -> None:
        """Write down that these were opened, so often each."""
        self._home.opened(counts, at)

    def ended(self, endings: Sequence[Ending]) -> None:
        """These entities are no more."""
        with self._lock:
            if self._habits is not None:
                for ending in endings:
                    self._habits.end(ending)
            if self._is_kept:
                self._waiting += endings

    # ── quiet moments ────────────────────────────────────────────────────────────────────────────

    @property
    def is_full(self) -> bool:
        """Should the notes be written although it is not quiet?"""
        return len(self._waiting) > MOST_WAITING

    def settle(self) -> None:
        """Write the notes. What cannot be written now waits, within bounds."""
        with self._settling:
            while self._waiting and self._settle_some():
                pass

    def _settle_some(self) -> bool:
        with self._lock:
            notes = first_of(self._waiting)
        try:
            others_wrote = self._home.write(notes, self._most_events)
        except MemoryFault as fault:
            self._give_up(fault)
            return False
        with self._lock:
            del self._waiting[: len(notes)]
        if others_wrote and self._habits is not None:
            self._load()
        return True

    def _give_up(self, fault: MemoryFault) -> None:
        log.log(logging.DEBUG if fault.retryable else logging.WARNING, "usage is not written: %s", fault)
        with self._lock:
            del self._waiting[: max(len(self._waiting) - (MOST_KEPT if fault.retryable else 0), 0)]


def _credit(name: str, recent: list[Search], now: float) -> Credit | None:
    """What the latest search that served this gains from its use, if it has not gained it yet."""
    search = next((search for search in reversed(recent) if search.serves(name)), None)
    if search is None or name in search.used:
        return None
    beside = list(search.used)
    search.used = {**search.used, name: None}
    return Credit(name, now, search, beside)
