"""Drafting new entities and observations on a graph: ids are handed out, duplicates left out.

Several tools create; this is the one place that knows how, within one plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
        self._texts: dict[str, dict[str, None]] = {}  # what is believed of entities this plan has looked at

    def create(
        self, name: str, texts: Sequence[str], entity_type: str | None = None, status: str | None = None
    ) -> Sequence[str] | None:
        """A new entity and the texts it starts with; None when one of that name exists already."""
        known = self.graph.ids.get(name)
        if name in self.ids or (known is not None and known not in self.graph.placeholders):
            return None
        if len(texts) > 1:
            texts = list(dict.fromkeys(texts))
        entity_id = self.ids[name] = self._next_entity
        self._next_entity = entity_id + 1
        self.changes.append(
            EntityCreated(
                entity_id,
                name,
                GENERIC_TYPE if entity_type is None else entity_type,
                ACTIVE if status is None else status,
                self._next_observation,
                texts,
                known,
            )
        )
        self._next_observation += len(texts)
        return texts

    def believed(self, name: str) -> dict[str, None]:
        """What is known of an entity, this plan included, in order."""
        texts = self._texts.get(name)
        if texts is None:
            texts = dict.fromkeys(self._created_with(name) if name in self.ids else self.graph[name].texts())
            self._texts[name] = texts
        return texts

    def _created_with(self, name: str) -> Sequence[str]:
        entity_id = self.ids[name]
        return next(c.texts for c in self.changes if isinstance(c, EntityCreated) and c.id == entity_id)

    def observe(self, name: str, texts: Iterable[str], kind: str = GENERIC_KIND) -> tuple[list[str], int]:
        """Add what is not yet believed of an entity: the texts added, and the id of the first."""
        believed = self.believed(name)
        fresh = [text for text in dict.fromkeys(texts) if text not in believed]
        first = self._next_observation
        if fresh:
            believed.update(dict.fromkeys(fresh))
            self._next_observation += len(fresh)
            entity_id = self.ids[name] if name in self.ids else self.graph.ids[name]
            self.changes.append(ObservationsAdded(entity_id, first, fresh, kind))
        return fresh, first

    def alter(self, entity: Entity, entity_type: str | None, status: str | None) -> None:
        """Another type or status, where one is given and differs."""
        new_type = entity_type if entity_type != entity.entity_type else None
        new_status = status if status != entity.status else None
        if new_type is not None or new_status is not None:
            self.changes.append(EntityAltered(entity.id, new_type, new_status))
