"""From records to facts: what a journal says, read from its start or from where a graph left off.

The law: a transaction is true as a whole or not at all, and what cannot be understood takes nothing
away. Everything goes by name here, as in the file; ids are given in the order of the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from mcp_memory.changes import (
    AnyChange,
    EntityAltered,
    EntityCreated,
    EntityDeleted,
    ObservationsAdded,
    ObservationsDeleted,
    RelationCreated,
    RelationDeleted,
)
from mcp_memory.facts import ACTIVE, GENERIC_TYPE, PLACEHOLDER, Entity, Observation, Relation
from mcp_memory.graph import Graph
from mcp_memory.stores.journal import mcpmem
from mcp_memory.stores.journal.content import Content
from mcp_memory.stores.journal.mcpmem import Found

Triple = tuple[str, str, str]
UNKNOWN = -1


class Stretch(msgspec.Struct, frozen=True):
    """Bytes of the file that are not served, and why."""

    start: int
    end: int
    reason: str


class Replay:
    """The facts of a journal. Over a graph it holds only what its records touch, and collects what they change."""

    def __init__(self, at: str, graph: Graph | None = None) -> None:
        self.changes: list[AnyChange] = []
        self.bad: list[Stretch] = []
        self.end = 0  # up to here nothing is left open
        self.tail: Stretch | None = None  # what stands behind it, and would spoil the next record
        self._at = at
        self._graph = graph
        self._entities: dict[str, Entity | None] = {}  # placeholders included; None: gone
        self._relations: dict[Triple, int | None] = {}
        self._links: dict[str, dict[Triple, None]] | None = None  # made when something is first deleted
        self._asked: set[str] = set()
        self._next_entity = graph.next_entity if graph is not None else 1
        self._next_observation = graph.next_observation if graph is not None else 1
        self._next_relation = graph.next_relation if graph is not None else 1
        self._open: list[Found] | None = None
        self._open_at = 0
        self._is_damaged = False
        self._cut: dict[Triple, None] = {}  # relations of an entity written anew, until they are written too

    def run(self, records: Iterable[Found], start: int) -> None:
        """Read up to the end; `start` is where the first of these records begins."""
        self.end = end = start
        for found in records:
            kind, begin, end, fields = found
            if 0 <= kind < mcpmem.BEGIN:
                if self._open is not None:
                    self._open.append(found)
                else:
                    DO[kind](self, found, *fields)
                    self.end = end
                continue
            if kind == mcpmem.TORN:
                self.tail = Stretch(begin, end, fields[0])
                break
            if kind == mcpmem.BAD:
                self.bad.append(Stretch(begin, end, fields[0]))
                self._is_damaged = True
            elif kind == mcpmem.BEGIN:
                if self._open is not None:
                    self.bad.append(Stretch(self._open_at, begin, UNFINISHED))
                self._open, self._open_at, self._is_damaged = [], begin, False
            else:
                if self._open is not None:
                    self._commit(self._open)
                self._open = None
            if self._open is None:
                self.end = end
        if self._open is not None:
            self.tail = Stretch(self._open_at, end, UNFINISHED)
            self.bad = [stretch for stretch in self.bad if stretch.start < self._open_at]

    def content(self) -> Content:
        """Everything that is true."""
        entities = self._entities
        kinds: dict[str, str] = {}
        content = Content(
            [entity for entity in entities.values() if entity is not None],
            [],
            self._next_entity,
            self._next_observation,
            self._next_relation,
        )
        for (source, target, kind), one in self._relations.items():
            if one is not None:
                ends = entities[source], entities[target]
                if ends[0] is not None and ends[1] is not None:
                    kind = kinds.setdefault(kind, kind)
                    content.relations.append(Relation(one, ends[0].id, ends[1].id, kind, self._at))
        content.sort()
        return content

    def _commit(self, group: list[Found]) -> None:
        anew: str | None = None
        for found, following in zip(group, [*group[1:], None], strict=True):
            kind, begin, end, fields = found
            if self._is_damaged and kind in TAKING_AWAY:
                self.bad.append(Stretch(begin, end, "it takes something away, in a transaction that is damaged"))
            elif kind == mcpmem.DELETE_ENTITY and _is_written_anew(fields[0], following):
                anew = fields[0]
            elif anew is not None:
                anew = None
                self._write_anew(found, *fields)
            else:
                DO[kind](self, found, *fields)
        cut, self._cut = self._cut, {}
        for triple in cut:
            self._drop(triple)

    # ── what is known ────────────────────────────────────────────────────────────────────────────

    def _named(self, name: str) -> Entity | None:
        entity = self._entities.get(name)
        if entity is None and self._graph is not None and name not in self._entities:
            known = self._graph.named(name)
            if known is not None:
                entity = msgspec.structs.replace(known, observations=known.observations[:])
            self._entities[name] = entity
        return entity

    def _relation(self, triple: Triple) -> int | None:
        known = self._relations.get(triple, UNKNOWN)
        if known != UNKNOWN or self._graph is None:
            return known if known != UNKNOWN else None
        one, other = self._graph.named(triple[0]), self._graph.named(triple[1])
        if one is None or other is None:
            return None
        relation = self._graph.relation(one.id, other.id, triple[2])
        if relation is None:
            return None
        self._relate(triple, relation.id)
        return relation.id

    def _relate(self, triple: Triple, relation_id: int) -> None:
        self._relations[triple] = relation_id
        if self._links is not None:
            self._links.setdefault(triple[0], {})[triple] = None
            self._links.setdefault(triple[1], {})[triple] = None

    def _linked(self, name: str) -> list[Triple]:
        """The relations of an entity that are true."""
        if self._links is None:
            self._links = {}
            for triple, relation_id in self._relations.items():
                if relation_id is not None:
                    self._relate(triple, relation_id)
        if self._graph is not None and name not in self._asked:
            self._asked.add(name)
            known = self._graph.named(name)
            name_of = self._graph.name_of
            for relation in self._graph.incident_to(known.id) if known is not None else ():
                triple = name_of(relation.source), name_of(relation.target), relation.relation_type
                if triple not in self._relations:
                    self._relate(triple, relation.id)
        return list(self._links.get(name, ()))

    # ── what each kind of record means ───────────────────────────────────────────────────────────

    def _create_entity(self, found: Found, name: str, entity_type: str, texts: list[str]) -> None:
        known = self._named(name)
        if known is not None and known.status != PLACEHOLDER:
            # The Rust server can write an entity twice. Its later type counts, and no text is lost.
            self._retype(known, entity_type)
            self._add(known, texts)
            return
        new, first, at = self._next_entity, self._next_observation, self._at
        observations = [Observation(first + i, text, at) for i, text in enumerate(texts)]
        self._entities[name] = Entity(new, name, entity_type, ACTIVE, at, at, observations)
        self._next_entity += 1
        self._next_observation += len(texts)
        if self._graph is not None:
            fills = known.id if known is not None else None
            self.changes.append(EntityCreated(new, name, entity_type, ACTIVE, first, texts, fills))

    def _create_relation(self, found: Found, source: str, target: str, kind: str) -> None:
        triple = source, target, kind
        entities, relations = self._entities, self._relations
        # Most records of a file come this way while it is read from its start.
        if self._links is None and self._graph is None and source in entities and target in entities:
            if triple not in relations:
                relations[triple] = self._next_relation
                self._next_relation += 1
            return
        if self._relation(triple) is not None:
            self._cut.pop(triple, None)
            return
        one, other = entities.get(source) or self._end(source), entities.get(target) or self._end(target)
        self._relate(triple, self._next_relation)
        if self._graph is not None:
            self.changes.append(RelationCreated(self._next_relation, one.id, other.id, kind))
        self._next_relation += 1

    def _end(self, name: str) -> Entity:
        known = self._named(name)
        if known is not None:
            return known
        at = self._at
        made = self._entities[name] = Entity(self._next_entity, name, GENERIC_TYPE, PLACEHOLDER, at, at, [])
        self._next_entity += 1
        self.changes.append(EntityCreated(made.id, name, GENERIC_TYPE, PLACEHOLDER))
        return made

    def _add_observations(self, found: Found, name: str, texts: list[str]) -> None:
        entity = self._named(name)
        if entity is None or entity.status == PLACEHOLDER:
            self.bad.append(Stretch(found[1], found[2], "it adds to an entity that is not there"))
        else:
            self._add(entity, texts)

    def _add(self, entity: Entity, texts: list[str]) -> None:
        known = {seen.text for seen in entity.observations}
        self._append(entity, [text for text in dict.fromkeys(texts) if text not in known])

    def _append(self, entity: Entity, texts: list[str]) -> None:
        if texts:
            first = self._next_observation
            entity.observations += [Observation(first + i, text, self._at) for i, text in enumerate(texts)]
            self._next_observation += len(texts)
            self.changes.append(ObservationsAdded(entity.id, first, texts))

    def _retype(self, entity: Entity, entity_type: str) -> None:
        if entity.entity_type != entity_type:
            entity.entity_type = entity_type
            self.changes.append(EntityAltered(entity.id, entity_type))

    def _remove(self, entity: Entity, ids: set[int]) -> None:
        if ids:
            entity.observations = [seen for seen in entity.observations if seen.id not in ids]
            self.changes.append(ObservationsDeleted(entity.id, sorted(ids)))

    def _delete_entity(self, found: Found, name: str) -> None:
        entity = self._named(name)
        if entity is None:
            return
        cut = self._linked(name)
        for triple in cut:
            self._unlink(triple)
        self._entities[name] = None
        self.changes.append(EntityDeleted(entity.id))
        for triple in cut:
            self._abandon(triple)

    def _delete_observations(self, found: Found, name: str, texts: list[str]) -> None:
        entity = self._named(name)
        if entity is not None:
            unwanted = set(texts)
            self._remove(entity, {seen.id for seen in entity.observations if seen.text in unwanted})

    def _delete_relation(self, found: Found, source: str, target: str, kind: str) -> None:
        if self._relation((source, target, kind)) is not None:
            self._drop((source, target, kind))

    def _drop(self, triple: Triple) -> None:
        relation_id = self._relation(triple)
        if relation_id is not None:
            self._linked(triple[0])  # the links must know it before it goes
            self._unlink(triple)
            self.changes.append(RelationDeleted(relation_id))
            self._abandon(triple)

    def _unlink(self, triple: Triple) -> None:
        self._relations[triple] = None
        for end in triple[:2]:
            if self._links is not None:
                self._links.get(end, {}).pop(triple, None)

    def _abandon(self, triple: Triple) -> None:
        """A placeholder stands only for the ends of relations."""
        for end in triple[:2]:
            entity = self._named(end)
            if entity is not None and entity.status == PLACEHOLDER and not self._linked(end):
                self._entities[end] = None
                self.changes.append(EntityDeleted(entity.id))

    def _write_anew(self, found: Found, name: str, entity_type: str, texts: list[str]) -> None:
        """An entity deleted and created again in one transaction is the same one: it keeps its place."""
        entity = self._named(name)
        if entity is None or entity.status == PLACEHOLDER:
            self._delete_entity(found, name)
            self._create_entity(found, name, entity_type, texts)
            return
        self._cut.update(dict.fromkeys(self._linked(name)))
        self._retype(entity, entity_type)
        kept = 0
        gone = set()
        for seen in entity.observations:
            if kept < len(texts) and seen.text == texts[kept]:
                kept += 1
            else:
                gone.add(seen.id)
        self._remove(entity, gone)
        self._append(entity, texts[kept:])


def _is_written_anew(name: str, following: Found | None) -> bool:
    return following is not None and following[0] == mcpmem.CREATE_ENTITY and following[3][0] == name


UNFINISHED = "a transaction that was never committed"
TAKING_AWAY = {mcpmem.DELETE_ENTITY, mcpmem.DELETE_OBSERVATIONS, mcpmem.DELETE_RELATION}
DO: tuple[Callable[..., None], ...] = (
    Replay._create_entity,
    Replay._create_relation,
    Replay._add_observations,
    Replay._delete_entity,
    Replay._delete_observations,
    Replay._delete_relation,
)
