"""Tools that show what is known, by exact name or all of it."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from mcp_memory.facts import Entity
from mcp_memory.graph import Graph
from mcp_memory.tools.dialects import shown_observation, shown_relation, shown_relations
from mcp_memory.tools.inputs import Name, Names, Offset
from mcp_memory.tools.registry import tool
from mcp_memory.tools.rendering import entities_json, entity_json, everything_json, relations_json


@tool(camel=True)
def read_graph(graph: Graph, entity_type: str = "", offset: Offset = 0, limit: Offset | None = None) -> dict[str, Any]:
    """Everything, or one page: entities of a type, skipping offset, at most limit; then only relations between
    entities of the page. On a large memory search first, and page."""
    if not entity_type and not offset and limit is None:
        return everything_json(graph)
    found = _ids(graph, entity_type)
    page = found[offset:] if limit is None else found[offset : offset + limit]
    answer: dict[str, Any] = {
        "entities": entities_json(graph, page),
        "relations": relations_json(graph, graph.relations_among(page)),
    }
    if offset + len(page) < len(found):
        answer |= {"total": len(found), "nextOffset": offset + len(page)}
    return answer


def _ids(graph: Graph, entity_type: str) -> list[int]:
    """The entities of a type, or all, in order of creation."""
    if entity_type:
        return list(graph.ids_of_type(entity_type))
    return [entity_id for entity_id in graph.by_id if entity_id not in graph.placeholders]


@tool
def open_nodes(graph: Graph, names: Names, detail: bool = False) -> dict[str, Any]:
    """Entities by exact name, in the order asked for, with the relations touching them; unknown names are left
    out. detail adds ids, kinds, status and reflections."""
    found = [entity_id for entity_id in map(graph.id_of, dict.fromkeys(names)) if entity_id is not None]
    return {
        "entities": [detailed_entity(graph, graph.by_id[entity_id]) for entity_id in found]
        if detail
        else entities_json(graph, found),
        "relations": shown_relations(graph, graph.relations_touching(found)),
    }


@tool
def get_entity(graph: Graph, name: Name) -> Raw:
    """One entity by exact name: type and observations, no relations."""
    return entity_json(graph, name)


@tool
def batch_get_entities(graph: Graph, names: Names) -> dict[str, Any]:
    """Several entities by exact name, in the order asked for; null where there is none."""
    return {"entities": [entity_json(graph, name) if name in graph else None for name in names]}


@tool
def describe_entity(graph: Graph, name: Name, history: bool = False) -> dict[str, Any]:
    """All about one entity: observations with ids and kinds, status, relations, neighbors, reflections. history
    adds what was superseded and relations that ended."""
    entity = graph[name]
    relations = graph.relations_of(entity.id)
    neighbors = {other: None for r in relations for other in (r.source, r.target) if other != entity.id}
    answer = {
        "entity": detailed_entity(graph, entity, history),
        "degree": len(relations),
        "neighbors": [graph.name_of(other) for other in neighbors],
        "relations": [{**shown_relation(graph, r), "direction": _direction(entity, r.source)} for r in relations],
    }
    if history:
        ended = [relation for relation in graph.incident_to(entity.id) if not relation.is_active]
        answer["endedRelations"] = shown_relations(graph, ended)
    return answer


def _direction(entity: Entity, source: int) -> str:
    return "out" if source == entity.id else "in"


def detailed_entity(graph: Graph, entity: Entity, history: bool = False) -> dict[str, Any]:
    """An entity with everything known of it."""
    seen = entity.observations if history else entity.active()
    shown: dict[str, Any] = {
        "id": entity.id,
        "name": entity.name,
        "entityType": entity.entity_type,
        "status": entity.status,
        "observations": [shown_observation(observation) for observation in seen],
        "created_at": entity.created_at,
        "updated_at": entity.updated_at,
    }
    reflections = [
        {"id": r.id, "author": r.author, "content": r.content, "mood": r.mood, "created_at": r.created_at}
        for r in graph.reflections.values()
        if r.target_type == "entity" and r.target_id == entity.id
    ]
    return {**shown, "reflections": reflections} if reflections else shown


# One answer never carries more relations than this; the rest is had by paging.
MOST_RELATIONS = 1000


@tool(camel=True)
def search_relations(
    graph: Graph,
    from_: str = "",
    to: str = "",
    relation_type: str = "",
    offset: Offset = 0,
    limit: Offset = MOST_RELATIONS,
) -> dict[str, Any]:
    """Relations by their ends and type; what is left out or empty means any."""
    ends = [graph.named(name) for name in (from_, to) if name]
    if None in ends:
        return {"relations": []}
    if ends:
        # The end with fewer relations is the shorter way.
        start = min((end for end in ends if end), key=lambda end: graph.degree(end.id))
        relations = graph.relations_of(start.id)
    else:
        relations = list(graph.active_relations())
    found = [
        relation
        for relation in relations
        if (not relation_type or relation.relation_type == relation_type)
        and (not from_ or graph.name_of(relation.source) == from_)
        and (not to or graph.name_of(relation.target) == to)
    ]
    page = found[offset : offset + min(limit, MOST_RELATIONS)]
    answer: dict[str, Any] = {"relations": shown_relations(graph, page)}
    if offset + len(page) < len(found):
        answer |= {"total": len(found), "nextOffset": offset + len(page)}
    return answer
