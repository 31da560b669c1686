"""What a call is about to alter, as it was before: the one thing that a change itself cannot tell later.

Kept with every entry of the feed, so that any stretch of it can be walked backwards without the graph
that came before it. Facts that a change creates have no image; that they were not there is their image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from mcp_memory.changes import (
    AnyChange,
    EntityAbsorbed,
    EntityAltered,
    EntityCreated,
    EntityDeleted,
    EntityReverted,
    ObservationFlagged,
    ObservationReverted,
    ObservationsAdded,
    ObservationsDeleted,
    ObservationsMoved,
    ObservationSuperseded,
    ReflectionDeleted,
    ReflectionReverted,
    RelationDeleted,
    RelationEnded,
    RelationRepointed,
    RelationReverted,
    RelationRevived,
    Was,
)
from mcp_memory.facts import Entity, Observation, Reflection, Relation
from mcp_memory.graph import Graph


def was(graph: Graph, changes: Sequence[AnyChange]) -> Was | None:
    """The facts of this graph that these changes would alter; None where they only add."""
    if ALTERING.isdisjoint(map(type, changes)):  # most only add
        return None
    images = Images(graph)
    images.gone([change.id for change in changes if change.__class__ is EntityDeleted])
    for change in changes:
        look = LOOK.get(change.__class__)
        if look is not None:
            look(images, change)
    return images.taken()


def nothing(graph: Graph, changes: Iterable[AnyChange]) -> None:
    """What `was` says where no history is kept."""


class Images:
    """Facts of a graph as they are, each once, in whatever order they are asked for."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._entities: dict[int, Entity] = {}
        self._seen: dict[int, dict[int, Observation]] = {}  # of entities that were asked for single observations
        self._observations: dict[int, tuple[int, Observation]] = {}
        self._relations: dict[int, Relation] = {}
        self._reflections: dict[int, Reflection] = {}

    def taken(self) -> Was | None:
        found = Was(*(list(kind.values()) for kind in (self._entities, self._observations, self._relations)))  # type: ignore[arg-type]
        found.reflections = list(self._reflections.values())
        return found if any((found.entities, found.observations, found.relations, found.reflections)) else None

    def entity(self, entity_id: int) -> Entity | None:
        """Take an entity without its observations; the whole of it is the answer."""
        entity = self._graph.by_id.get(entity_id)  # None for one that the same plan creates
        if entity is not None and entity_id not in self._entities:
            self._entities[entity_id] = replace(entity, observations=[])
        return entity

    def observations(self, entity_id: int, wanted: Iterable[int]) -> None:
        """Take these observations of an entity, of which a call may name thousands one by one."""
        entity = self.entity(entity_id)
        seen = self._seen.get(entity_id)
        if seen is None:
            seen = self._seen[entity_id] = {} if entity is None else {one.id: one for one in entity.observations}
        self._observations |= {one: (entity_id, seen[one]) for one in wanted if one in seen}

    def relation(self, relation_id: int) -> None:
        relation = self._graph.relations.get(relation_id)
        if relation is not None:
            self._relations[relation_id] = relation

    def reflection(self, reflection_id: int) -> None:
        reflection = self._graph.reflections.get(reflection_id)
        if reflection is not None:
            self._reflections[reflection_id] = reflection

    # ── by kind of change ────────────────────────────────────────────────────────────────────────

    def _filled(self, change: EntityCreated) -> None:
        if change.fills is not None:
            self.gone([change.fills])

    def gone(self, entity_ids: Sequence[int]) -> None:
        """Entities that go, with all that belongs to them. At once: a call may delete hundreds."""
        found = [entity for entity in map(self._graph.by_id.get, entity_ids) if entity is not None]
        for entity in found:
            self._entities[entity.id] = replace(entity, observations=[])
            for seen in entity.observations:
                self._observations[seen.id] = (entity.id, seen)
        for relation in self._graph.ever_touching([entity.id for entity in found]):
            self._relations[relation.id] = relation

    def _absorbed(self, change: EntityAbsorbed) -> None:
        self.gone([change.id])
        for reflection in self._graph.reflections_on(change.id):
            self._reflections[reflection.id] = reflection

    def _unobserved(self, change: ObservationsDeleted) -> None:
        gone = set(change.ids)
        entity = self.entity(change.entity)
        # What superseded one of these will not know any more what it superseded.
        heirs = [] if entity is None else [seen.id for seen in entity.observations if seen.supersedes in gone]
        self.observations(change.entity, [*change.ids, *heirs])

    def _moved(self, change: ObservationsMoved) -> None:
        self.observations(change.source, change.ids)
        self.entity(change.target)


LOOK: dict[type[AnyChange], Callable[[Images, Any], object]] = {
    EntityCreated: Images._filled,
    EntityAltered: lambda images, change: images.entity(change.id),
    EntityReverted: lambda images, change: images.entity(change.id),
    EntityAbsorbed: Images._absorbed,
    ObservationsAdded: lambda images, change: images.entity(change.entity),
    ObservationSuperseded: lambda images, change: images.observations(change.entity, (change.id, change.by)),
    ObservationsDeleted: Images._unobserved,
    ObservationsMoved: Images._moved,
    ObservationFlagged: lambda images, change: images.observations(change.entity, (change.id,)),
    ObservationReverted: lambda images, change: images.observations(change.entity, (change.fact.id,)),
    RelationEnded: lambda images, change: images.relation(change.id),
    RelationRevived: lambda images, change: images.relation(change.id),
    RelationRepointed: lambda images, change: images.relation(change.id),
    RelationDeleted: lambda images, change: images.relation(change.id),
    RelationReverted: lambda images, change: images.relation(change.fact.id),
    ReflectionReverted: lambda images, change: images.reflection(change.fact.id),
    ReflectionDeleted: lambda images, change: images.reflection(change.id),
}

ALTERING = {EntityDeleted, *LOOK}
