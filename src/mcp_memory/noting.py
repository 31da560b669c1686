"""What is noted of a memory's use: who was searched for, opened, extended and related, and who left the graph.

Nothing here is a fact: losing it costs an order of results, never a memory. It is written in quiet moments."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp_memory.changes import AnyChange, EntityAbsorbed, EntityDeleted
from mcp_memory.facts import MemoryFault
from mcp_memory.search.openings import Openings, used_by
from mcp_memory.search.uses import DATED

if TYPE_CHECKING:
    from mcp_memory.graph import Graph
    from mcp_memory.search.usage import Usage
    from mcp_memory.stores.store import Store
    from mcp_memory.tools.registry import Tool

log = logging.getLogger("mcp_memory")


class Noting:
    """The notes of one space, in memory until a quiet moment."""

    def __init__(
        self,
        store: Store,
        *,
        wake: Callable[[], None],
        wrote: Callable[[], None],
        are_kept: bool,
        query_log: int,
        has_history: bool,
    ) -> None:
        """`wake` asks for a quiet moment, `wrote` for one as soon as nobody writes."""
        self.used: Usage | None = None  # from the first search on; until then there is nothing to take note of
        self.was_searched = False
        self.openings = Openings(time.monotonic, wake)
        self._wrote = wrote
        self._store = store
        self._are_kept = are_kept
        self._query_log = query_log
        self._has_history = has_history

    @property
    def usage(self) -> Usage:
        """What was served and used. For whoever holds the space."""
        if self.used is None:
            from mcp_memory.search.usage import Usage
            from mcp_memory.stores.usage import usage_of

            kept, most = usage_of(self._store), self._query_log
            self.used = Usage(kept, time.time, self._wrote, is_kept=self._are_kept, most_events=most)
        return self.used

    def saw(self, tool: Tool, values: tuple[Any, ...], origin: str) -> None:
        """A tool was called and succeeded. What it opened is in use; where a search served it, for the ranking too."""
        names = used_by(tool, values)
        if names and self.used is not None:
            names = self.used.used(names, origin)
        # What is changed is dated already. Beside a file of another format nothing is begun by opening: a search may.
        has_place = self._are_kept and (self._has_history or self.was_searched)
        if names and has_place and tool.name not in DATED:
            self.openings.note(names)

    def note_endings(self, graph: Graph, changes: list[AnyChange]) -> None:
        """Entities are about to leave the graph: what is kept of use knows them by name."""
        if any(isinstance(change, EntityDeleted | EntityAbsorbed) for change in changes):
            from mcp_memory.search.habits import endings_in

            self.usage.ended(endings_in(changes, graph))

    @property
    def are_many(self) -> bool:
        return self.used is not None and self.used.is_full

    def write(self) -> None:
        """Without the lock of the space, which whoever waits for this may hold."""
        opened = self.openings.take()
        if opened:
            from mcp_memory.stores.usage import usage_of

            try:
                (self.used or usage_of(self._store)).opened(opened, time.time())
            except MemoryFault as fault:
                log.debug("what was opened is not written down: %s", fault)
        if self.used is not None:
            self.used.settle()
