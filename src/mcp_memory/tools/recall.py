"""Tools that show what is known, by exact name or all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_memory.curation.report import pending_in
from mcp_memory.desk import Pieces
from mcp_memory.facts import Entity, Observation, Relation
from mcp_memory.graph import Graph
from mcp_memory.tools.dialects import shown_observation, shown_relations
from mcp_memory.tools.inputs import Name, Names, Offset
from mcp_memory.tools.registry import tool
from mcp_memory.tools.rendering import (
    encode,
    entities_json,
    entity_or_null,
    everything_json,
    graph_json,
    make_fragment,
    relations_json,
)
from mcp_memory.views import View


@tool(camel=True, lengthy=True, past=True)
def read_graph(graph: Graph, entity_type: str = "", offset: Offset = 0, limit: Offset | None = None) -> bytes | Pieces:
    """Everything, or one page: entities of a type, skipping offset, at most limit; then only relations between
    entities of the page. On a large memory search first, and page."""
    if not entity_type and not offset and limit is None:
        return everything_json(graph)
    page, total = graph.entity_page(entity_type, offset, graph.entity_count if limit is None else limit)
    inside = graph.relations_among(page)
    return graph_json(entities_json(graph, page), relations_json(graph, inside), **rest(total, offset, page))


def rest(total: int, offset: int, page: Sequence[Any]) -> dict[str, int]:
    """What an answer says when there is more than its page."""
    after = offset + len(page)
    return {"total": total, "nextOffset": after} if after < total else {}


@tool(past=True)
def open_nodes(graph: View, names: Names, detail: bool = False) -> bytes:
    """Entities by exact name, in the order asked for, with the relations touching them; unknown names are left
    out. detail adds ids, kinds, status and reflections."""
    found = [entity_id for entity_id in map(graph.id_of, dict.fromkeys(names)) if entity_id is not None]
    if detail:
        entities = [encode(detailed_entity(graph, one, one.active())) for one in map(graph.by_id.__getitem__, found)]
    else:
        entities = entities_json(graph, found)
    relations, more = shortened(graph.relations_touching(found))
    return graph_json(entities, relations_json(graph, relations), **more)


# One answer never carries more relations than this; the rest is had by paging.
MOST_RELATIONS = 1000


def shortened(relations: list[Relation]) -> tuple[list[Relation], dict[str, Any]]:
    """As many relations as an answer carries that was asked for something else, and what it says of the others."""
    left = len(relations) - MOST_RELATIONS
    if left <= 0:
        return relations, {}
    hint = f"{left} more relations touch these; search_relations shows them by their ends."
    return relations[:MOST_RELATIONS], {"cut": True, "hint": hint}


@tool(past=True)
def get_entity(graph: View, name: Name) -> bytes:
    """One entity by exact name: type and observations, no relations."""
    return graph.fragments.get(name) or make_fragment(graph, name)


@tool(past=True)
def batch_get_entities(graph: View, names: Names) -> bytes:
    """Several entities by exact name, in the order asked for; null where there is none."""
    ready = graph.fragments
    found = [ready.get(name) or entity_or_null(graph, name) for name in names]
    return b'{"entities":[' + b",".join(found) + b"]}"


# Of an entity that has grown for years; about 30 kB. The rest is had by paging.
DESCRIBED = 200


@tool(past=True)
def describe_entity(
    graph: View, name: Name, history: bool = False, offset: Offset = 0, limit: Offset = DESCRIBED
) -> dict[str, Any]:
    """All about one entity: observations with ids and kinds, status, relations, neighbors, reflections. history
    adds what was superseded and relations that ended."""
    entity = graph[name]
    page = slice(offset, offset + limit)
    seen = entity.observations if history else entity.active()
    relations = graph.relations_of(entity.id)
    ended = [relation for relation in graph.incident_to(entity.id) if not relation.is_active] if history else []
    lives = graph.lives(entity.id) if history and graph.lives is not None else {}
    neighbors = {other: None for r in relations[page] for other in (r.source, r.target) if other != entity.id}
    answer = {
        "entity": detailed_entity(graph, entity, seen[page]),
        "degree": len(relations),
        "neighbors": list(graph.names_of(neighbors)),
        "relations": [
            {**shown, "direction": _direction(entity, relation.source), **_since(relation, history, lives)}
            for shown, relation in zip(shown_relations(graph, relations[page]), relations[page], strict=True)
        ],
    }
    pending = pending_in(entity.active(), graph.examined)
    if pending:
        answer["flags_pending"] = pending
    if history:
        answer["endedRelations"] = [
            {**shown, **_since(relation, history, lives)}
            for shown, relation in zip(shown_relations(graph, ended[page]), ended[page], strict=True)
        ]
    if max(len(seen), len(relations), len(ended)) > page.stop:
        answer |= {"totalObservations": len(seen), "nextOffset": page.stop}
    return answer


def _direction(entity: Entity, source: int) -> str:
    return "out" if source == entity.id else "in"


def _since(relation: Relation, history: bool, lives: Mapping[int, list[dict[str, Any]]]) -> dict[str, Any]:
    """Since when a relation is known, and when it was true before it ended and became true again."""
    if not history:
        return {}
    earlier = lives.get(relation.id)
    return {"createdAt": relation.created_at, **({"earlier": earlier} if earlier else {})}


def detailed_entity(graph: View, entity: Entity, seen: Sequence[Observation]) -> dict[str, Any]:
    """An entity with what is known of it: these observations."""
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
        for r in graph.reflections_on(entity.id)
    ]
    return {**shown, "reflections": reflections} if reflections else shown


@tool(camel=True, past=True)
def search_relations(
    graph: View,
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
    count = min(limit, MOST_RELATIONS)
    if not ends:
        page, total = graph.relation_page(relation_type, offset, count)
        return {"relations": shown_relations(graph, page), **rest(total, offset, page)}
    # The end with fewer relations is the shorter way.
    start = min((end for end in ends if end), key=lambda end: graph.degree(end.id))
    found = [
        relation
        for relation in graph.relations_of(start.id)
        if (not relation_type or relation.relation_type == relation_type)
        and (not from_ or graph.name_of(relation.source) == from_)
        and (not to or graph.name_of(relation.target) == to)
    ]
    page = found[offset : offset + count]
    return {"relations": shown_relations(graph, page), **rest(len(found), offset, page)}
