"""The way back: from a graph as it is to what a stretch of its feed began with.

The law: after the changes planned here, every fact that the stretch touched is what it was before, in
every field, and no other fact is touched. What later changes built on is found before, and refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from mcp_memory.changes import (
    AnyChange,
    EntityAbsorbed,
    EntityAltered,
    EntityCreated,
    EntityDeleted,
    EntityRestored,
    EntityReverted,
    Entry,
    ObservationFlagged,
    ObservationRestored,
    ObservationReverted,
    ObservationsAdded,
    ObservationsDeleted,
    ObservationsMoved,
    ObservationSuperseded,
    ReflectionAdded,
    ReflectionDeleted,
    ReflectionRestored,
    ReflectionReverted,
    RelationCreated,
    RelationDeleted,
    RelationRestored,
    RelationReverted,
    Was,
)
from mcp_memory.facts import Entity, Observation, Reflection, Relation
from mcp_memory.graph import Graph

Owned = tuple[int, Observation]  # an observation and the entity it belongs to
NOTHING = Was()


class Before:
    """What the facts touched by a stretch of the feed were when it began; None for what was not there."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entities: dict[int, Entity | None] = {}  # came, went, or changed type or status
        self.dates: dict[int, str] = {}  # when an entity had last changed
        self.observations: dict[int, Owned | None] = {}
        self.relations: dict[int, Relation | None] = {}
        self.reflections: dict[int, Reflection | None] = {}
        self.owners: set[int] = set()  # entities whose observations may be meant
        for entry in entries:
            self.take(entry)

    def take(self, entry: Entry) -> None:
        """One more entry, later than those before: of a fact that is known already it says nothing new."""
        images = entry.was or NOTHING
        heads = {entity.id: entity for entity in images.entities}
        for owner, seen in images.observations:
            self.observations.setdefault(seen.id, (owner, seen))
            self.owners.add(owner)
        for relation in images.relations:
            self.relations.setdefault(relation.id, relation)
        for reflection in images.reflections:
            self.reflections.setdefault(reflection.id, reflection)
        for head in images.entities:
            self.dates.setdefault(head.id, head.updated_at)
            self.owners.add(head.id)
        for change in entry.changes:
            note = NOTE.get(type(change))
            if note is not None:
                note(self, change, heads)

    def _entity(self, entity_id: int, heads: dict[int, Entity]) -> None:
        self.entities.setdefault(entity_id, heads.get(entity_id))
        self.owners.add(entity_id)

    def _created(self, change: EntityCreated, heads: dict[int, Entity]) -> None:
        self._entity(change.id, heads)
        for number in range(len(change.texts)):
            self.observations.setdefault(change.first + number, None)
        if change.fills is not None:
            self._entity(change.fills, heads)

    def _observed(self, change: ObservationsAdded, heads: dict[int, Entity]) -> None:
        self.owners.add(change.entity)
        for number in range(len(change.texts)):
            self.observations.setdefault(change.first + number, None)

    def _restored(self, change: EntityRestored, heads: dict[int, Entity]) -> None:
        self._entity(change.fact.id, heads)
        for seen in change.fact.observations:
            self.observations.setdefault(seen.id, None)

    def _observation_restored(self, change: ObservationRestored, heads: dict[int, Entity]) -> None:
        self.owners.add(change.entity)
        self.observations.setdefault(change.fact.id, None)

    def _moved(self, change: ObservationsMoved, heads: dict[int, Entity]) -> None:
        self.owners.update((change.source, change.target))
        for observation_id in change.ids:
            self.observations.setdefault(observation_id, None)


# What the images cannot say: what came into being, and which entities changed more than their date.
NOTE: dict[type[AnyChange], Callable[[Before, Any, dict[int, Entity]], object]] = {
    EntityCreated: Before._created,
    EntityRestored: Before._restored,
    EntityAltered: lambda before, change, heads: before._entity(change.id, heads),
    EntityReverted: lambda before, change, heads: before._entity(change.id, heads),
    EntityDeleted: lambda before, change, heads: before._entity(change.id, heads),
    EntityAbsorbed: lambda before, change, heads: before._entity(change.id, heads),
    ObservationsAdded: Before._observed,
    ObservationRestored: Before._observation_restored,
    ObservationsMoved: Before._moved,
    ObservationSuperseded: lambda before, change, heads: before.owners.add(change.entity),
    ObservationFlagged: lambda before, change, heads: before.owners.add(change.entity),
    ObservationsDeleted: lambda before, change, heads: before.owners.add(change.entity),
    RelationCreated: lambda before, change, heads: before.relations.setdefault(change.id, None),
    RelationRestored: lambda before, change, heads: before.relations.setdefault(change.fact.id, None),
    ReflectionAdded: lambda before, change, heads: before.reflections.setdefault(change.id, None),
    ReflectionRestored: lambda before, change, heads: before.reflections.setdefault(change.fact.id, None),
}


def standing(graph: Graph, owners: Iterable[int], wanted: dict[int, Any]) -> dict[int, Owned]:
    """Which of these observations are there now, and whose."""
    return {
        seen.id: (owner, seen)
        for owner in owners
        if owner in graph.by_id
        for seen in graph.by_id[owner].observations
        if seen.id in wanted
    }


class WayBack:
    """Plans it. Deletions come first, so that names and triples are free for what comes back."""

    def __init__(self, graph: Graph, before: Before) -> None:
        self.graph = graph
        self.before = before
        there = before.entities.items()
        self.dying = {entity_id for entity_id, was in there if was is None and entity_id in graph.by_id}
        self.reborn = {entity_id: was for entity_id, was in there if was is not None and entity_id not in graph.by_id}
        # What belongs to an entity that goes will go with it, and counts as gone already.
        self.now = standing(graph, before.owners - self.dying, before.observations)
        self._redated: set[int] = set()  # entities whose date the other changes alter

    def changes(self) -> list[AnyChange]:
        unrelated, related = self._relations()
        return [
            *unrelated,
            *(EntityDeleted(entity_id) for entity_id in sorted(self.dying)),
            *self._reborn(),
            *self._observations(),
            *related,
            *self._heads(),
            *self._reflections(),
        ]

    def relation_now(self, relation_id: int) -> Relation | None:
        relation = self.graph.relations.get(relation_id)
        if relation is None or relation.source in self.dying or relation.target in self.dying:
            return None
        return relation

    def _relations(self) -> tuple[list[AnyChange], list[AnyChange]]:
        gone: list[AnyChange] = []
        back: list[AnyChange] = []
        for relation_id, was in sorted(self.before.relations.items()):
            now = self.relation_now(relation_id)
            if now == was:
                continue
            stays = now is not None and was is not None and (now.source, now.target) == (was.source, was.target)
            if now is not None and not stays:
                gone.append(RelationDeleted(relation_id))
            if was is not None:
                back.append(RelationReverted(was) if stays else RelationRestored(was))
        return gone, back

    def _reborn(self) -> Iterator[EntityRestored]:
        own: dict[int, list[Observation]] = {entity_id: [] for entity_id in self.reborn}
        for owned in self.before.observations.values():
            if owned is not None and owned[0] in own and owned[1].id not in self.now:
                own[owned[0]].append(owned[1])
        for entity_id, head in sorted(self.reborn.items()):
            date = self.before.dates.get(entity_id, head.updated_at)
            seen = sorted(own[entity_id], key=lambda seen: seen.id)
            yield EntityRestored(replace(head, updated_at=date, observations=seen))

    def _observations(self) -> Iterator[AnyChange]:
        moves: dict[tuple[int, int], list[int]] = {}
        unwanted: dict[int, list[int]] = {}
        for observation_id, (owner, _) in sorted(self.now.items()):
            was = self.before.observations[observation_id]
            if was is None:
                unwanted.setdefault(owner, []).append(observation_id)
            elif was[0] != owner:
                moves.setdefault((owner, was[0]), []).append(observation_id)
        yield from (ObservationsMoved(source, target, ids) for (source, target), ids in moves.items())
        yield from (ObservationsDeleted(owner, ids) for owner, ids in unwanted.items())
        self._redated = {owner for pair in moves for owner in pair} | unwanted.keys()
        gone = {observation_id for ids in unwanted.values() for observation_id in ids}
        for observation_id, was in sorted(self.before.observations.items(), key=lambda pair: pair[0]):
            if was is None:
                continue
            now = self.now.get(observation_id)
            if now is None:
                if was[0] not in self.reborn:
                    yield ObservationRestored(*was)
            elif now[1] != was[1] or now[1].supersedes in gone:
                yield ObservationReverted(*was)

    def _heads(self) -> Iterator[AnyChange]:
        for entity_id in sorted(self.before.dates.keys() | self.before.entities.keys() | self._redated):
            now = self.graph.by_id.get(entity_id)
            if now is None or entity_id in self.dying:
                if entity_id in self.reborn and entity_id in self._redated:
                    head = self.reborn[entity_id]
                    date = self.before.dates.get(entity_id, head.updated_at)
                    yield EntityReverted(entity_id, head.entity_type, head.status, date)
                continue
            was = self.before.entities.get(entity_id) or now
            date = self.before.dates.get(entity_id, now.updated_at)
            is_same = (was.entity_type, was.status, date) == (now.entity_type, now.status, now.updated_at)
            if not is_same or entity_id in self._redated:
                yield EntityReverted(entity_id, was.entity_type, was.status, date)

    def _reflections(self) -> Iterator[AnyChange]:
        for reflection_id, was in sorted(self.before.reflections.items(), key=lambda pair: pair[0]):
            now = self.graph.reflections.get(reflection_id)
            if now == was:
                continue
            if was is None:
                yield ReflectionDeleted(reflection_id)
            else:
                yield ReflectionRestored(was) if now is None else ReflectionReverted(was)
