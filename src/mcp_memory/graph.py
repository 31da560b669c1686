"""The resident read model of a space: what is true now, and how changes alter it.

The graph never decides and never writes: it answers primitive questions (`known.py`) and applies entries of
the feed. Everything it holds can be rebuilt from a store; two graphs fed the same entries are equal."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable
from copy import copy
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from mcp_memory.changes import (
    AnyChange,
    CallsUndone,
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
    RelationEnded,
    RelationRepointed,
    RelationRestored,
    RelationReverted,
    RelationRevived,
    RequestNoted,
)
from mcp_memory.facts import PLACEHOLDER, Entity, Observation, Reflection, Relation
from mcp_memory.known import Known
from mcp_memory.pace import spend
from mcp_memory.views import Glance

if TYPE_CHECKING:
    from mcp_memory.base import Base
    from mcp_memory.search.gathering import PassageIndex
    from mcp_memory.search.passages import Passages
    from mcp_memory.search.reflections import ReflectionIndex
    from mcp_memory.search.text import TextIndex

by_id = attrgetter("id")
Index = TypeVar("Index")

# Answers kept ready are kept by pages of this many ids, so that a change spoils one page only.
PAGE_BITS = 8
# Of how many entities the outgoing relations are kept indexed; about 500 bytes each.
MOST_OUTGOING = 50_000


class Graph(Known):
    """One space in memory, its indexes, and the changes that alter it."""

    def __init__(self, base: Base | None = None) -> None:
        super().__init__(base)
        self._indexes: dict[Callable[[Graph], Any], Any] = {}
        self._texts: TextIndex | None = None
        self._passages: PassageIndex | None = None
        self._thoughts: ReflectionIndex | None = None
        # Passages that an earlier process has packed, if somebody keeps them.
        self.kept_passages: Callable[[Graph], Passages | None] | None = None

    # ── indexes ──────────────────────────────────────────────────────────────────────────────────

    @property
    def texts(self) -> TextIndex:
        """The words of every entity, indexed at the first search and kept up with what was touched."""
        if self._texts is None:
            from mcp_memory.search.text import TextIndex

            packed = self._base.words() if self._base else None
            spend(len(self.by_id) if packed is None else 0)
            self._texts = TextIndex(self, packed)
        spend(len(self.touched))
        self._texts.refresh(self.touched)
        return self._texts

    @property
    def passages(self) -> PassageIndex:
        """Every observation as something that may answer a question; built at the first one asked."""
        if self._passages is None:
            from mcp_memory.search.gathering import PassageIndex

            self._passages = PassageIndex(self)
        return self._passages

    def newly_packed(self) -> tuple[Passages, int] | None:
        """All passages, if they have been packed since this was last asked, and at which entry of the feed."""
        index = self._passages
        if index is None:
            return None
        packed, index.packed = index.packed, None
        return packed

    @property
    def thoughts(self) -> ReflectionIndex:
        """The words of every reflection, indexed at the first search."""
        if self._thoughts is None:
            from mcp_memory.search.reflections import ReflectionIndex

            self._thoughts = ReflectionIndex()
        self._thoughts.follow(self.reflections)
        return self._thoughts

    def index(self, kind: Callable[[Graph], Index]) -> Index:
        """An index of this kind, made when it is first asked for; it follows what is touched."""
        made: Index | None = self._indexes.get(kind)
        if made is None:
            made = self._indexes[kind] = kind(self)
        return made

    def has_index(self, kind: Callable[[Graph], Any]) -> bool:
        return kind in self._indexes

    def glance(self, types: int, recent: int) -> Glance:
        """How much there is, its most frequent types, and the names of what was changed last."""
        from mcp_memory.search.recent import Recent

        names = [entity.name for entity in self.index(Recent).first(recent)]
        return Glance(self.entity_count, self.type_counts.most_common(types), names)

    # ── changes: entities ────────────────────────────────────────────────────────────────────────

    def apply(self, entries: Iterable[Entry]) -> None:
        """Make these entries true. They are valid: whoever wrote them planned them on this graph."""
        for entry in entries:
            at = entry.at
            for change in entry.changes:
                APPLY[type(change)](self, change, at)
            self.seq = entry.seq

    def insert(self, entity: Entity) -> None:
        """Take in an entity as it is."""
        entity_id = entity.id
        self.by_id.add(entity)
        if entity_id >= self.next_entity:  # nothing starts there yet: from here on it costs nothing to know
            if len(self.outgoing) >= MOST_OUTGOING:
                self.outgoing.clear()
            self.outgoing[entity_id] = {}
        self.ids.name(entity.name, entity_id)
        if self._base is not None and entity_id < self.next_entity:
            self._links[entity_id] = []  # back from the dead: the base may remember relations of its first life
        if entity_id >= self.next_entity:
            self.next_entity = entity_id + 1
        if entity.observations and entity.observations[-1].id >= self.next_observation:
            self.next_observation = entity.observations[-1].id + 1
        if entity.status == PLACEHOLDER:
            self.placeholders.add(entity_id)
            return
        self.entity_count += 1
        if self._shown is not None:
            self._shown.add(entity_id)
        self.observation_count += len(entity.active())
        self.type_counts[entity.entity_type] += 1
        typed = self._of_type.get(entity.entity_type)
        if typed is not None:
            if entity_id + 1 == self.next_entity:
                typed[entity_id] = None
            else:
                del self._of_type[entity.entity_type]
        self._spoil(entity)

    def _spoil(self, entity: Entity) -> None:
        """Drop what is kept ready of an entity."""
        self.touched.add(entity.id)
        for follower in self.followers:
            follower.add(entity.id)
        for onlooker in self.onlookers:
            onlooker.add(entity.id)
        self.fragments.pop(entity.name, None)
        self.entity_pages.pop(entity.id >> PAGE_BITS, None)

    def _created(self, change: EntityCreated, at: str) -> None:
        first = change.first
        observations = [Observation(first + i, text, at) for i, text in enumerate(change.texts)]
        entity = Entity(change.id, change.name, change.entity_type, change.status, at, at, observations)
        if change.fills is None:
            self.insert(entity)
            return
        relations = self._unlinked(change.fills)
        self._remove(change.fills)
        self.insert(entity)
        for relation in relations:
            if relation.source == change.fills:
                relation.source = entity.id
            if relation.target == change.fills:
                relation.target = entity.id
            self._link(relation)

    def _unlinked(self, entity_id: int) -> list[Relation]:
        """Take every relation off an entity and the entity's neighbours; they can be linked again."""
        relations = [self.relations.mutable(relation_id) for relation_id in self._linked(entity_id)]
        self._links[entity_id] = []  # first, or taking them off one by one would cost the square of a hub
        for relation in relations:
            self._unlink(relation)
        return relations

    def _remove(self, entity_id: int) -> Entity:
        entity = self.by_id.pop(entity_id)
        self.ids.unname(entity.name)
        self.placeholders.discard(entity_id)
        self._spoil(entity)
        return entity

    def _altered(self, change: EntityAltered, at: str) -> None:
        entity = self.by_id.mutable(change.id)
        if change.entity_type is not None and change.entity_type != entity.entity_type:
            _decrement(self.type_counts, entity.entity_type)
            self.type_counts[change.entity_type] += 1
            self._of_type.pop(entity.entity_type, None)
            self._of_type.pop(change.entity_type, None)
            entity.entity_type = change.entity_type
        if change.status is not None:
            entity.status = change.status
        self._touch(entity, at)

    def _touch(self, entity: Entity, at: str) -> None:
        entity.updated_at = at
        self._spoil(entity)

    def _deleted(self, change: EntityDeleted | EntityAbsorbed, at: str) -> None:
        for relation in self._unlinked(change.id):
            self._forget(relation)
        was_placeholder = change.id in self.placeholders
        entity = self._remove(change.id)
        if not was_placeholder:
            self.entity_count -= 1
            if self._shown is not None:
                self._shown.discard(entity.id)
            self.observation_count -= len(entity.active())
            _decrement(self.type_counts, entity.entity_type)
            typed = self._of_type.get(entity.entity_type)
            if typed is not None:
                del typed[entity.id]

    def _absorbed(self, change: EntityAbsorbed, at: str) -> None:
        for reflection in self.reflections.values():
            if reflection.target_type == "entity" and reflection.target_id == change.id:
                reflection.target_id = change.into
                self._spoil_reflection(reflection)
        self._deleted(change, at)

    def _entity_restored(self, change: EntityRestored, at: str) -> None:
        fact = change.fact
        # A copy: the entry may live on in a feed, and facts of the graph are altered in place.
        self.insert(msgspec.structs.replace(fact, observations=[copy(seen) for seen in fact.observations]))

    def _entity_reverted(self, change: EntityReverted, at: str) -> None:
        self._altered(EntityAltered(change.id, change.entity_type, change.status), change.updated_at)

    # ── changes: observations ────────────────────────────────────────────────────────────────────

    def _observed(self, change: ObservationsAdded, at: str) -> None:
        entity = self.by_id.mutable(change.entity)
        first, kind = change.first, change.kind
        entity.observations.extend(Observation(first + i, text, at, kind) for i, text in enumerate(change.texts))
        self.next_observation = max(self.next_observation, first + len(change.texts))
        self.observation_count += len(change.texts)
        self._touch(entity, at)

    def _superseded(self, change: ObservationSuperseded, at: str) -> None:
        entity = self.by_id.mutable(change.entity)
        for observation in entity.observations:
            if observation.id == change.id:
                observation.superseded_at = at
            elif observation.id == change.by:
                observation.supersedes = change.id
        self.observation_count -= 1
        self._touch(entity, at)

    def _unobserved(self, change: ObservationsDeleted, at: str) -> None:
        entity = self.by_id.mutable(change.entity)
        gone = set(change.ids)
        self.observation_count -= sum(seen.id in gone for seen in entity.active())
        entity.observations = [seen for seen in entity.observations if seen.id not in gone]
        for seen in entity.observations:
            if seen.supersedes in gone:
                seen.supersedes = None
        self._touch(entity, at)

    def _moved(self, change: ObservationsMoved, at: str) -> None:
        source, target = self.by_id.mutable(change.source), self.by_id.mutable(change.target)
        moving = set(change.ids)
        target.observations = sorted(
            target.observations + [seen for seen in source.observations if seen.id in moving], key=by_id
        )
        source.observations = [seen for seen in source.observations if seen.id not in moving]
        for follower in self.arrival_followers:
            follower.update(dict.fromkeys(change.ids, change.source))
        self._touch(source, at)
        self._touch(target, at)

    def _flagged(self, change: ObservationFlagged, at: str) -> None:
        observations = self.by_id.mutable(change.entity).observations
        # They stand in order of their ids: of an import thousands are flagged, one change each.
        place = bisect_left(observations, change.id, key=by_id)
        if place < len(observations) and observations[place].id == change.id:
            observations[place].similarity_flag = change.flag
        for onlooker in self.onlookers:
            onlooker.add(change.entity)

    def _observation_restored(self, change: ObservationRestored, at: str) -> None:
        entity = self.by_id.mutable(change.entity)
        insort(entity.observations, copy(change.fact), key=by_id)
        self.next_observation = max(self.next_observation, change.fact.id + 1)
        self.observation_count += change.fact.superseded_at is None
        for follower in self.arrival_followers:
            follower[change.fact.id] = 0
        self._spoil(entity)

    def _observation_reverted(self, change: ObservationReverted, at: str) -> None:
        entity = self.by_id.mutable(change.entity)
        for place, seen in enumerate(entity.observations):
            if seen.id == change.fact.id:
                entity.observations[place] = copy(change.fact)
                self.observation_count += (change.fact.superseded_at is None) - (seen.superseded_at is None)
        self._spoil(entity)

    # ── changes: relations ───────────────────────────────────────────────────────────────────────

    def keep(self, relation: Relation) -> None:
        """Take in a relation as it is, active or ended."""
        self.relations.add(relation)
        if relation.id >= self.next_relation:
            self.next_relation = relation.id + 1
        self._link(relation)
        if relation.ended_at is None:
            self._count(relation, 1)

    def _related(self, change: RelationCreated, at: str) -> None:
        self.keep(Relation(change.id, change.source, change.target, change.relation_type, at, change.context))

    def _link(self, relation: Relation) -> None:
        out = self.outgoing.get(relation.source)
        if out is not None:
            out[relation.target, relation.relation_type] = relation.id
        if relation.source == relation.target:
            self.loops.setdefault(relation.source, set()).add(relation.id)
        for end in _ends(relation):
            links = self._own_links(end)
            if links and links[-1] > relation.id:
                insort(links, relation.id)
            else:
                links.append(relation.id)
        self._spoil_relation(relation)

    def _own_links(self, entity_id: int) -> list[int]:
        """The links of an entity as a list that may be altered: once touched, the base is not asked again."""
        links = self._links.get(entity_id)
        if links is None:
            links = self._links[entity_id] = list(self._linked(entity_id))
        return links

    def _unlink(self, relation: Relation) -> None:
        out = self.outgoing.get(relation.source)
        if out is not None:
            out.pop((relation.target, relation.relation_type), None)
        if relation.source == relation.target:
            self._unloop(relation)
        for end in _ends(relation):
            links = self._own_links(end)
            if relation.id in links:
                links.remove(relation.id)
        self._spoil_relation(relation)

    def _unloop(self, relation: Relation) -> None:
        loops = self.loops.get(relation.source, set())
        loops.discard(relation.id)
        if not loops:
            self.loops.pop(relation.source, None)

    def _spoil_relation(self, relation: Relation) -> None:
        """Drop what is kept ready of a relation and of its ends' neighbourhoods."""
        self.relation_pages.pop(relation.id >> PAGE_BITS, None)
        for onlooker in self.onlookers:
            onlooker.update((relation.source, relation.target, relation.relation_type))
        for end in (relation.source, relation.target):
            self._near.pop(end, None)
            for follower in self.link_followers:
                follower.add(end)
            if self._base is not None:
                self._own_links(end)

    def _count(self, relation: Relation, step: int) -> None:
        self.relation_count += step
        if step > 0:
            self.relation_type_counts[relation.relation_type] += 1
        else:
            _decrement(self.relation_type_counts, relation.relation_type)
        for kind in ("", relation.relation_type) if self._active else ():
            roster = self._active.get(kind)
            if roster is not None:
                (roster.add if step > 0 else roster.discard)(relation.id)

    def _forget(self, relation: Relation) -> None:
        """Drop a relation that is linked nowhere any more."""
        self.relations.pop(relation.id)
        if relation.ended_at is None:
            self._count(relation, -1)

    def _ended(self, change: RelationEnded, at: str) -> None:
        relation = self.relations.mutable(change.id)
        relation.ended_at = at
        self._count(relation, -1)
        self._spoil_relation(relation)

    def _revived(self, change: RelationRevived, at: str) -> None:
        relation = self.relations.mutable(change.id)
        relation.ended_at = None
        if change.context is not None:
            relation.context = change.context
        self._count(relation, 1)
        self._spoil_relation(relation)

    def _repointed(self, change: RelationRepointed, at: str) -> None:
        relation = self.relations.mutable(change.id)
        self._unlink(relation)
        relation.source, relation.target = change.source, change.target
        self._link(relation)

    def _unrelated(self, change: RelationDeleted, at: str) -> None:
        relation = self.relations.mutable(change.id)
        self._unlink(relation)
        self._forget(relation)

    def _relation_restored(self, change: RelationRestored, at: str) -> None:
        self.keep(copy(change.fact))

    def _relation_reverted(self, change: RelationReverted, at: str) -> None:
        relation, fact = self.relations.mutable(change.fact.id), change.fact
        if relation.is_active != fact.is_active:
            self._count(relation, 1 if fact.is_active else -1)
        relation.created_at, relation.context, relation.ended_at = fact.created_at, fact.context, fact.ended_at
        self._spoil_relation(relation)

    # ── changes: reflections ─────────────────────────────────────────────────────────────────────

    def remember(self, reflection: Reflection) -> None:
        """Take in a reflection as it is."""
        is_late = reflection.id < next(reversed(self.reflections), 0)
        self.reflections[reflection.id] = reflection
        if is_late:
            self.reflections = dict(sorted(self.reflections.items()))
        self.next_reflection = max(self.next_reflection, reflection.id + 1)
        self._spoil_reflection(reflection)

    def _spoil_reflection(self, reflection: Reflection) -> None:
        """Something else is told of its target."""
        if reflection.target_type == "entity" and reflection.target_id is not None:
            for onlooker in self.onlookers:
                onlooker.add(reflection.target_id)

    def _reflected(self, change: ReflectionAdded, at: str) -> None:
        self.remember(
            Reflection(change.id, change.target_type, change.target_id, change.author, change.content, change.mood, at)
        )

    def _reflection_restored(self, change: ReflectionRestored, at: str) -> None:
        self.remember(copy(change.fact))

    def _reflection_reverted(self, change: ReflectionReverted, at: str) -> None:
        self._spoil_reflection(self.reflections[change.fact.id])
        self.reflections[change.fact.id] = copy(change.fact)
        self._spoil_reflection(change.fact)

    def _unreflected(self, change: ReflectionDeleted, at: str) -> None:
        self._spoil_reflection(self.reflections.pop(change.id))

    def _undone(self, change: CallsUndone, at: str) -> None:
        """What was taken back is told by the changes beside this one."""

    def _noted(self, change: RequestNoted, at: str) -> None:
        """Who asked for it is no fact."""


def _ends(relation: Relation) -> tuple[int, ...]:
    """The entities a relation touches, each once."""
    return (relation.source,) if relation.source == relation.target else (relation.source, relation.target)


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
    EntityReverted: Graph._entity_reverted,
    ObservationReverted: Graph._observation_reverted,
    RelationReverted: Graph._relation_reverted,
    ReflectionReverted: Graph._reflection_reverted,
    ReflectionDeleted: Graph._unreflected,
    CallsUndone: Graph._undone,
    RequestNoted: Graph._noted,
}
