"""Random histories of a space: every kind of change, always valid, and graphs made of them in every way.

A history is played from a list of small numbers, so that hypothesis can shrink it: each step says what
to try and which of the facts at hand to try it on. What cannot be done there is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import apsw
import msgspec
from hypothesis import strategies as st

from mcp_memory import changes as c
from mcp_memory.base import Base
from mcp_memory.facts import ACTIVE, PLACEHOLDER, Entity, Observation, Reflection, Relation
from mcp_memory.graph import Graph
from mcp_memory.packing import Packer
from mcp_memory.stores.sqlite.loading import pack
from mcp_memory.stores.sqlite.projection import Projector
from mcp_memory.stores.sqlite.schema import prepare
from mcp_memory.tools.forget import abandoned, deletion

NAMES = ["Ada", "Bob", "Żółć Café", "名前", "a_b c", "Ada Bob", "x", "Ñandú-7", "tea", 'q"\\']
TYPES = ["Person", "Thing", "tea house"]
KINDS = ["knows", "owns", "likes"]
TEXTS = ["likes tea", "plays chess with Ada", "", "línea\nnueva", "100% wool_coat", "🫖 名前", "ＣＡＦＥ́", "tea tea"]


class Step(NamedTuple):
    """What to try, on which facts, and whether the packed graph is packed anew after it."""

    what: int
    a: int
    b: int
    c: int
    packs: bool


class History:
    """What has happened so far, and the plain graph in which it did."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.entries: list[c.Entry] = []
        self.gone: list[Entity | tuple[int, Observation] | Relation] = []

    def play(self, steps: Iterable[Step]) -> History:
        for step in steps:
            self.take(step)
        return self

    def take(self, step: Step) -> c.Entry | None:
        """Do it if it can be done here; the entry it made."""
        made = TRIED[step.what % len(TRIED)](self, step.a, step.b, step.c)
        if not made:
            return None
        entry = c.Entry(len(self.entries) + 1, f"2026-01-01 00:{len(self.entries) % 60:02}:00", made)
        self.entries.append(entry)
        self.graph.apply([again(entry)])
        return entry

    # ── what is at hand ──────────────────────────────────────────────────────────────────────────

    def entity(self, pick: int) -> Entity | None:
        found = list(self.graph.entities())
        return found[pick % len(found)] if found else None

    def relation(self, pick: int, active: bool | None = None) -> Relation | None:
        found = [r for r in self.graph.relations.values() if active is None or r.is_active == active]
        return found[pick % len(found)] if found else None

    def free_name(self, pick: int) -> str | None:
        found = [name for name in NAMES if name not in self.graph.ids]
        return found[pick % len(found)] if found else None

    def new_relation(self, source: int, target: int, kind: str) -> list[c.AnyChange]:
        if self.graph.relation(source, target, kind) is not None:
            return []
        context = f"ctx {kind}" if source % 2 else None
        return [c.RelationCreated(self.graph.next_relation, source, target, kind, context)]

    def lose(self, entity: Entity) -> None:
        """Keep what goes with an entity, to bring it back some day."""
        facts: list[Entity | tuple[int, Observation] | Relation] = [copied(entity)]
        self.gone += [*facts, *map(copied, self.graph.incident_to(entity.id))]


def again(entry: c.Entry) -> c.Entry:
    """The entry as read back from a feed: no two graphs share a fact."""
    return c.Entry(entry.seq, entry.at, c.decode_changes(c.encode_changes(entry.changes)))


F = TypeVar("F", Entity, Observation, Relation)


def copied(fact: F) -> F:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(fact), type=type(fact))


# ── what can be tried ────────────────────────────────────────────────────────────────────────────

Changes = list[c.AnyChange]


def some_texts(pick: int) -> list[str]:
    return [TEXTS[(pick + i) % len(TEXTS)] for i in range(pick % 4)]


def create(h: History, a: int, b: int, k: int) -> Changes:
    name = h.free_name(a)
    if name is None:
        return []
    status = "done" if k % 3 == 2 else ACTIVE
    g = h.graph
    return [c.EntityCreated(g.next_entity, name, TYPES[b % len(TYPES)], status, g.next_observation, some_texts(k))]


def name_somebody_unknown(h: History, a: int, b: int, k: int) -> Changes:
    name, entity = h.free_name(a), h.entity(b)
    if name is None:
        return []
    placeholder = h.graph.next_entity
    other = placeholder if entity is None or k % 5 == 4 else entity.id
    ends = (other, placeholder) if k % 2 else (placeholder, other)
    return [
        c.EntityCreated(placeholder, name, "Generic", PLACEHOLDER),
        c.RelationCreated(h.graph.next_relation, *ends, KINDS[k % len(KINDS)]),
    ]


def fill(h: History, a: int, b: int, k: int) -> Changes:
    g = h.graph
    waiting = sorted(g.placeholders)
    if not waiting:
        return []
    placeholder = g.by_id[waiting[a % len(waiting)]]
    return [
        c.EntityCreated(
            g.next_entity,
            placeholder.name,
            TYPES[b % len(TYPES)],
            first=g.next_observation,
            texts=some_texts(k),
            fills=placeholder.id,
        )
    ]


def alter(h: History, a: int, b: int, k: int) -> Changes:
    entity = h.entity(a)
    if entity is None:
        return []
    return [c.EntityAltered(entity.id, TYPES[b % len(TYPES)] if k % 3 else None, "done" if k % 2 else None)]


def delete(h: History, a: int, b: int, k: int) -> Changes:
    going = {e.id: e for e in (h.entity(a), h.entity(b) if k % 3 == 0 else None) if e is not None}
    made = deletion(h.graph, set(going))
    for entity in going.values():
        h.lose(entity)
    return made


def absorb(h: History, a: int, b: int, k: int) -> Changes:
    source, target = h.entity(a), h.entity(b)
    if source is None or target is None or source.id == target.id:
        return []
    made: Changes = []
    if k % 2 and source.observations:
        made.append(c.ObservationsMoved(source.id, target.id, [seen.id for seen in source.observations]))
    left = []
    taken = set()
    for relation in h.graph.incident_to(source.id):
        ends = [target.id if end == source.id else end for end in (relation.source, relation.target)]
        triple = (ends[0], ends[1], relation.relation_type)
        if k % 3 and ends[0] != ends[1] and triple not in taken and h.graph.relation(*triple) is None:
            taken.add(triple)
            made.append(c.RelationRepointed(relation.id, *ends))
        else:
            left.append(relation)
    return [*made, c.EntityAbsorbed(source.id, target.id), *abandoned(h.graph, left, {source.id})]


def observe(h: History, a: int, b: int, k: int) -> Changes:
    entity = h.entity(a)
    texts = some_texts(b)
    if entity is None or not texts:
        return []
    return [c.ObservationsAdded(entity.id, h.graph.next_observation, texts, "milestone" if k % 2 else "generic")]


def supersede(h: History, a: int, b: int, k: int) -> Changes:
    entity = h.entity(a)
    if entity is None or not entity.active():
        return []
    old = entity.active()[b % len(entity.active())]
    new = h.graph.next_observation
    return [
        c.ObservationsAdded(entity.id, new, [TEXTS[k % len(TEXTS)]]),
        c.ObservationSuperseded(entity.id, old.id, new),
    ]


def unobserve(h: History, a: int, b: int, k: int) -> Changes:
    entity = h.entity(a)
    ids = [] if entity is None else [s.id for i, s in enumerate(entity.observations) if (b + i) % 3 == 0 or k % 5 == 0]
    if entity is None or not ids:
        return []
    h.gone += [(entity.id, Observation(s.id, s.text, s.created_at, s.kind)) for s in entity.observations if s.id in ids]
    return [c.ObservationsDeleted(entity.id, ids)]


def move(h: History, a: int, b: int, k: int) -> Changes:
    source, target = h.entity(a), h.entity(b)
    if source is None or target is None or source.id == target.id or not source.observations:
        return []
    # An observation and what it superseded stay together.
    free = [s.id for s in source.observations if s.supersedes is None and s.superseded_at is None]
    ids = free[: 1 + k % 2] if k % 3 else [s.id for s in source.observations]
    return [c.ObservationsMoved(source.id, target.id, ids)] if ids else []


def flag(h: History, a: int, b: int, k: int) -> Changes:
    entity = h.entity(a)
    if entity is None or not entity.observations:
        return []
    return [c.ObservationFlagged(entity.id, entity.observations[b % len(entity.observations)].id, k % 3)]


def relate(h: History, a: int, b: int, k: int) -> Changes:
    source, target = h.entity(a), h.entity(b)
    if source is None or target is None:
        return []
    return h.new_relation(source.id, target.id, KINDS[k % len(KINDS)])


def relate_to_itself(h: History, a: int, b: int, k: int) -> Changes:
    return relate(h, a, a, k)


def make_a_hub(h: History, a: int, b: int, k: int) -> Changes:
    hub = h.entity(a)
    if hub is None:
        return []
    made: Changes = []
    for one in h.graph.by_id:
        ends = (hub.id, one) if (one + b) % 2 else (one, hub.id)
        if h.graph.relation(*ends, KINDS[k % len(KINDS)]) is None:
            made.append(c.RelationCreated(h.graph.next_relation + len(made), *ends, KINDS[k % len(KINDS)]))
    return made


def end(h: History, a: int, b: int, k: int) -> Changes:
    relation = h.relation(a, active=True)
    return [] if relation is None else [c.RelationEnded(relation.id)]


def revive(h: History, a: int, b: int, k: int) -> Changes:
    relation = h.relation(a, active=False)
    return [] if relation is None else [c.RelationRevived(relation.id, "again" if k % 2 else None)]


def repoint(h: History, a: int, b: int, k: int) -> Changes:
    relation, entity = h.relation(a), h.entity(b)
    if relation is None or entity is None:
        return []
    ends = (entity.id, relation.target) if k % 2 else (relation.source, entity.id)
    if h.graph.relation(*ends, relation.relation_type) is not None:
        return []
    left = [one for one in (relation.source, relation.target) if one not in ends]
    return [
        c.RelationRepointed(relation.id, *ends),
        *(change for change in abandoned(h.graph, [relation]) if getattr(change, "id", 0) in left),
    ]


def unrelate(h: History, a: int, b: int, k: int) -> Changes:
    relation = h.relation(a)
    if relation is None:
        return []
    h.gone.append(copied(relation))
    return [c.RelationDeleted(relation.id), *abandoned(h.graph, [relation])]


def reflect(h: History, a: int, b: int, k: int) -> Changes:
    entity = h.entity(a)
    kind, target = ("entity", entity.id) if entity is not None and k % 3 else ("global", None)
    return [c.ReflectionAdded(h.graph.next_reflection, kind, target, "ada", TEXTS[b % len(TEXTS)], None)]


def restore(h: History, a: int, b: int, k: int) -> Changes:
    """What once was, with the id it had; or something from elsewhere, with an id of its own."""
    g = h.graph
    if not h.gone:
        return [c.ReflectionRestored(Reflection(g.next_reflection + b % 3, "global", None, "bob", "x", "calm", "then"))]
    fact = h.gone[a % len(h.gone)]
    if isinstance(fact, Entity):
        return [c.EntityRestored(copied(fact))] if can_live_again(g, fact) else []
    if isinstance(fact, Relation):
        return [c.RelationRestored(copied(fact))] if can_link_again(g, fact) else []
    owner, seen = fact
    can = owner in g.by_id and owner not in g.placeholders and seen.id not in ids_of_observations(g)
    return [c.ObservationRestored(owner, copied(seen))] if can else []


def can_live_again(g: Graph, fact: Entity) -> bool:
    taken = ids_of_observations(g) & {seen.id for seen in fact.observations}
    return fact.name not in g.ids and fact.id not in g.by_id and not taken


def can_link_again(g: Graph, fact: Relation) -> bool:
    if fact.source not in g.by_id or fact.target not in g.by_id or fact.id in g.relations:
        return False
    return g.relation(fact.source, fact.target, fact.relation_type) is None


def ids_of_observations(g: Graph) -> set[int]:
    return {seen.id for entity in g.by_id.values() for seen in entity.observations}


def bring_from_elsewhere(h: History, a: int, b: int, k: int) -> Changes:
    name = h.free_name(a)
    if name is None:
        return []
    g = h.graph
    first = g.next_observation + b % 5
    seen = [Observation(first + i, text, "then", "event") for i, text in enumerate(some_texts(k))]
    return [c.EntityRestored(Entity(g.next_entity + b % 7, name, TYPES[k % len(TYPES)], ACTIVE, "then", "then", seen))]


TRIED: list[Callable[[History, int, int, int], Changes]] = [
    create,
    create,
    create,
    relate,
    relate,
    relate,
    observe,
    name_somebody_unknown,
    fill,
    alter,
    delete,
    absorb,
    supersede,
    unobserve,
    move,
    flag,
    relate_to_itself,
    make_a_hub,
    end,
    revive,
    repoint,
    unrelate,
    reflect,
    restore,
    restore,
    bring_from_elsewhere,
]

numbers = st.integers(0, 11)
steps = st.builds(Step, st.integers(0, len(TRIED) - 1), numbers, numbers, numbers, st.booleans())
histories = st.lists(steps, min_size=1, max_size=40)


# ── the same facts in another form ───────────────────────────────────────────────────────────────


def packed(graph: Graph, with_words: bool = True) -> Base:
    """A base of what is true in a graph."""
    packer = Packer(with_words)
    for entity in graph.by_id.values():
        packer.add_entity(entity)
    for relation in graph.relations.values():
        packer.add_relation(relation)
    for reflection in graph.reflections.values():
        packer.add_reflection(reflection)
    counts = packer.counts
    counts.seq = graph.seq
    counts.next_entity, counts.next_observation = graph.next_entity, graph.next_observation
    counts.next_relation, counts.next_reflection = graph.next_relation, graph.next_reflection
    return Base(packer.finish())


def tables(entries: Iterable[c.Entry]) -> apsw.Connection:
    """A database in memory whose tables stand where these entries lead."""
    connection = apsw.Connection(":memory:")
    connection.execute("PRAGMA foreign_keys = ON")
    prepare(connection, ":memory:", has_vectors=False)
    projector = Projector(connection, has_vectors=False)
    seq = 0
    for entry in entries:
        projector.project(again(entry))
        seq = entry.seq
    projector.finish()
    connection.execute("update space_state set value = ? where key = 'projected_seq'", (seq,))
    return connection


def loaded(entries: Iterable[c.Entry]) -> Graph:
    """What a fresh process finds."""
    return Graph(Base(pack(tables(entries))))
