"""One isolated graph with its store: the only place that begins, commits and applies.

The law of a write: under the store's lock catch up with the feed, let the tool plan, write the plan,
commit, and only then apply it to the graph. A failure before the commit leaves nothing; one after it
can only be ours, and then the graph is thrown away and loaded again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, cast

from mcp_memory.changes import AnyChange, Entry, Plan
from mcp_memory.facts import Limits, MemoryFault
from mcp_memory.graph import Graph
from mcp_memory.stores.store import Store, StoreFault

if TYPE_CHECKING:
    from mcp_memory.stores.store import ColdStore, Finding
    from mcp_memory.tools.registry import Tool
    from mcp_memory.views import View

log = logging.getLogger("mcp_memory")

# A quiet moment: this long without a write, or this many entries behind, and projections catch up.
QUIET_SECONDS = 0.05
MOST_BEHIND = 1000
# An entry never holds more changes than this, so a huge import stays readable piece by piece.
CHANGES_PER_ENTRY = 5000


def utc_now() -> str:
    """The current time as the documented schema writes it (SQLite's datetime('now'))."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


class Cancelled(MemoryFault):
    """The client withdrew the call; nothing was changed."""


class Errand:
    """What a long call may touch: files inside the allowed roots, progress, and one commit at its end."""

    def __init__(self, report: Callable[[int, int | None, str], None] | None = None) -> None:
        self._report = report
        self._cancelled = threading.Event()
        self.space: Space
        self.origin = ""
        self.tool = ""

    def cancel(self) -> None:
        self._cancelled.set()

    def progress(self, done: int, total: int | None = None, message: str = "") -> None:
        """Tell the client how far it is; raises Cancelled when it no longer wants to know."""
        if self._cancelled.is_set():
            raise Cancelled("Cancelled; nothing was changed.")
        if self._report is not None:
            self._report(done, total, message)

    def commit(self, planner: Callable[[Graph], Plan]) -> Any:
        """Plan on the current graph and make it true, all of it or nothing."""
        return self.space.commit(planner, self.origin, self.tool)


class Space:
    """A graph, the store it lives in, and the order in which the two change."""

    def __init__(
        self,
        store: Store,
        *,
        limits: Limits | None = None,
        clock: Callable[[], str] = utc_now,
        roots: tuple[str, ...] = (),
    ) -> None:
        self.store = store
        self.limits = limits or Limits()
        self.roots = roots
        self.clock = clock
        self._graph: Graph | None = None
        self._lock = threading.RLock()
        self._settler: threading.Thread | None = None
        self._unsettled = threading.Event()
        self._closing = threading.Event()
        self._last_write = 0.0
        # Where a store can answer before its graph is there: what loads the graph meanwhile, and what it loaded.
        self._cold: ColdStore | None = cast("ColdStore", store) if hasattr(store, "view") else None
        self._loader: threading.Thread | None = None
        self._loaded: tuple[Graph, object] | None = None

    # ── calls ────────────────────────────────────────────────────────────────────────────────────

    def call(self, tool: Tool, values: tuple[Any, ...], origin: str = "", errand: Errand | None = None) -> Any:
        """What the tool answers, after what it planned has become true."""
        if tool.is_errand:
            errand = errand or Errand()
            errand.space, errand.origin, errand.tool = self, origin, tool.name
            return tool.function(errand, *values)
        if tool.writes:
            return self.commit(lambda graph: tool.function(graph, *values), origin, tool.name)
        with self._lock:
            if self._graph is None and tool.on_view:
                view = self._view_for_now()
                if view is not None:
                    return tool.function(view, *values)
            return tool.function(self.graph(), *values)

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
            graph = self._graph
            if graph is None:
                graph = self._graph = self._take_loaded() or self.store.load()
                if self._cold is not None and self._cold.wants_snapshot():
                    self._wake_settler()
            news = self.store.news_since(graph)
            if news is None:
                self._graph = None
                graph = self._graph = self.store.load()
            elif news:
                graph.apply(news)
            return graph

    def commit(self, planner: Callable[[Graph], Plan], origin: str = "", tool: str = "") -> Any:
        """Run a planner under the write lock of every process, and make its plan true."""
        with self._lock:
            entries: list[Entry] = []
            with self.store.begin():
                graph = self.graph()
                plan = planner(graph)
                if plan.changes:
                    entries = self._entries(graph.seq, plan.changes, origin, tool)
                    self.store.write(entries)
            if entries:
                self._apply(graph, entries)
                self._wrote()
            return plan.answer(graph) if callable(plan.answer) else plan.answer

    def _entries(self, seq: int, changes: list[AnyChange], origin: str, tool: str) -> list[Entry]:
        at = self.clock()
        return [
            Entry(seq + 1 + part, at, changes[start : start + CHANGES_PER_ENTRY], origin, tool, part)
            for part, start in enumerate(range(0, len(changes), CHANGES_PER_ENTRY))
        ]

    def _apply(self, graph: Graph, entries: list[Entry]) -> None:
        try:
            graph.apply(entries)
        except BaseException:
            self._graph = None  # committed but half applied: the store knows better
            raise

    # ── quiet moments ────────────────────────────────────────────────────────────────────────────

    def _wrote(self) -> None:
        self._last_write = time.monotonic()
        if not self._unsettled.is_set():
            self._wake_settler()

    def _wake_settler(self) -> None:
        self._unsettled.set()
        if self._settler is None:
            self._settler = threading.Thread(target=self._settle_in_quiet_moments, name="settler", daemon=True)
            self._settler.start()

    def _settle_in_quiet_moments(self) -> None:
        while not self._closing.is_set():
            self._unsettled.wait()
            while (wait := self._last_write + QUIET_SECONDS - time.monotonic()) > 0:
                if self._closing.wait(wait) or self.store.behind() > MOST_BEHIND:
                    break
            self._unsettled.clear()
            try:
                self.store.settle()
            except StoreFault as fault:
                # Derived data only; the feed holds everything. The next write or the next open tries again.
                log.warning("projections wait: %s", fault)
            except Exception:
                log.exception("projections failed; mcp-memory doctor can rebuild them")

    def settle(self) -> None:
        """Bring the projections up to the feed now."""
        self.graph()
        self.store.settle()

    def check(self, repair: bool = False) -> list[Finding]:
        """Everything that is not as it should be; [] is the only good answer."""
        from mcp_memory.checkup import checkup

        with self._lock:
            return checkup(self, repair)

    def close(self, seconds: float = 0.5) -> None:
        """Finish: projections as far as `seconds` allow (the next open does the rest), then let go."""
        with self._lock:
            self._closing.set()
            self._unsettled.set()
            self._take_loaded()
            settler, self._settler = self._settler, None
            if settler is not None:
                settler.join(seconds)
            try:
                self.store.settle(seconds)
            except StoreFault as fault:
                log.warning("projections wait for the next start: %s", fault)
            self.store.close()
            self._graph = None
