"""One isolated graph with its store: the only place that begins, commits and applies.

The law of a write: under the store's lock catch up with the feed, let the tool plan, write the plan,
commit, and only then apply it to the graph. A failure before the commit leaves nothing; one after it
can only be ours, and then the graph is thrown away and loaded again."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta, timezone
from functools import lru_cache, partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mcp_memory.changes import AnyChange, Entry, Plan
from mcp_memory.errand import Errand, Turns
from mcp_memory.facts import BadInput, Customs, Limits, MemoryFault, NotNow
from mcp_memory.graph import Graph
from mcp_memory.history.images import nothing, was
from mcp_memory.history.lives import earlier_lives
from mcp_memory.history.moment import AsOf
from mcp_memory.losses import guarded
from mcp_memory.meaning import Meaning
from mcp_memory.noting import Noting
from mcp_memory.pace import pause
from mcp_memory.quiet import Settler
from mcp_memory.repeats import Repeats, asked
from mcp_memory.search.seeker import Seeker
from mcp_memory.stores.store import CannotHold, History, Retention, Store, StoreBusy, StoreFault, StoreLocked

if TYPE_CHECKING:
    from mcp_memory.caretaker import Caretaker
    from mcp_memory.curation.topics import Topics
    from mcp_memory.history.past import Past, PastGraphs
    from mcp_memory.search.passages import Passages
    from mcp_memory.search.usage import Usage
    from mcp_memory.search.vectors import Vectors
    from mcp_memory.stores.store import ColdStore, Dropped, Finding
    from mcp_memory.tools.registry import Tool
    from mcp_memory.views import View

log = logging.getLogger("mcp_memory")

# A locked store is waited for with our own lock open: so long, and in steps that grow so far.
PATIENCE_SECONDS = 15.0
FIRST_WAIT, LONGEST_WAIT = 0.0005, 0.01
# Tools whose answers show flags of observations.
SHOWS_FLAGS = {"describe_entity"}
# An entry never holds more changes than this, so a huge import stays readable piece by piece.
CHANGES_PER_ENTRY = 5000

ENDING = "The server is ending and writes nothing more; nothing was changed. Repeat the call when it runs again."
KEEP_ALL = Retention()
NO_HISTORY = (
    "{path} is of a format that keeps no history: only what is true now stands in it. A SQLite memory keeps it: "
    "set the memory file to a .db path and run `mcp-memory import {path}`."
)


TIME = "%Y-%m-%d %H:%M:%S"  # as the documented schema writes it: SQLite's datetime('now')


def utc_now() -> str:
    """The current time, as it is written."""
    return _written(int(time.time()))


@lru_cache(1)
def _written(second: int) -> str:
    return datetime.fromtimestamp(second, timezone.utc).strftime(TIME)


def _planned(tool: Tool, values: tuple[Any, ...], graph: Graph) -> Plan:
    plan: Plan = tool.function(graph, *values)
    return plan


class Early(NamedTuple):
    """A plan, and the graph it was made on as it was then."""

    plan: Plan
    graph: Graph
    seq: int

    def holds_on(self, graph: Graph) -> bool:
        return graph is self.graph and graph.seq == self.seq

    def answer(self) -> Any:
        return self.plan.answer(self.graph) if callable(self.plan.answer) else self.plan.answer


class Space:
    """A graph, the store it lives in, and the order in which the two change."""

    def __init__(
        self,
        store: Store,
        *,
        limits: Limits | None = None,
        clock: Callable[[], str] = utc_now,
        roots: tuple[str, ...] = (),
        keeps_usage: bool = True,
        query_log: int = 5000,
        retention: Retention = KEEP_ALL,
        model: str = "none",
        flags: bool = False,
        customs: Customs | None = None,
        heavy: Turns | None = None,
        requires_model: bool = False,
    ) -> None:
        self.store = store
        self.limits = limits or Limits()
        self.customs = customs or Customs()
        self.heavy = heavy or Turns()
        self.topics: dict[tuple[str, tuple[str, ...]], Topics] = {}  # of large entities, as they were found last
        self.roots = roots
        self.clock = clock
        self.patience: float = getattr(store, "patience", PATIENCE_SECONDS)  # with a store that others have locked
        self.is_ending = False  # nobody waits any more, and nothing new is written
        self.foreign = 0  # how often something was taken in that others wrote
        self._keeps_usage = keeps_usage
        self.retention = retention
        self.model = model
        self._flags = flags
        self.caretaker: Caretaker | None = None  # from the first load on, where flags are wanted and can be kept
        self.meaning = Meaning(self, model, is_required=requires_model, is_kept=keeps_usage)
        self._graph: Graph | None = None
        self._pending: list[Entry] = []  # committed, not yet applied
        self._lock = threading.RLock()
        self.history: History | None = getattr(store, "history", None)  # of a store that keeps its feed
        self._settler = Settler(store, self._nudge, self._keep_passages)
        self.noting = self._settler.noting = Noting(
            store,
            wake=self._settler.wake,
            wrote=self._settler.wrote,
            are_kept=keeps_usage,
            query_log=query_log,
            has_history=self.history is not None,
        )
        self._past_graphs: PastGraphs | None = None
        # Where the feed is kept, it also tells which requests were made.
        self._repeats = Repeats(self.history) if self.history is not None else None
        self._looks_once = False
        self._looked_at: Graph | None = None  # that it has been seen what others wrote, while one look is enough
        # Where a store can answer before its graph is there: what loads the graph meanwhile, and what it loaded.
        self._cold: ColdStore | None = cast("ColdStore", store) if hasattr(store, "view") else None
        self._loader: threading.Thread | None = None
        self._loaded: tuple[Graph, object] | None = None

    # ── calls ────────────────────────────────────────────────────────────────────────────────────

    def call(
        self,
        tool: Tool,
        values: tuple[Any, ...],
        origin: str = "",
        errand: Errand | None = None,
        at_once: bool = False,
        most_lost: float = inf,
    ) -> Any:
        """What the tool answers, after what it planned has become true. `at_once`: that, or NotNow.

        `most_lost`: take away no more facts than these; where the plan wants to, Unconfirmed says so."""
        if tool.name in SHOWS_FLAGS and not at_once:
            self._wait_for_flags()
        if tool.is_heavy or tool.is_care:
            return self._care(tool, values, origin, at_once)
        if tool.asks_past or values.__class__ is AsOf:
            return self._call_with_past(tool, values, origin, at_once)
        if tool.is_errand:
            errand = errand or Errand()
            errand.space, errand.origin, errand.tool = self, origin, tool.name
            return tool.function(errand, *values)
        if tool.writes:
            planner: Callable[[Graph], Plan] = partial(_planned, tool, values)
            if most_lost != inf:
                planner = guarded(planner, most_lost)
            return self.commit(planner, origin, tool.name, at_once, early=True)
        if tool.is_search:
            if at_once:  # it may have to read its index first
                raise NotNow
            self.meaning.prepare()
            meaning = self.meaning
            self.noting.was_searched = True
            seeker = Seeker(self.reading, self.usage, origin, meaning.fresh, meaning.why_not, meaning.change)
            return tool.function(seeker, *values)
        return self._read_at_once(tool, values) if at_once else self._read(tool, values)

    def _read(self, tool: Tool, values: tuple[Any, ...]) -> Any:
        with self._lock:
            if self._graph is None and tool.on_view:
                view = self._view_for_now()
                if view is not None:
                    return tool.function(view, *values)
            return tool.function(self.graph(), *values)

    def _care(self, tool: Tool, values: tuple[Any, ...], origin: str, at_once: bool) -> Any:
        """A call that looks after the memory. It may think for long, and holds nobody up meanwhile."""
        if at_once:
            raise NotNow
        from mcp_memory.care import curator_of

        curator = curator_of(self) if tool.is_care else None
        if curator is not None and isinstance(values, AsOf):
            curator = curator._replace(facts=partial(self._held_as_it_was, values.moment))
        with self.heavy if tool.is_heavy else nullcontext():
            if tool.writes:
                return self.commit(lambda graph: tool.function(curator or graph, *values), origin, tool.name)
            return tool.function(curator, *values)

    @contextmanager
    def _held_as_it_was(self, moment: str) -> Iterator[Graph]:
        with self._lock:
            yield self.graph_at(moment)

    def _call_with_past(self, tool: Tool, values: tuple[Any, ...], origin: str, at_once: bool) -> Any:
        """A call that is about the past, or about the graph as it was."""
        if at_once:  # it may have to read far
            raise NotNow
        if tool.writes:
            return self.commit(lambda graph: tool.function(self.past(graph, origin), *values), origin, tool.name)
        with self._lock:
            self.store.settle()  # who is gone, and what whom concerns, is told by projections
            if isinstance(values, AsOf):
                return tool.function(self.graph_at(values.moment), *values)
            return tool.function(self.past(self.graph(), origin), *values)

    def _read_at_once(self, tool: Tool, values: tuple[Any, ...]) -> Any:
        if not self._lock.acquire(blocking=False):
            raise NotNow
        try:
            return tool.function(self._graph_at_once(), *values)
        finally:
            self._lock.release()

    def _graph_at_once(self) -> Graph:
        """The graph as `graph` has it, unless it must be loaded."""
        self.catch_up()
        graph = self._graph
        if graph is not None and graph is self._looked_at:
            return graph
        news = None if graph is None else self.store.news_since(graph)
        if graph is None or news is None:
            raise NotNow
        if news:
            self.foreign += 1
            graph.apply(news)
        if self._looks_once:
            self._looked_at = graph
        return graph

    @contextmanager
    def one_look(self) -> Iterator[None]:
        """Calls that had come before, and are made at once: one look at what others wrote is enough for all of them.

        A look costs two or three system calls: of small calls over HTTP a quarter."""
        self._looks_once = True
        try:
            yield
        finally:
            self._looks_once, self._looked_at = False, None

    def _view_for_now(self) -> View | None:
        """What answers while the graph is loaded behind, where that takes long enough to matter."""
        if self._cold is None or (self._loader is not None and not self._loader.is_alive()):
            return None
        view = self._cold.view()
        if view is not None and self._loader is None:
            self._loader = threading.Thread(target=self._load_behind, args=(self._cold,), name="loader", daemon=True)
            self._loader.start()
        return view

    def _load_behind(self, store: ColdStore) -> None:
        try:
            self._loaded = store.load_apart()
        except Exception as error:
            log.debug("loading behind the calls failed, the next call loads: %s", error)

    def _take_loaded(self) -> Graph | None:
        """The graph that was loaded behind, if it was and still fits."""
        loader, self._loader = self._loader, None
        if loader is None or self._cold is None:
            return None
        loader.join()
        loaded, self._loaded = self._loaded, None
        return loaded[0] if loaded is not None and self._cold.accept(*loaded) else None

    def graph(self) -> Graph:
        """The graph, up to date with every process that writes to this store."""
        with self._lock:
            if self._pending:
                self._take_in()
            graph = self._graph
            if graph is None:
                graph = self._graph = self._take_loaded() or self.store.load()
                self._look_after(graph)
                if self._cold is not None and self._cold.wants_snapshot():
                    self._settler.wake()
            news = self.store.news_since(graph)
            if news is None:
                self.foreign += 1
                self._graph = None
                graph = self._graph = self.store.load()
                self._look_after(graph)
            elif news:
                self.foreign += 1
                graph.apply(news)
            return graph

    @property
    def resident(self) -> tuple[Graph | None, int]:
        """For who may not wait: the graph as it is now, if it is there, and how many entries it lags behind."""
        return self._graph, len(self._pending)

    def is_small(self, most: int) -> bool:
        """Is the graph there, and has it at most so many entities?"""
        graph = self._graph
        return graph is not None and graph.entity_count <= most

    def has_index(self, kind: Callable[[Graph], Any]) -> bool:
        graph = self._graph
        return graph is not None and graph.has_index(kind)

    def look_around(self) -> int:
        """Take in what others wrote, if they did; `foreign` tells. For somebody who watches the store."""
        with self._lock:
            if not self._settler.is_closing:
                self.graph()
            return self.foreign

    def commit(
        self,
        planner: Callable[[Graph], Plan],
        origin: str = "",
        tool: str = "",
        at_once: bool = False,
        early: bool = False,
    ) -> Any:
        """Run a planner under the write lock of every process, and make its plan true.

        `early`: the planner may also be run before the lock is taken, and again under it if news came."""
        if self.is_ending:
            raise StoreBusy(ENDING)
        request = asked()
        if request is not None and self._repeats is not None:
            if at_once and not self._repeats.is_ready:
                raise NotNow
            planner = self._repeats.once(planner, request, self.clock())
        if at_once:
            return self._commit_at_once(planner, origin, tool)
        began = time.monotonic()
        wait = FIRST_WAIT
        while True:
            try:
                return self._commit(planner, origin, tool, early)
            except StoreLocked:
                waited = time.monotonic() - began
                # Uneven steps: processes that collided once do not collide in step for ever.
                step = wait * random.uniform(0.5, 1.5)
                if self.is_ending or waited > self.patience or not pause(step, waited):
                    raise
            wait = min(wait * 1.5, LONGEST_WAIT)
            early = False  # that cost a look at the file; from here on one look under the lock is enough
            if self._cold is not None:
                self.graph()  # where the file was closed or replaced, it is opened here

    def _commit_at_once(self, planner: Callable[[Graph], Plan], origin: str, tool: str) -> Any:
        if not self.store.quick or not self._lock.acquire(blocking=False):
            raise NotNow
        try:
            self._graph_at_once()
            return self._commit(planner, origin, tool, plans_early=False)
        except StoreBusy as busy:
            raise NotNow from busy
        finally:
            self._lock.release()

    def _commit(self, planner: Callable[[Graph], Plan], origin: str, tool: str, plans_early: bool) -> Any:
        with self._lock:
            early = self._plan_early(planner) if plans_early else None
            if early is not None and not early.plan.changes:
                return early.answer()
            entries = [] if early is None else self._appended(early, origin, tool)
            if early is not None and entries:
                plan = early.plan
            else:
                with self.store.begin(wait=False):
                    graph = self.graph()
                    plan = early.plan if early is not None and early.holds_on(graph) else planner(graph)
                    if plan.changes:
                        entries = self._entries(graph, plan.changes, origin, tool)
                        self.store.write(entries)
            if entries:
                # Committed. The graph takes it in when it is next asked, which is after the reply.
                self._pending += entries
                self._settler.wrote()
            if not callable(plan.answer):
                return plan.answer
            self.catch_up()
            return plan.answer(self._graph or self.graph())

    def _plan_early(self, planner: Callable[[Graph], Plan]) -> Early | None:
        """A plan made before the lock is taken, on the graph as it is at hand. Where nothing is to be changed the
        lock is not needed: it was a question, answered as of now."""
        self.catch_up()
        graph = self._graph or self.graph()
        seq = graph.seq
        try:
            early = Early(planner(graph), graph, seq)
        except MemoryFault:
            now = self.graph()
            if now is graph and now.seq == seq:
                raise
            return None
        return early if early.plan.changes or early.holds_on(self.graph()) else None

    def _appended(self, early: Early, origin: str, tool: str) -> list[Entry]:
        """The entry of a plan made early, if the store could write it in one step."""
        if self._cold is None or len(early.plan.changes) > CHANGES_PER_ENTRY:
            return []
        entries = self._entries(early.graph, early.plan.changes, origin, tool)
        return entries if self._cold.append(entries[0]) else []

    def _entries(self, graph: Graph, changes: list[AnyChange], origin: str, tool: str) -> list[Entry]:
        at = self.clock()
        first = graph.seq + 1
        pieces = [changes[start : start + CHANGES_PER_ENTRY] for start in range(0, len(changes), CHANGES_PER_ENTRY)]
        look = was if self.history is not None else nothing
        who = str(origin)  # the history names who it was, not in which session
        return [
            Entry(first + part, at, piece, who, tool, part, look(graph, piece)) for part, piece in enumerate(pieces)
        ]

    # ── history ──────────────────────────────────────────────────────────────────────────────────

    def past(self, graph: Graph, origin: str = "") -> Past:
        """What is known about the past, for one call beside this graph."""
        from mcp_memory.history.past import Past

        if self.history is None:
            raise CannotHold(NO_HISTORY.format(path=getattr(self.store, "path", "this memory")))
        return Past(self.history, graph, self.limits, origin)

    def graph_at(self, moment: str) -> Graph:
        """The graph as it was after a call, or at a time. Ask, don't keep and don't alter."""
        from mcp_memory.history.past import PastGraphs

        with self._lock:
            past = self._past_on_firm_ground()
            if self._past_graphs is None:
                self._past_graphs = PastGraphs()
            return self._past_graphs.at(past, past.moment(moment))

    def _past_on_firm_ground(self) -> Past:
        past = self.past(self.graph())
        if past.graph.base_seq < past.history.floor:
            # It stands on what was made a part of the beginning since: what followed cannot be told from it.
            self._graph = None
            past = self.past(self.graph())
        return past

    def take_feed(self, entries: Iterable[Entry], floor: int) -> int:
        """Take over a whole history, which must be in order, into a memory without one; how many entries it has."""
        history = self.history
        if history is None:
            raise CannotHold(NO_HISTORY.format(path=getattr(self.store, "path", "this memory")))
        count = 0
        with self._lock, self.store.begin():
            if self.graph().seq:
                raise BadInput("Only a new memory can take over a history; this one has its own. Name another file.")
            for entry in entries:
                self.store.write([entry])
                count += 1
            history.set_floor(floor)
        self._graph = None
        self._settler.wrote()
        return count

    def catch_up(self) -> None:
        """Take in what was written last. For the moment after a reply; whoever asks the graph need not."""
        if self._pending:
            with self._lock:
                try:
                    self._take_in()
                except Exception:
                    log.exception("the graph is loaded anew at the next call")

    def _take_in(self) -> None:
        entries, self._pending = self._pending, []
        graph = self._graph
        if graph is None or not entries:
            return
        self._graph = None  # half applied it would be worse than none: the store knows
        for entry in entries:
            self.noting.note_endings(graph, entry.changes)
        graph.apply(entries)
        self._graph = graph

    # ── behind the replies ───────────────────────────────────────────────────────────────────────

    @property
    def last_write(self) -> float:
        return self._settler.last_write

    def _nudge(self) -> None:
        """Something was written, and now it is quiet."""
        self.meaning.nudge()
        if self.caretaker is not None:
            self.caretaker.nudge()

    def settle(self) -> None:
        """Bring the projections up to the feed now, and write the notes about usage."""
        self.graph()
        self.store.settle()
        self.noting.write()

    @property
    def usage(self) -> Usage:
        """What was served and used. Made at the first search; nobody else needs it."""
        with self._lock:
            return self.noting.usage

    @property
    def vectors(self) -> Vectors | None:
        """What the texts mean, knowing of every change. None where there is no model."""
        with self._lock:
            return self.meaning.fresh(self.graph())

    @contextmanager
    def reading(self) -> Iterator[Graph]:
        """The graph, up to date and for oneself. Not for long: calls wait meanwhile."""
        with self._lock:
            yield self.graph()

    def _look_after(self, graph: Graph) -> None:
        """From now on somebody flags what is written twice, behind the replies."""
        if self.caretaker is None and self._flags:
            from mcp_memory.caretaker import Caretaker
            from mcp_memory.stores.examined import examined_of

            self._flags = False
            kept = examined_of(self.store)
            self.caretaker = Caretaker(self, kept) if kept is not None else None
        if self.history is not None:
            graph.lives = partial(earlier_lives, self.history)
        graph.kept_passages = self._passages_of
        if self.caretaker is not None:
            self.caretaker.follow(graph)
        elif not self._keeps_usage:  # who may only read tells at least what nobody has compared
            from mcp_memory.stores.examined import examined_of

            kept = examined_of(self.store)
            graph.examined = inf if kept is None else kept.load().last or 0
        if graph.seq:
            self.meaning.catch_up()

    def _passages_of(self, graph: Graph) -> Passages | None:
        """What an earlier process has packed for searches in this graph."""
        from mcp_memory.stores.passagemap import passages_of

        kept = passages_of(self.store, self._keeps_usage)
        return None if kept is None else kept.load(graph)

    def _keep_passages(self) -> None:
        """What was packed for a search, for the next process."""
        graph = self._graph
        packed = None if graph is None else graph.newly_packed()
        if packed is not None:
            from mcp_memory.stores.passagemap import passages_of

            kept = passages_of(self.store, self._keeps_usage)
            if kept is not None:
                kept.keep(*packed)

    def _wait_for_flags(self) -> None:
        """Give what was written a moment ago its flags, if that is a matter of a moment."""
        if self.caretaker is not None:
            from mcp_memory.care import is_ready
            from mcp_memory.caretaker import LOOK_SECONDS, MOST_WAITED_FOR

            self.caretaker.hurry(LOOK_SECONDS if is_ready(self) else 0, MOST_WAITED_FOR)

    def compact(self, progress: Callable[[int, int | None], None] | None = None) -> Dropped | None:
        """Give back the space that no fact needs any more, and what the history need not keep: the answer.

        Nobody else is served meanwhile."""
        with self._lock:
            dropped = self._let_go_of_history() if any(self.retention) else None
            self.store.compact(None if dropped else progress)  # called off now, it would have changed something
            return dropped

    def _let_go_of_history(self) -> Dropped | None:
        history, days = self.history, self.retention.days
        if history is None:
            return None
        self.store.settle()
        with self.store.begin():
            past = self._past_on_firm_ground()
            cutoff = None if days is None else self._days_ago(days, history)
            seq = history.beginning_for(cutoff, self.retention.calls)
            # What the tables have not seen yet must stay an entry: the next time will do.
            if not history.floor < seq <= history.indexed:
                return None
            dropped = history.begin_after(seq, past.graph_at(seq))
        self._graph, self._past_graphs = None, None
        return dropped

    def _days_ago(self, days: int, history: History) -> str | None:
        """So long before the last call: a clock that stands ahead by years must not make all of the history old."""
        now = self.clock()
        for number in history.newest(1):
            now = min(now, history.call(number)[0].at)
        try:
            return (datetime.strptime(now, TIME) - timedelta(days=days)).strftime(TIME)
        except OverflowError:  # before the year 1
            return None

    def rebuild(self) -> None:
        """Make everything that follows from the feed anew."""
        with self._lock:
            self.store.rebuild()
            self._graph, self._past_graphs = None, None

    def check(self, repair: bool = False) -> list[Finding]:
        """Everything that is not as it should be; [] is the only good answer."""
        from mcp_memory.checkup import checkup

        with self._lock:
            return checkup(self, repair)

    def close(self, seconds: float = 0.5) -> None:
        """Finish: projections as far as `seconds` allow (the next open does the rest), then let go."""
        caretaker, self.caretaker = self.caretaker, None
        if caretaker is not None:
            caretaker.close(seconds / 2)
        self.meaning.close()  # without our lock, which its worker may be waiting for
        with self._lock:
            self.catch_up()
            self._settler.stop()
            if self._cold is not None:
                self._cold.leave_off()
            self._take_loaded()
            until = time.monotonic() + seconds
            self._settler.join(seconds)
            try:
                self.store.settle(max(until - time.monotonic(), 0))
                self.noting.write()
            except StoreFault as fault:
                log.warning("projections wait for the next start: %s", fault)
            self.store.close()
            self._graph = None
