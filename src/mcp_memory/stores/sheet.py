"""What a memory file must contain: the facts, each with its encoded line, so that a write is a join.

The law: a sheet has its own graph and shares no fact with anybody, so it can tell what the file says
when a graph elsewhere went astray. What the format has no place for is refused before anything changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp_memory.changes import (
    AnyChange,
    EntityRestored,
    Entry,
    RelationCreated,
    RelationRepointed,
    RelationRestored,
)
from mcp_memory.facts import PLACEHOLDER
from mcp_memory.graph import Graph
from mcp_memory.stores.lines import entity_line, relation_line


class Sheet:
    """The facts of a file as they are after `seq` entries, and their lines."""

    def __init__(self, base: Entry) -> None:
        self._base: Entry | None = base
        self._graph = Graph()
        self._entities: dict[int, bytes] = {}
        self._relations: dict[int, bytes] = {}
        self.seq = base.seq

    def apply(self, entries: list[Entry]) -> None:
        """Make these true here. They hold nothing that a plain format has no place for."""
        graph = self._own_graph()
        graph.apply(entries)
        self.seq = graph.seq
        self._encode_entities()
        self._encode_relations(entries)

    def render(self) -> bytes:
        """The bytes of the file: as the official server writes them, without a newline at the end."""
        return b"\n".join(self.lines())

    def lines(self) -> list[bytes]:
        self._own_graph()
        return [*self._entities.values(), *self._relations.values()]

    def graph(self) -> Graph:
        """A new graph of these facts, with the same ids."""
        graph = Graph()
        if self._base is not None:
            graph.apply([self._base])
            return graph
        own = self._graph
        copies: list[AnyChange] = [EntityRestored(entity) for entity in own.by_id.values()]
        copies += [RelationRestored(relation) for relation in own.relations.values()]
        graph.apply([Entry(self.seq, "", copies)])
        for counter in ("next_entity", "next_observation", "next_relation"):
            setattr(graph, counter, getattr(own, counter))
        return graph

    def _own_graph(self) -> Graph:
        # Only who writes needs it: a server that is only read keeps the facts once.
        if self._base is not None:
            base, self._base = self._base, None
            self._graph.apply([base])
            self._encode_entities()
            self._encode_relations([base])
        return self._graph

    def _encode_entities(self) -> None:
        graph, lines = self._graph, self._entities
        last = next(reversed(lines), 0)
        restored = False
        for entity_id in sorted(graph.touched):
            entity = graph.by_id.get(entity_id)
            if entity is None or entity.status == PLACEHOLDER:
                lines.pop(entity_id, None)
            else:
                restored |= entity_id < last and entity_id not in lines
                lines[entity_id] = entity_line(entity)
        graph.touched.clear()
        if restored:  # rare, and the order of the file is the order of ids
            self._entities = dict(sorted(lines.items()))

    def _encode_relations(self, entries: list[Entry]) -> None:
        graph, lines = self._graph, self._relations
        last = next(reversed(lines), 0)
        restored = False
        for entry in entries:
            for change in entry.changes:
                if type(change) not in RELATION_WRITTEN:
                    continue
                relation_id = RELATION_WRITTEN[type(change)](change)
                if relation_id in graph.relations:
                    restored |= relation_id < last and relation_id not in lines
                    lines[relation_id] = relation_line(graph, relation_id)
        if len(lines) != len(graph.relations):  # some went, alone or with an entity
            lines = {relation_id: line for relation_id, line in lines.items() if relation_id in graph.relations}
        self._relations = dict(sorted(lines.items())) if restored else lines


RELATION_WRITTEN: dict[type[AnyChange], Callable[[Any], int]] = {
    RelationCreated: lambda change: change.id,
    RelationRepointed: lambda change: change.id,
    RelationRestored: lambda change: change.fact.id,
}
