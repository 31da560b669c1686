"""Which entities were changed last: found once, then kept up with what was touched."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest
from typing import TYPE_CHECKING

from mcp_memory.facts import PLACEHOLDER, Entity

if TYPE_CHECKING:
    from mcp_memory.graph import Graph

KEPT = 200
# A graph of more entities is not read through for this: only what was created last is looked at.
MOST_READ = 100_000


class Recent:
    """The entities that were changed last, newest first."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._touched: set[int] = set()
        graph.followers.append(self._touched)
        self._read()

    def _read(self) -> None:
        graph = self._graph
        ids = list(graph.by_id)
        found = map(graph.by_id.__getitem__, ids if len(ids) <= MOST_READ else ids[-MOST_READ:])
        self._keep((entity.updated_at, entity.id) for entity in found if entity.status != PLACEHOLDER)

    def _keep(self, times: Iterable[tuple[str, int]]) -> None:
        self._times = {entity_id: at for at, entity_id in nlargest(KEPT, times)}

    def first(self, most: int) -> list[Entity]:
        """So many of them."""
        if self._touched:
            self._refresh()
        if len(self._times) < min(most, self._graph.entity_count):
            self._read()  # those that were kept have gone
        newest = nlargest(most, ((at, entity_id) for entity_id, at in self._times.items()))
        return [self._graph.by_id[entity_id] for _, entity_id in newest]

    def _refresh(self) -> None:
        touched = set(self._touched)
        self._touched.clear()
        for entity_id in touched:
            entity = self._graph.by_id.get(entity_id)
            if entity is None or entity.status == PLACEHOLDER:
                self._times.pop(entity_id, None)
            else:
                self._times[entity_id] = entity.updated_at
        if len(self._times) > 2 * KEPT:
            self._keep((at, entity_id) for entity_id, at in self._times.items())
