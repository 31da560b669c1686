"""The nine tools of the official memory server, exactly: names, schemas, answers, texts and refusals.

They stand on the same graph and the same changes as every other tool, but apart from the catalog of the
other profiles, whose tools of the same names say and do more. Nothing may be added to an answer here:
clients of the official server validate it against a closed schema. What each tool does was learned by
watching the real one; `tests/official` asks both and compares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any
from unicodedata import combining

import msgspec

from mcp_memory.changes import (
    AnyChange,
    EntityCreated,
    EntityDeleted,
    ObservationsAdded,
    ObservationsDeleted,
    Plan,
    RelationCreated,
    RelationDeleted,
    RelationRevived,
)
from mcp_memory.desk import Said
from mcp_memory.facts import GENERIC_TYPE, PLACEHOLDER, Entity, MemoryFault, Relation
from mcp_memory.graph import Graph
from mcp_memory.search.folding import fold
from mcp_memory.search.words import searched
from mcp_memory.tools.official_shapes import (
    Added,
    AddedObservations,
    Additions,
    Created,
    Deletion,
    Done,
    NewEntity,
    NewRelation,
    OfficialTool,
    Related,
    Shown,
    Wire,
    check_additions,
    check_entities,
    check_query,
    check_relations,
)
from mcp_memory.tools.registry import Tool, Within

_OFFICIAL: dict[str, Tool] = {}
Function = Callable[..., Any]
COMPOSING = re.compile(r"[^\x00-\u058f\u4e00-\u9fff]")


def official_tools() -> dict[str, Tool]:
    """The nine, by name, in the order in which the official server lists them."""
    return dict(_OFFICIAL)


def _official(answers: type[Wire], *, destructive: bool = False) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        _OFFICIAL[function.__name__] = OfficialTool(function, answers, destructive=destructive)
        return function

    return register


# ── remember ─────────────────────────────────────────────────────────────────────────────────────────


@_official(Created)
def create_entities(graph: Graph, entities: Annotated[list[NewEntity], Within(check_entities)]) -> Plan:
    """Store new entities with what is known of them. A name that is already taken is left as it is and
    missing from the answer: use add_observations for it."""
    changes: list[AnyChange] = []
    made: dict[str, NewEntity] = {}
    entity_id, observation_id = graph.next_entity, graph.next_observation
    for new in entities:
        standing = graph.named(new.name)
        if new.name in made or (standing is not None and not standing.is_placeholder):
            continue
        fills = None if standing is None else standing.id
        changes.append(
            EntityCreated(
                entity_id, new.name, new.entity_type, first=observation_id, texts=new.observations, fills=fills
            )
        )
        made[new.name] = new
        entity_id += 1
        observation_id += len(new.observations)
    return Plan(changes, _told("entities", list(made.values())))


@_official(Related)
def create_relations(graph: Graph, relations: Annotated[list[NewRelation], Within(check_relations)]) -> Plan:
    """Link entities: source, verb, target. A link that already stands is left as it is and missing from
    the answer. An end may name an entity that is yet to be created."""
    changes: list[AnyChange] = []
    made: dict[tuple[int, int, str], NewRelation] = {}
    placed: dict[str, int] = {}
    relation_id = graph.next_relation

    def end(name: str) -> int:
        entity = graph.named(name)
        if entity is not None:
            return entity.id
        if name not in placed:
            placed[name] = graph.next_entity + len(placed)
            changes.append(EntityCreated(placed[name], name, GENERIC_TYPE, PLACEHOLDER))
        return placed[name]

    for new in relations:
        triple = (end(new.source), end(new.target), new.relation_type)
        standing = graph.relation(*triple)
        if triple in made or (standing is not None and standing.is_active):
            continue
        made[triple] = new
        if standing is not None:
            changes.append(RelationRevived(standing.id))
        else:
            changes.append(RelationCreated(relation_id, *triple))
            relation_id += 1
    return Plan(changes, _told("relations", list(made.values())))


@_official(Added)
def add_observations(graph: Graph, observations: Annotated[list[Additions], Within(check_additions)]) -> Plan:
    """Add facts to entities that exist; what is already known is not stored twice. If one of the names is
    unknown, nothing is stored at all."""
    changes: list[AnyChange] = []
    results: list[AddedObservations] = []
    known: dict[int, set[str]] = {}
    observation_id = graph.next_observation
    for addition in observations:
        entity = graph.find(addition.entity_name)
        if entity is None:
            raise MemoryFault(f"Entity with name {addition.entity_name} not found")
        texts = known.setdefault(entity.id, set(entity.texts()))
        # Compared with what stands, not with each other: the official server keeps both of two equal ones.
        fresh = [text for text in addition.contents if text not in texts]
        texts.update(fresh)
        results.append(AddedObservations(addition.entity_name, fresh))
        if fresh:
            changes.append(ObservationsAdded(entity.id, observation_id, fresh))
            observation_id += len(fresh)
    return Plan(changes, _told("results", results))


# ── forget ───────────────────────────────────────────────────────────────────────────────────────────


@_official(Done, destructive=True)
def delete_entities(graph: Graph, entity_names: list[str]) -> Plan:
    """Remove entities, everything known of them and every relation that touches them. Unknown names are
    passed over."""
    going = {entity.id: entity for name in entity_names if (entity := graph.named(name)) is not None}
    cut = [relation for entity_id in going for relation in graph.incident_to(entity_id)]
    changes: list[AnyChange] = [EntityDeleted(entity_id) for entity_id in going]
    return Plan(changes + _abandoned(graph, cut, going), _done("Entities deleted successfully"))


@_official(Done, destructive=True)
def delete_observations(graph: Graph, deletions: list[Deletion]) -> Plan:
    """Remove facts from entities, by their exact text. What is not there is passed over."""
    going: dict[int, set[int]] = {}
    for deletion in deletions:
        entity = graph.find(deletion.entity_name)
        if entity is not None:
            texts = set(deletion.observations)
            ids = {seen.id for seen in entity.active() if seen.text in texts}
            if ids:
                going.setdefault(entity.id, set()).update(ids)
    changes: list[AnyChange] = [ObservationsDeleted(entity_id, sorted(ids)) for entity_id, ids in going.items()]
    return Plan(changes, _done("Observations deleted successfully"))


@_official(Done, destructive=True)
def delete_relations(graph: Graph, relations: list[NewRelation]) -> Plan:
    """Remove relations; each must be given with both names and its type. What is not there is passed over."""
    going: dict[int, Relation] = {}
    for one in relations:
        source, target = graph.named(one.source), graph.named(one.target)
        if source is not None and target is not None:
            relation = graph.relation(source.id, target.id, one.relation_type)
            if relation is not None and relation.is_active:
                going[relation.id] = relation
    changes: list[AnyChange] = [RelationDeleted(relation_id) for relation_id in going]
    return Plan(changes + _abandoned(graph, going.values()), _done("Relations deleted successfully"))


def _abandoned(graph: Graph, cut: Iterable[Relation], going: Iterable[int] = ()) -> list[AnyChange]:
    """Placeholders that no relation would hold any more once these are cut."""
    cut_ids, ends = set(), set()
    for relation in cut:
        cut_ids.add(relation.id)
        ends |= {relation.source, relation.target}
    return [
        EntityDeleted(end)
        for end in sorted(ends.difference(going))
        if graph.by_id[end].is_placeholder and cut_ids.issuperset(one.id for one in graph.incident_to(end))
    ]


# ── recall ───────────────────────────────────────────────────────────────────────────────────────────


@_official(Shown)
def read_graph(graph: Graph) -> Said:
    """Everything: all entities and all relations. It may be long; search_nodes and open_nodes tell less."""
    return _shown(graph, graph.entities(), graph.active_relations())


@_official(Shown)
def search_nodes(
    graph: Graph,
    query: Annotated[
        str, msgspec.Meta(description='Looked for as it stands, in any case; "" matches all'), Within(check_query)
    ],
) -> Said:
    """Find the entities whose name, type or facts contain the query, and the relations that touch them."""
    return _shown_with_relations(graph, _matching(graph, query))


@_official(Shown)
def open_nodes(graph: Graph, names: list[str]) -> Said:
    """Look up entities by their exact names, with the relations that touch them. Unknown names are
    passed over."""
    found = {entity.id: entity for name in names if (entity := graph.find(name)) is not None}
    return _shown_with_relations(graph, [found[entity_id] for entity_id in sorted(found)])


def _matching(graph: Graph, query: str) -> list[Entity]:
    """The entities with a field that contains the query in any case, in order of creation."""
    wanted, by_id = query.lower(), graph.by_id
    # The index folds more than case away, so it finds too many, and what it finds is looked at.
    candidates = graph.texts.candidates(_inner(fold(query)))
    return [
        by_id[entity_id]
        for entity_id in candidates
        if any(wanted in field.lower() for field in searched(by_id[entity_id]))
    ]


def _inner(folded: str) -> str:
    """The part of a folded text that looks the same inside every longer text.

    Folding composes letters: か and a voicing mark become が, three jamo one syllable. So a letter at the
    edge of the query may be part of another one in the text. No letter below U+0590 and no ideograph is."""
    start, end = 0, len(folded)
    while start < end and combining(folded[start]):
        start += 1
    if start < end and COMPOSING.match(folded[start]):
        start += 1
    while end > start and combining(folded[end - 1]):
        end -= 1
    if end > start and COMPOSING.match(folded[end - 1]):
        end -= 1
    return folded[start:end]


# ── how it is told ───────────────────────────────────────────────────────────────────────────────────


def _shown_with_relations(graph: Graph, entities: list[Entity]) -> Said:
    return _shown(graph, entities, graph.relations_touching(entity.id for entity in entities))


def _shown(graph: Graph, entities: Iterable[Entity], relations: Iterable[Relation]) -> Said:
    shown = Shown(
        [NewEntity(entity.name, entity.entity_type, entity.texts()) for entity in entities],
        [NewRelation(graph.name_of(r.source), graph.name_of(r.target), r.relation_type) for r in relations],
    )
    structured = msgspec.json.encode(shown)
    return Said(_indented(structured), msgspec.Raw(structured))


def _told(key: str, items: list[Any]) -> Said:
    """What was stored: the text is the bare list, the object has it under a key."""
    listed = msgspec.json.encode(items)
    return Said(_indented(listed), msgspec.Raw(b'{"%s":%s}' % (key.encode(), listed)))


def _done(message: str) -> Said:
    return Said(message, Done(True, message))


def _indented(encoded: bytes) -> str:
    return msgspec.json.format(encoded, indent=2).decode()
