"""What is true now: the state of a graph, and its primitive questions. Nothing here alters a fact.

It stands on a packed base (what was true when the base was made) and keeps objects only for what changed
since, so that a large space costs bytes. What is made ready for the next question is dropped by who alters it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, Self

from mcp_memory.facts import PLACEHOLDER, Entity, Reflection, Relation, UnknownEntity
from mcp_memory.roster import Roster
from mcp_memory.shelf import Names, Shelf
from mcp_memory.views import Lives

if TYPE_CHECKING:
    from mcp_memory.base import Base

# Of how many the neighbours are kept as they were found; about 100 bytes each.
MOST_NEAR = 200_000
# How many ids are kept in order by type.
MOST_TYPED = 200_000
# Of how many types of relations it is kept at hand which are active.
MOST_ROSTERS = 64


class Known:
    """One space in memory. `seq` is the last entry of the feed that it has seen."""

    def __init__(self, base: Base | None = None) -> None:
        self._base = base
        self.seq = 0
        self.by_id: Shelf[Entity] = Shelf(base.entities if base else None)
        self.relations: Shelf[Relation] = Shelf(base.relations if base else None)
        self.ids = Names(base.find, len(base.entities.ids)) if base else Names()  # placeholders included
        self.placeholders: set[int] = set()
        self.loops: dict[int, set[int]] = {}  # by entity the relations to itself
        self.reflections: dict[int, Reflection] = {}
        # Ids of the relations touching an entity, in order, where they differ from the base.
        self._links: dict[int, list[int]] = {}
        # Made when first asked for, dropped when a relation of the entity changes:
        self._near: dict[int, Sequence[int]] = {}  # its neighbours
        # By source: target and type -> relation. Ask `relation_id` where a source is missing.
        self.outgoing: dict[int, dict[tuple[int, str], int]] = {}
        self.next_entity = self.next_observation = self.next_relation = self.next_reflection = 1
        self.entity_count = 0
        self.observation_count = 0  # active ones
        self.relation_count = 0  # active ones
        self.type_counts: Counter[str] = Counter()
        self.relation_type_counts: Counter[str] = Counter()
        # Entities whose text changed since the word index last looked.
        self.touched: set[int] = set()
        self.examined: float = inf  # up to which observation duplicates were looked for, if somebody does
        self.lives: Lives | None = None  # of relations that became true again, from a feed if there is one
        self.followers: list[set[int]] = []  # whoever else keeps an index is told in a set of his own
        self.link_followers: list[set[int]] = []  # the same for entities whose relations changed
        # The same for observations that came from elsewhere: the entity they came from, 0 for those that came back.
        self.arrival_followers: list[dict[int, int]] = []
        # Who wants to know of what something else is told now: entities by id, types of relations by name.
        self.onlookers: list[set[int | str]] = []
        self._of_type: dict[str, dict[int, None]] = {}  # by type asked for, in order
        self._shown: Roster | None = None  # every entity, from the first page asked for on
        self._active: dict[str, Roster] = {}  # the same for active relations by type; "" is any
        # Encoded answers, kept by whoever makes them; the graph only drops what a change spoils.
        self.fragments: dict[str, bytes] = {}
        self.entity_pages: dict[int, Any] = {}
        self.relation_pages: dict[int, Any] = {}
        if base is not None:
            self._stand_on(base)

    def _stand_on(self, base: Base) -> None:
        counts = base.counts
        self.seq = counts.seq
        self.placeholders = set(base.header.placeholders)
        for relation_id, entity_id in base.header.loops:
            self.loops.setdefault(entity_id, set()).add(relation_id)
        self.reflections = {reflection.id: reflection for reflection in base.header.reflections}
        self.next_entity, self.next_observation = counts.next_entity, counts.next_observation
        self.next_relation, self.next_reflection = counts.next_relation, counts.next_reflection
        self.entity_count, self.observation_count = counts.entities, counts.observations
        self.relation_count = counts.relations
        self.type_counts, self.relation_type_counts = Counter(counts.types), Counter(counts.relation_types)

    @property
    def base(self) -> Base | None:
        return self._base

    @property
    def base_seq(self) -> int:
        """The entry that the base was made at."""
        return 0 if self._base is None else self._base.counts.seq

    def fresh(self) -> Self:
        """Another one on the same base, without what changed since: nothing is copied but the names."""
        return type(self)(self._base)

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    def find(self, name: str) -> Entity | None:
        """The entity of exactly this name, if it was created."""
        entity_id = self.id_of(name)
        return None if entity_id is None else self.by_id[entity_id]

    def id_of(self, name: str) -> int | None:
        """Its id, without looking at the entity."""
        entity_id = self.ids[name]
        return None if entity_id in self.placeholders else entity_id

    def named(self, name: str) -> Entity | None:
        """The entity of this name, or the placeholder that stands for it."""
        entity_id = self.ids[name]
        return None if entity_id is None else self.by_id[entity_id]

    def __getitem__(self, name: str) -> Entity:
        entity = self.find(name)
        if entity is None:
            raise UnknownEntity(name)
        return entity

    def __contains__(self, name: str) -> bool:
        return self.id_of(name) is not None

    def entities(self) -> Iterator[Entity]:
        """Every entity, in order of creation."""
        return (entity for entity in self.by_id.values() if entity.status != PLACEHOLDER)

    def active_relations(self) -> Iterator[Relation]:
        """Every relation that is true now, in order of creation."""
        return (relation for relation in self.relations.values() if relation.ended_at is None)

    def entity_page(self, entity_type: str, offset: int, count: int) -> tuple[list[int], int]:
        """At most so many entities of a type ("": any) from a place on, in order of creation; how many there are."""
        if entity_type:
            of_type = self.ids_of_type(entity_type)
            return list(islice(of_type, offset, offset + count)), len(of_type)
        if self._shown is None:
            shelf = self.by_id
            packed = self._base.entities.ids if self._base is not None else ()
            live = [one.id for one in shelf.live.values() if not one.is_placeholder]
            self._shown = Roster(packed, shelf.covered | self.placeholders, live)
        return self._shown.page(offset, count), self.entity_count

    def relation_page(self, relation_type: str, offset: int, count: int) -> tuple[list[Relation], int]:
        """The same for active relations."""
        if relation_type and relation_type not in self.relation_type_counts:
            return [], 0
        roster = self._active.get(relation_type)
        if roster is None:
            if len(self._active) >= MOST_ROSTERS:
                self._active.clear()
            roster = self._active[relation_type] = self._roster_of(relation_type)
        return self.relations.many(roster.page(offset, count)), len(roster)

    def _roster_of(self, relation_type: str) -> Roster:
        shelf, base = self.relations, self._base
        live = [
            one.id
            for one in shelf.live.values()
            if one.ended_at is None and (not relation_type or one.relation_type == relation_type)
        ]
        if base is None:
            return Roster((), (), live)
        return Roster(base.relations_of_type(relation_type), shelf.covered.union(base.ended), live)

    def incident_to(self, entity_id: int) -> list[Relation]:
        """Every relation touching an entity, ended ones included, in order of creation."""
        return self.relations.many(self._linked(entity_id))

    def relations_of(self, entity_id: int) -> list[Relation]:
        """The relations touching an entity that are true now, in order of creation."""
        return [relation for relation in self.incident_to(entity_id) if relation.ended_at is None]

    def relations_touching(self, entity_ids: Iterable[int]) -> list[Relation]:
        """The relations with at least one end among these, each once, in order of creation."""
        return [relation for relation in self.ever_touching(entity_ids) if relation.ended_at is None]

    def ever_touching(self, entity_ids: Iterable[int]) -> list[Relation]:
        """The same, ended ones included."""
        found: set[int] = set()
        for entity_id in entity_ids:
            found.update(self._linked(entity_id))
        return self.relations.many(sorted(found))

    def relations_among(self, entity_ids: Collection[int]) -> list[Relation]:
        """The active relations with both ends among these, in order of creation."""
        ids = set(entity_ids)
        near = self._near.get
        # Who has a neighbour among these is found without looking at a relation.
        joined = [one for one in ids if not ids.isdisjoint(near(one) or self._beside(one))]
        # Among the links of those, a relation inside is found twice.
        seen: set[int] = set()
        inside: set[int] = set()
        for entity_id in joined:
            links = self._linked(entity_id)
            inside.update(seen.intersection(links))
            seen.update(links)
        inside.update(*(self.loops[entity_id] for entity_id in ids & self.loops.keys()))
        relations = self.relations.many(sorted(inside))
        return [relation for relation in relations if relation.ended_at is None]

    def reflections_on(self, entity_id: int) -> list[Reflection]:
        """What was reflected on an entity, oldest first."""
        found = self.reflections.values()
        return [r for r in found if r.target_type == "entity" and r.target_id == entity_id]

    def degree(self, entity_id: int) -> int:
        """How many relations touch an entity, ended ones included."""
        return len(self._linked(entity_id))

    def relation(self, source: int, target: int, relation_type: str) -> Relation | None:
        """The relation of this triple, active or ended: there is at most one."""
        relation_id = self.relation_id(source, target, relation_type)
        return None if relation_id is None else self.relations[relation_id]

    def relation_id(self, source: int, target: int, relation_type: str) -> int | None:
        """Its id, without looking at the relation."""
        out = self.outgoing.get(source)
        if out is None:
            # Of an entity that only the base knows, its neighbours tell without decoding a relation.
            if self._base is not None and source not in self._links and not self._base.has_ended:
                near = self._near.get(source)
                if near is None:
                    near = self._near[source] = self._base.near(source)
                if target not in near and target != source and target not in self.placeholders:
                    return None
            out = self._outgoing(source)
        return out.get((target, relation_type))

    def name_of(self, entity_id: int) -> str:
        if self._base is not None:
            row = self._base.entities.row(entity_id)
            if row is not None:  # an id keeps its name for ever
                return self._base.name_list[row]
        return self.by_id[entity_id].name

    def names_of(self, entity_ids: Iterable[int]) -> Iterator[str]:
        """The same for many, four times as fast where the base lists its names without a gap."""
        named = self._base.named if self._base is not None else None
        if named is None:
            return map(self.name_of, entity_ids)
        first, names = named
        last = first + len(names)
        return (names[i - first] if first <= i < last else self.by_id[i].name for i in entity_ids)

    def ids_of_type(self, entity_type: str) -> dict[int, None]:
        """The entities of a type, in order of creation; ask, don't keep."""
        found = self._of_type.get(entity_type)
        if found is None:
            if sum(map(len, self._of_type.values())) > MOST_TYPED:
                self._of_type.clear()
            found = self._of_type[entity_type] = dict.fromkeys(self._sorted_by_type(entity_type))
        return found

    def _sorted_by_type(self, entity_type: str) -> list[int]:
        shelf = self.by_id
        live = [one.id for one in shelf.live.values() if one.entity_type == entity_type and not one.is_placeholder]
        packed = self._base.of_type(entity_type) if self._base is not None else []
        if shelf.covered:
            packed = [entity_id for entity_id in packed if entity_id not in shelf.covered]
        return sorted(packed + live) if live else packed

    def neighbours(self, entity_ids: Iterable[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """For each entity those that an active relation joins it with, each once, in order of creation
        of the relations; neither itself nor placeholders."""
        near = self._near
        for entity_id in entity_ids:
            found = near.get(entity_id)
            yield entity_id, self._beside(entity_id) if found is None else found

    def _beside(self, entity_id: int) -> Sequence[int]:
        if len(self._near) >= MOST_NEAR:
            self._near.clear()
        found = self._near[entity_id] = self._look_around(entity_id)
        return found

    def _look_around(self, entity_id: int) -> Sequence[int]:
        if self._base is not None and entity_id not in self._links:
            return self._base.near(entity_id)
        found: dict[int, None] = {}
        for relation in self.relations_of(entity_id):
            other = relation.target if relation.source == entity_id else relation.source
            if other != entity_id and other not in self.placeholders:
                found[other] = None
        return tuple(found)

    def _linked(self, entity_id: int) -> Sequence[int]:
        links = self._links.get(entity_id)
        if links is None:
            return self._base.incident(entity_id) if self._base is not None else ()
        return links

    def _outgoing(self, source: int) -> dict[tuple[int, str], int]:
        out = self.outgoing.get(source)
        if out is None:
            out = self.outgoing[source] = {
                (relation.target, relation.relation_type): relation.id
                for relation in self.incident_to(source)
                if relation.source == source
            }
        return out
