"""Drafting new entities and observations on a graph: ids are handed out, duplicates left out.

Several tools create; this is the one place that knows how, within one plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcp_memory.changes import AnyChange, EntityAltered, EntityCreated, ObservationsAdded, ObservationSuperseded
from mcp_memory.facts import ACTIVE, GENERIC_KIND, GENERIC_TYPE, PLACEHOLDER, Entity
from mcp_memory.graph import Graph


class Draft:
    """Changes under way: what the graph holds plus what this plan has added so far."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.changes: list[AnyChange] = []
        self._next_entity = graph.next_entity
        self._next_observation = graph.next_observation
        self.ids: dict[str, int] = {}  # of entities created by this plan
        self.replaced: dict[int, int] = {}  # observations that this plan supersedes, and by which
        self._texts: dict[str, dict[str, None]] = {}  # what is believed of entities this plan has looked at
        self._altered: dict[str, tuple[str, str]] = {}  # type and status of entities this plan has altered

    def create(
        self, name: str, texts: Sequence[str], entity_type: str | None = None, status: str | None = None
    ) -> Sequence[str] | None:
        """A new entity and the texts it starts with; None when one of that name exists already."""
        known = self.graph.ids[name]
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

    def id_of(self, name: str) -> int | None:
        """The id of an entity of the graph, or of one that this plan creates."""
        return self.ids.get(name) or self.graph.id_of(name)

    def place(self, name: str) -> int:
        """Its id; where nothing of that name is known, of a placeholder for what may be created one day."""
        known = self.ids.get(name) or self.graph.ids[name]
        if known is not None:
            return known
        entity_id = self.ids[name] = self._next_entity
        self._next_entity = entity_id + 1
        self.changes.append(EntityCreated(entity_id, name, GENERIC_TYPE, PLACEHOLDER))
        return entity_id

    def believed(self, name: str) -> dict[str, None]:
        """What is known of an entity, this plan included, in order."""
        texts = self._texts.get(name)
        if texts is None:
            texts = dict.fromkeys(self._created(name).texts if name in self.ids else self.graph[name].texts())
            self._texts[name] = texts
        return texts

    def _created(self, name: str) -> EntityCreated:
        entity_id = self.ids[name]
        return next(c for c in self.changes if isinstance(c, EntityCreated) and c.id == entity_id)

    def observe(self, name: str, texts: Iterable[str], kind: str = GENERIC_KIND) -> tuple[list[str], int]:
        """Add what is not yet believed of an entity: the texts added, and the id of the first."""
        believed = self.believed(name)
        fresh = [text for text in dict.fromkeys(texts) if text not in believed]
        first = self._next_observation
        if fresh:
            believed.update(dict.fromkeys(fresh))
            self._next_observation += len(fresh)
            entity_id = self.id_of(name)
            assert entity_id is not None, "what is believed of it was looked up"
            self.changes.append(ObservationsAdded(entity_id, first, fresh, kind))
        return fresh, first

    def supersede(self, entity_id: int, old: int, by: int) -> None:
        """One observation takes the place of another."""
        self.replaced[old] = by
        self.changes.append(ObservationSuperseded(entity_id, old, by))

    def alter(self, name: str, entity_type: str | None, status: str | None) -> None:
        """Another type or status, where one is given and differs from what this plan has made of it so far."""
        if entity_type is None and status is None:
            return
        entity: Entity | EntityCreated = self._created(name) if name in self.ids else self.graph[name]
        old_type, old_status = self._altered.get(name) or (entity.entity_type, entity.status)
        new_type = entity_type if entity_type != old_type else None
        new_status = status if status != old_status else None
        if new_type is not None or new_status is not None:
            self._altered[name] = (new_type or old_type, new_status or old_status)
            self.changes.append(EntityAltered(entity.id, new_type, new_status))
