"""Drafting new entities and observations on a graph: ids are handed out, duplicates left out.

Several tools create; this is the one place that knows how, within one plan."""

from __future__ import annotations

from collections.abc import Iterable

from mcp_memory.changes import AnyChange, EntityAltered, EntityCreated, ObservationsAdded
from mcp_memory.facts import ACTIVE, GENERIC_KIND, GENERIC_TYPE, Entity
from mcp_memory.graph import Graph


class Draft:
    """Changes under way: what the graph holds plus what this plan has added so far."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.changes: list[AnyChange] = []
        self._next_entity = graph.next_entity
        self._next_observation = graph.next_observation
        self.ids: dict[str, int] = {}  # of entities created by this plan
        self._texts: dict[int, set[str]] = {}  # what is believed of the entities this plan has touched

    def create(
        self, name: str, texts: Iterable[str], entity_type: str | None = None, status: str | None = None
    ) -> list[str] | None:
        """A new entity and the texts it starts with; None when one of that name exists already."""
        known = self.graph.named(name)
        if name in self.ids or (known is not None and not known.is_placeholder):
            return None
        fresh = list(dict.fromkeys(texts))
        entity_id = self.ids[name] = self._next_entity
        self._next_entity += 1
        self._texts[entity_id] = set(fresh)
        self.changes.append(
            EntityCreated(
                entity_id,
                name,
                GENERIC_TYPE if entity_type is None else entity_type,
                ACTIVE if status is None else status,
                self._next_observation,
                fresh,
                None if known is None else known.id,
            )
        )
        self._next_observation += len(fresh)
        return fresh

    def observe(self, name: str, texts: Iterable[str], kind: str = GENERIC_KIND) -> tuple[list[str], int]:
        """Add what is not yet believed of an entity: the texts added, and the id of the first."""
        entity_id = self.ids.get(name) or self.graph[name].id
        believed = self._texts.get(entity_id)
        if believed is None:
            believed = self._texts[entity_id] = set(self.graph.by_id[entity_id].texts())
        fresh = [text for text in dict.fromkeys(texts) if text not in believed]
        first = self._next_observation
        if fresh:
            believed.update(fresh)
            self._next_observation += len(fresh)
            self.changes.append(ObservationsAdded(entity_id, first, fresh, kind))
        return fresh, first

    def alter(self, entity: Entity, entity_type: str | None, status: str | None) -> None:
        """Another type or status, where one is given and differs."""
        new_type = entity_type if entity_type != entity.entity_type else None
        new_status = status if status != entity.status else None
        if new_type is not None or new_status is not None:
            self.changes.append(EntityAltered(entity.id, new_type, new_status))
