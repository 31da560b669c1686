"""Tools that take away from what is known, or mark it as no longer true."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from mcp_memory.changes import (
    AnyChange,
    EntityDeleted,
    ObservationsDeleted,
    Plan,
    RelationDeleted,
    RelationEnded,
)
from mcp_memory.facts import BadInput, Entity, Relation
from mcp_memory.graph import Graph
from mcp_memory.tools.dialects import plain_entity
from mcp_memory.tools.inputs import Deletions, Names, Triple, Triples
from mcp_memory.tools.inverses import with_inverse
from mcp_memory.tools.registry import tool


@tool(camel=True, destructive=True, idempotent=True)
def delete_entities(graph: Graph, entity_names: Names) -> Plan:
    """Delete entities with all their observations and relations. Tells which were deleted and which not found."""
    found: dict[str, int] = {}
    errors = []
    for name in entity_names:
        entity_id = graph.id_of(name)
        if entity_id is None:
            errors.append(f"Entity not found: {name}")
        else:
            found[name] = entity_id
    changes = deletion(graph, set(found.values()))
    return Plan(changes, {"deleted": list(found), **({"errors": errors} if errors else {})})


def deletion(graph: Graph, going: Set[int]) -> list[AnyChange]:
    """Delete these, and every placeholder that only they were related to."""
    changes: list[AnyChange] = [EntityDeleted(entity_id) for entity_id in sorted(going)]
    if not graph.placeholders:
        return changes
    return changes + abandoned(graph, [r for entity_id in going for r in graph.incident_to(entity_id)], going)


def abandoned(graph: Graph, relations: list[Relation], going: Set[int] = frozenset()) -> list[AnyChange]:
    """Placeholders that are left without any relation once these are gone."""
    if not graph.placeholders:
        return []
    ids = {relation.id for relation in relations}
    ends = {end for relation in relations for end in (relation.source, relation.target)} - going
    return [
        EntityDeleted(end)
        for end in sorted(ends)
        if graph.by_id[end].is_placeholder and ids.issuperset(one.id for one in graph.incident_to(end))
    ]


@tool(destructive=True, idempotent=True)
def delete_observations(
    graph: Graph, name: str | None = None, observations: list[str] | None = None, deletions: Deletions = None
) -> Plan:
    """Delete observations by their exact text; the entity stays. For one entity give name and observations, for
    several deletions: [{entityName, observations}]."""
    if deletions is not None:
        going = [_unobserved(graph[deletion.entity_name], deletion.observations) for deletion in deletions]
        changes = [change for some, _ in going for change in some]
        told = _history(sum(count for _, count in going))
        return Plan(changes, {"success": True, "message": "Observations deleted successfully", **told})
    if name is None or observations is None:
        raise BadInput("Give name and observations, or deletions as [{entityName, observations}].")
    changes, history = _unobserved(graph[name], observations)
    return Plan(changes, lambda graph: {"entity": plain_entity(graph[name]), **_history(history)})


def _unobserved(entity: Entity, texts: list[str]) -> tuple[list[AnyChange], int]:
    """Delete what is believed; of a text that nobody believes any more what was superseded. And how much of that."""
    believed = set(entity.texts())
    unwanted = set(texts)
    history = unwanted - believed
    going = [seen for seen in entity.observations if seen.text in (history if seen.superseded_at else unwanted)]
    changes: list[AnyChange] = [ObservationsDeleted(entity.id, [seen.id for seen in going])] if going else []
    return changes, sum(seen.superseded_at is not None for seen in going)


def _history(count: int) -> dict[str, int]:
    return {"deletedHistory": count} if count else {}


@tool(destructive=True, idempotent=True)
def delete_relations(graph: Graph, relations: Triples) -> Plan:
    """Delete relations given as from, to, relationType, and their inverses. To keep them as history, use
    end_relation instead."""
    going: dict[int, Relation] = {}
    deleted, errors = [], []
    for given in relations:
        source, target = graph.id_of(given.source), graph.id_of(given.target)
        if source is None or target is None:
            errors.append(f"Entity not found: {given.source} or {given.target}")
            continue
        relation = graph.relation(source, target, given.relation_type)
        if relation is None:
            errors.append(f"Relation not found: {given.source} -> {given.target} ({given.relation_type})")
            continue
        going |= {one.id: one for one in with_inverse(graph, relation)}
        deleted.append(_said(given))
    changes: list[AnyChange] = [RelationDeleted(relation_id) for relation_id in sorted(going)]
    changes += abandoned(graph, list(going.values()))
    return Plan(changes, {"deleted": deleted, **({"errors": errors} if errors else {})})


def _said(given: Triple) -> dict[str, Any]:
    return {"from": given.source, "to": given.target, "relationType": given.relation_type}


@tool(idempotent=True)
def end_relation(graph: Graph, relation_id: int) -> Plan:
    """Mark a relation, and its inverse, as no longer true. It stays as history and can be created again; relation
    ids are in every answer that shows relations."""
    relation = graph.relations.get(relation_id)
    if relation is None:
        raise BadInput(f"Relation with id={relation_id} not found; describe_entity lists relations with their ids.")
    if not relation.is_active:
        return Plan([], {"result": f"Relation {relation_id} had already ended at {relation.ended_at}"})
    ending = [one for one in with_inverse(graph, relation) if one.is_active]
    answer: dict[str, Any] = {"result": f"Relation {relation_id} expired successfully"}
    if len(ending) > 1:
        answer["inverse_expired_id"] = ending[1].id
    return Plan([RelationEnded(one.id) for one in ending], answer)
