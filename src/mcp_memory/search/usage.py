"""What was served and what was then used, when, and together.

A call only leaves a note here; notes are written in the next quiet moment, behind the reply. The law:
being shown is no merit. Whatever is served is recorded as documented, but the ranking weighs only what
somebody then opened, extended or related: once for each search."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from mcp_memory.facts import MemoryFault
from mcp_memory.search.limbic import Company, Constants, Ranked, Use

log = logging.getLogger("mcp_memory")

DAY = 86400
# What is used so long after a search was found by it.
SOON = 600.0
# Searches that an origin may come back to, and origins that may have searched lately.
REMEMBERED_SEARCHES, REMEMBERED_ORIGINS = 8, 64
# Notes beyond this many do not wait for a quiet moment; those of so many searches are written in one go.
MOST_WAITING, WRITTEN_AT_ONCE = 200, 20
# Of a store that cannot be written for long, only so many notes are kept.
MOST_KEPT = 2000
MOST_EVENTS = 5000


class Search(msgspec.Struct, eq=False):
    """One search and what it served, best first."""

    query: str
    origin: str
    at: float
    limit: int
    engine: str
    duration_ms: float | None
    rows: list[Ranked]
    is_logged: bool
    event_id: int | None = None  # once it is written as a trial
    used: dict[str, None] = {}

    def serves(self, name: str) -> bool:
        return any(row.candidate.name == name for row in self.rows)


class Credit(msgspec.Struct):
    """Something served was used, for the first time after its search."""

    name: str
    at: float
    search: Search
    beside: list[str]  # what had been used before after the same search


class Habits(msgspec.Struct):
    """Everything that was ever used: few of the entities, so it is kept in memory whole."""

    uses: dict[str, Use] = {}
    company: dict[str, dict[str, Company]] = {}

    def use_of(self, name: str) -> Use | None:
        return self.uses.get(name)

    def company_of(self, name: str) -> Mapping[str, Company]:
        return self.company.get(name) or {}

    def take(self, credit: Credit) -> None:
        use = self.uses.get(credit.name) or Use()
        is_new_day = not use.count or int(credit.at // DAY) != int(use.last // DAY)
        # Replaced, not altered: another thread may be ranking.
        self.uses[credit.name] = Use(use.count + 1, max(use.last, credit.at), use.days + is_new_day)
        for other in credit.beside:
            self._join(credit.name, other, credit.at)
            self._join(other, credit.name, credit.at)

    def _join(self, one: str, other: str, at: float) -> None:
        known = self.company.get(one, {})
        old = known.get(other) or Company()
        self.company[one] = {**known, other: Company(old.count + 1, max(old.last, at))}


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

    def write(self, searches: Sequence[Search], credits: Sequence[Credit], most_events: int) -> bool:
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
        self._searches: list[Search] = []
        self._credits: list[Credit] = []
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        self._listening_until = 0.0

    # ── for the ranking ──────────────────────────────────────────────────────────────────────────

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
            for credit in self._credits:
                loaded.take(credit)
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
        duration_ms: float | None = None,
    ) -> Search:
        """Note what a search answers, in the order of the answer."""
        now = self._clock()
        search = Search(query, origin, now, limit, engine, duration_ms, list(rows), self._most_events > 0)
        with self._lock:
            recent = self._recent.pop(origin, [])
            recent.append(search)
            self._recent[origin] = recent[-REMEMBERED_SEARCHES:]
            if len(self._recent) > REMEMBERED_ORIGINS:
                del self._recent[next(iter(self._recent))]
            self._listening_until = now + SOON
            if self._is_kept:
                self._searches.append(search)
        if self._is_kept:
            self._wake()
        return search

    def saw(self, tool: Any, values: tuple[Any, ...], origin: str) -> None:
        """A tool was called and succeeded. Of those that use what a search served, that is noted."""
        names_in = USES.get(tool.name)
        if names_in is not None and self.is_listening():
            given = {name: value for (name, _, _), value in zip(tool.parameters, values, strict=True)}
            self.used(names_in(given), origin)

    def is_listening(self) -> bool:
        """Was anything searched lately?"""
        return self._clock() < self._listening_until

    def used(self, names: Iterable[str], origin: str = "") -> None:
        """Credit what a search of this origin served a short while ago."""
        now = self._clock()
        with self._lock:
            recent = [search for search in self._recent.get(origin, ()) if now - search.at < SOON]
            fresh = [credit for name in dict.fromkeys(names) if (credit := _credit(name, recent, now)) is not None]
            if self._habits is not None:
                for credit in fresh:
                    self._habits.take(credit)
            if self._is_kept:
                self._credits += fresh
        if fresh and self._is_kept:
            self._wake()

    # ── quiet moments ────────────────────────────────────────────────────────────────────────────

    @property
    def is_full(self) -> bool:
        """Should the notes be written although it is not quiet?"""
        return len(self._searches) + len(self._credits) > MOST_WAITING

    def settle(self) -> None:
        """Write the notes. What cannot be written now waits, within bounds."""
        with self._settling:
            while (self._searches or self._credits) and self._settle_some():
                pass

    def _settle_some(self) -> bool:
        with self._lock:
            searches = self._searches[:WRITTEN_AT_ONCE]
            # A credit needs the id of its search: credits go when every search is written.
            credits = self._credits[:MOST_WAITING] if len(self._searches) <= WRITTEN_AT_ONCE else []
        try:
            others_wrote = self._home.write(searches, credits, self._most_events)
        except MemoryFault as fault:
            self._give_up(fault)
            return False
        with self._lock:
            del self._searches[: len(searches)]
            del self._credits[: len(credits)]
        if others_wrote and self._habits is not None:
            self._load()
        return True

    def _give_up(self, fault: MemoryFault) -> None:
        most = MOST_KEPT if fault.retryable else 0
        log.log(logging.DEBUG if fault.retryable else logging.WARNING, "usage is not written: %s", fault)
        with self._lock:
            del self._searches[: max(len(self._searches) - most, 0)]
            del self._credits[: max(len(self._credits) - most, 0)]


def _credit(name: str, recent: list[Search], now: float) -> Credit | None:
    """What the latest search that served this gains from its use, if it has not gained it yet."""
    search = next((search for search in reversed(recent) if search.serves(name)), None)
    if search is None or name in search.used:
        return None
    beside = list(search.used)
    search.used = {**search.used, name: None}
    return Credit(name, now, search, beside)


def constants_in(metadata: Mapping[str, str]) -> Constants:
    """The constants that stand there; what is no number above zero is passed over, as if it were not there."""
    said: dict[str, float] = {}
    for name in Constants.__struct_fields__:
        try:
            value = float(metadata[name])
        except (KeyError, ValueError):
            continue
        if 0 <= value < 1e9 and (value or name not in NEVER_ZERO):
            said[name] = value
    return Constants(**said)


# One would divide by these, or take their logarithm.
NEVER_ZERO = {"d_max", "temporal_floor", "full_use"}


def _named(given: dict[str, Any]) -> list[str]:
    return [given["name"]]


def _several(given: dict[str, Any]) -> list[str]:
    return list(given["names"])


def _extended(given: dict[str, Any]) -> list[str]:
    name = given.get("name")
    return [addition.entity_name for addition in given["observations"]] if name is None else [name]


def _created(given: dict[str, Any]) -> list[str]:
    return [entity.name for entity in given["entities"]]


# What counts as use, and of which entities: opening them, adding to them, relating them, looking around them.
USES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "open_nodes": _several,
    "get_entity": _named,
    "batch_get_entities": _several,
    "describe_entity": _named,
    "get_neighbors": _named,
    "add_observations": _extended,
    "create_entities": _created,
    "upsert_entities": _created,
    "create_relations": lambda given: [end for link in given["relations"] for end in (link.source, link.target)],
}
