"""The resident read model of a space: what is true now, in dictionaries, and how changes alter it.

The graph never decides and never writes: it answers primitive questions and applies entries of the
feed. Everything it holds can be rebuilt from a store; two graphs fed the same entries are equal."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.changes import (
    AnyChange,
    EntityAbsorbed,
    EntityAltered,
    EntityCreated,
    EntityDeleted,
    EntityRestored,
    Entry,
    ObservationFlagged,
    ObservationRestored,
    ObservationsAdded,
    ObservationsDeleted,
    ObservationsMoved,
    ObservationSuperseded,
    ReflectionAdded,
    ReflectionRestored,
    RelationCreated,
    RelationDeleted,
    RelationEnded,
    RelationRepointed,
    RelationRestored,
    RelationRevived,
)
from mcp_memory.facts import PLACEHOLDER, Entity, Observation, Reflection, Relation, UnknownEntity

if TYPE_CHECKING:
    from mcp_memory.search.text import TextIndex

by_id = attrgetter("id")
Triple = tuple[int, int, str]


class Graph:
    """One space in memory. `seq` is the last entry of the feed that it has seen."""

    def __init__(self) -> None:
        self.seq = 0
        self.by_id: dict[int, Entity] = {}  # in order of id, which is order of creation
        self.by_name: dict[str, Entity] = {}  # placeholders included
        self.relations: dict[int, Relation] = {}  # in order of id
        self.triples: dict[Triple, Relation] = {}
        self.incident: dict[int, dict[int, Relation]] = {}  # entity id -> its relations, ended ones included
        self.reflections: dict[int, Reflection] = {}
        self.next_entity = 1
        self.next_observation = 1
        self.next_relation = 1
        self.next_reflection = 1
        self.entity_count = 0
        self.observation_count = 0  # active ones
        self.relation_count = 0  # active ones
        self.type_counts: Counter[str] = Counter()
        self.relation_type_counts: Counter[str] = Counter()
        # Entities whose text changed since somebody who keeps an index last emptied this set.
        self.touched: set[int] = set()
        self._texts: TextIndex | None = None

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    def find(self, name: str) -> Entity | None:
        """The entity of exactly this name, if it was created."""
        entity = self.by_name.get(name)
        return None if entity is None or entity.status == PLACEHOLDER else entity

    def __getitem__(self, name: str) -> Entity:
        entity = self.find(name)
        if entity is None:
            raise UnknownEntity(name)
        return entity

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def entities(self) -> Iterator[Entity]:
        """Every entity, in order of creation."""
        return (entity for entity in self.by_id.values() if entity.status != PLACEHOLDER)

    def active_relations(self) -> Iterator[Relation]:
        """Every relation that is true now, in order of creation."""
        return (relation for relation in self.relations.values() if relation.ended_at is None)

    def relations_of(self, entity_id: int) -> list[Relation]:
        """The relations touching an entity that are true now, in order of creation."""
        incident = self.incident.get(entity_id)
        if not incident:
            return []
        return sorted((r for r in incident.values() if r.ended_at is None), key=by_id)

    def relations_touching(self, entity_ids: Iterable[int]) -> list[Relation]:
        """The relations with at least one end among these, each once, in order of creation."""
        found: dict[int, Relation] = {}
        for entity_id in entity_ids:
            incident = self.incident.get(entity_id)
            if incident:
                found.update(incident)
        return sorted((r for r in found.values() if r.ended_at is None), key=by_id)

    def relation(self, source: int, target: int, relation_type: str) -> Relation | None:
        """The relation of this triple, active or ended: there is at most one."""
        return self.triples.get((source, target, relation_type))

    def named(self, name: str) -> Entity | None:
        """The entity of this name, or the placeholder that stands for it."""
        return self.by_name.get(name)

    def name_of(self, entity_id: int) -> str:
        return self.by_id[entity_id].name

    def incident_to(self, entity_id: int) -> list[Relation]:
        """Every relation touching an entity, ended ones included, in order of creation."""
        return sorted(self.incident.get(entity_id, {}).values(), key=by_id)

    def degree(self, entity_id: int) -> int:
        """How many relations touch an entity, ended ones included."""
        return len(self.incident.get(entity_id, ()))

    def neighbours(self, entity_ids: Iterable[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """For each entity those that an active relation joins it with, each once, in order of creation
        of the relations; neither itself nor placeholders."""
        for entity_id in entity_ids:
            found: dict[int, None] = {}
            for relation in self.relations_of(entity_id):
                other = relation.target if relation.source == entity_id else relation.source
                if other != entity_id and not self.by_id[other].is_placeholder:
                    found[other] = None
            yield entity_id, tuple(found)

    @property
    def texts(self) -> TextIndex:
        """The words of every entity, indexed at the first search and kept up with what was touched."""
        if self._texts is None:
            from mcp_memory.search.text import TextIndex

            self._texts = TextIndex(self)
        self._texts.refresh(self.touched)
        return self._texts

    # ── changes ──────────────────────────────────────────────────────────────────────────────────

    def apply(self, entries: Iterable[Entry]) -> None:
        """Make these entries true. They are valid: whoever wrote them planned them on this graph."""
        for entry in entries:
            at = entry.at
            for change in entry.changes:
                APPLY[type(change)](self, change, at)
            self.seq = entry.seq

    def _created(self, change: EntityCreated, at: str) -> None:
        first = change.first
        observations = [Observation(first + i, text, at) for i, text in enumerate(change.texts)]
        if change.fills is not None:
            incident = self._remove_placeholder(change.fills)
        entity = Entity(change.id, change.name, change.entity_type, change.status, at, at, observations)
        self.insert(entity)
        if change.fills is not None:
            self._adopt(change.fills, change.id, incident)

    def insert(self, entity: Entity) -> None:
        """Take in an entity as it is."""
        in_order = entity.id >= self.next_entity
        self.by_id[entity.id] = entity
        self.by_name[entity.name] = entity
        if in_order:
            self.next_entity = entity.id + 1
        else:  # something restored: rare, and order is a promise
            self.by_id = dict(sorted(self.by_id.items()))
        if entity.observations:
            self.next_observation = max(self.next_observation, entity.observations[-1].id + 1)
        if entity.status != PLACEHOLDER:
            self.entity_count += 1
            self.observation_count += len(entity.active())
            self.type_counts[entity.entity_type] += 1
            self.touched.add(entity.id)

    def _remove_placeholder(self, placeholder_id: int) -> dict[int, Relation]:
        placeholder = self.by_id.pop(placeholder_id)
        del self.by_name[placeholder.name]
        return self.incident.pop(placeholder_id, {})

    def _adopt(self, placeholder_id: int, entity_id: int, incident: dict[int, Relation]) -> None:
        """Give the relations of a placeholder, already gone, to the entity that took its place."""
        for relation in incident.values():
            self._unlink(relation)
            if relation.source == placeholder_id:
                relation.source = entity_id
            if relation.target == placeholder_id:
                relation.target = entity_id
            self._link(relation)

    def _altered(self, change: EntityAltered, at: str) -> None:
        entity = self.by_id[change.id]
        if change.entity_type is not None and change.entity_type != entity.entity_type:
            _decrement(self.type_counts, entity.entity_type)
            self.type_counts[change.entity_type] += 1
            entity.entity_type = change.entity_type
        if change.status is not None:
            entity.status = change.status
        self._touch(entity, at)

    def _touch(self, entity: Entity, at: str) -> None:
        entity.updated_at = at
        self.touched.add(entity.id)

    def _deleted(self, change: EntityDeleted, at: str) -> None:
        entity = self.by_id.pop(change.id)
        del self.by_name[entity.name]
        for relation in list(self.incident.get(change.id, {}).values()):
            self._drop(relation)
        self.incident.pop(change.id, None)
        if not entity.is_placeholder:
            self.entity_count -= 1
            self.observation_count -= len(entity.active())
            _decrement(self.type_counts, entity.entity_type)
        self.touched.add(entity.id)

    def _absorbed(self, change: EntityAbsorbed, at: str) -> None:
        for reflection in self.reflections.values():
            if reflection.target_type == "entity" and reflection.target_id == change.id:
                reflection.target_id = change.into
        self._deleted(EntityDeleted(change.id), at)

    def _observed(self, change: ObservationsAdded, at: str) -> None:
        entity = self.by_id[change.entity]
        entity.observations.extend(
            Observation(change.first + i, text, at, change.kind) for i, text in enumerate(change.texts)
        )
        self.next_observation = max(self.next_observation, change.first + len(change.texts))
        self.observation_count += len(change.texts)
        self._touch(entity, at)

    def _superseded(self, change: ObservationSuperseded, at: str) -> None:
        entity = self.by_id[change.entity]
        for observation in entity.observations:
            if observation.id == change.id:
                observation.superseded_at = at
            elif observation.id == change.by:
                observation.supersedes = change.id
        self.observation_count -= 1
        self._touch(entity, at)

    def _unobserved(self, change: ObservationsDeleted, at: str) -> None:
        entity = self.by_id[change.entity]
        gone = set(change.ids)
        self.observation_count -= sum(seen.id in gone for seen in entity.active())
        entity.observations = [seen for seen in entity.observations if seen.id not in gone]
        for seen in entity.observations:
            if seen.supersedes in gone:
                seen.supersedes = None
        self._touch(entity, at)

    def _moved(self, change: ObservationsMoved, at: str) -> None:
        source, target = self.by_id[change.source], self.by_id[change.target]
        moving = set(change.ids)
        target.observations = sorted(
            target.observations + [seen for seen in source.observations if seen.id in moving], key=by_id
        )
        source.observations = [seen for seen in source.observations if seen.id not in moving]
        self._touch(source, at)
        self._touch(target, at)

    def _flagged(self, change: ObservationFlagged, at: str) -> None:
        for observation in self.by_id[change.entity].observations:
            if observation.id == change.id:
                observation.similarity_flag = change.flag

    def _related(self, change: RelationCreated, at: str) -> None:
        self.keep(Relation(change.id, change.source, change.target, change.relation_type, at, change.context))

    def keep(self, relation: Relation) -> None:
        """Take in a relation as it is, active or ended."""
        in_order = relation.id >= self.next_relation
        self.relations[relation.id] = relation
        if in_order:
            self.next_relation = relation.id + 1
        else:
            self.relations = dict(sorted(self.relations.items()))
        self._link(relation)
        if relation.ended_at is None:
            self._count(relation, 1)

    def _link(self, relation: Relation) -> None:
        self.triples[relation.source, relation.target, relation.relation_type] = relation
        for end in (relation.source, relation.target):
            incident = self.incident.get(end)
            if incident is None:
                self.incident[end] = {relation.id: relation}
            else:
                incident[relation.id] = relation

    def _unlink(self, relation: Relation) -> None:
        del self.triples[relation.source, relation.target, relation.relation_type]
        for end in {relation.source, relation.target}:
            incident = self.incident.get(end)
            if incident is not None:
                incident.pop(relation.id, None)
                if not incident:
                    del self.incident[end]

    def _count(self, relation: Relation, step: int) -> None:
        self.relation_count += step
        if step > 0:
            self.relation_type_counts[relation.relation_type] += 1
        else:
            _decrement(self.relation_type_counts, relation.relation_type)

    def _drop(self, relation: Relation) -> None:
        del self.relations[relation.id]
        self._unlink(relation)
        if relation.ended_at is None:
            self._count(relation, -1)

    def _ended(self, change: RelationEnded, at: str) -> None:
        relation = self.relations[change.id]
        relation.ended_at = at
        self._count(relation, -1)

    def _revived(self, change: RelationRevived, at: str) -> None:
        relation = self.relations[change.id]
        relation.ended_at = None
        if change.context is not None:
            relation.context = change.context
        self._count(relation, 1)

    def _repointed(self, change: RelationRepointed, at: str) -> None:
        relation = self.relations[change.id]
        self._unlink(relation)
        relation.source, relation.target = change.source, change.target
        self._link(relation)

    def _unrelated(self, change: RelationDeleted, at: str) -> None:
        self._drop(self.relations[change.id])

    def _reflected(self, change: ReflectionAdded, at: str) -> None:
        self.remember(
            Reflection(change.id, change.target_type, change.target_id, change.author, change.content, change.mood, at)
        )

    def remember(self, reflection: Reflection) -> None:
        """Take in a reflection as it is."""
        self.reflections[reflection.id] = reflection
        self.next_reflection = max(self.next_reflection, reflection.id + 1)

    def _entity_restored(self, change: EntityRestored, at: str) -> None:
        fact = change.fact
        # A copy: the entry may live on in a feed, and facts of the graph are altered in place.
        self.insert(msgspec.structs.replace(fact, observations=[copy(seen) for seen in fact.observations]))

    def _observation_restored(self, change: ObservationRestored, at: str) -> None:
        entity = self.by_id[change.entity]
        insort(entity.observations, copy(change.fact), key=by_id)
        self.next_observation = max(self.next_observation, change.fact.id + 1)
        self.observation_count += change.fact.superseded_at is None
        self.touched.add(entity.id)

    def _relation_restored(self, change: RelationRestored, at: str) -> None:
        self.keep(copy(change.fact))

    def _reflection_restored(self, change: ReflectionRestored, at: str) -> None:
        self.remember(copy(change.fact))


def _decrement(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


APPLY: dict[type[AnyChange], Callable[[Graph, Any, str], None]] = {
    EntityCreated: Graph._created,
    EntityAltered: Graph._altered,
    EntityDeleted: Graph._deleted,
    EntityAbsorbed: Graph._absorbed,
    ObservationsAdded: Graph._observed,
    ObservationSuperseded: Graph._superseded,
    ObservationsDeleted: Graph._unobserved,
    ObservationsMoved: Graph._moved,
    ObservationFlagged: Graph._flagged,
    RelationCreated: Graph._related,
    RelationEnded: Graph._ended,
    RelationRevived: Graph._revived,
    RelationRepointed: Graph._repointed,
    RelationDeleted: Graph._unrelated,
    ReflectionAdded: Graph._reflected,
    EntityRestored: Graph._entity_restored,
    ObservationRestored: Graph._observation_restored,
    RelationRestored: Graph._relation_restored,
    ReflectionRestored: Graph._reflection_restored,
}
