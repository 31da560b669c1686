"""Tools for prose about what is known: why something mattered, what to make of it."""

from __future__ import annotations

from typing import Any

from mcp_memory.changes import Plan, ReflectionAdded
from mcp_memory.curation.curator import Curator
from mcp_memory.facts import BadInput, Reflection
from mcp_memory.graph import Graph
from mcp_memory.tools.inputs import Query, Results, Thought, Triple
from mcp_memory.tools.registry import tool

ENTITY, SESSION, RELATION, GLOBAL = TARGETS = ("entity", "session", "relation", "global")


@tool
def add_reflection(
    curator: Curator,
    target_type: str,
    content: Thought,
    author: str | None = None,
    mood: str | None = None,
    target_id: int | str | Triple | None = None,
) -> Plan:
    """Keep a reflection, free prose, on an entity, session, relation or global. target_id: id or name of the entity, id
    or {from, to, relationType} of the relation."""
    _refuse_unknown("target_type", target_type, TARGETS)
    author = author or curator.customs.author
    _refuse_unknown("author", author, curator.customs.authors)
    _refuse_unknown("mood", mood, curator.customs.moods)
    with curator.facts() as graph:
        target = _target(graph, target_type, target_id)
        new = ReflectionAdded(graph.next_reflection, target_type, target, author, content, mood or None)
    return Plan([new], lambda graph: {"result": _told(graph, graph.reflections[new.id])})


def _refuse_unknown(what: str, said: str | None, known: tuple[str, ...]) -> None:
    if said and known and said not in known:
        raise BadInput(f"{what} cannot be {said!r}; choose one of {', '.join(known)}.")


def _target(graph: Graph, target_type: str, target: int | str | Triple | None) -> int | None:
    """The id that is meant, of something that exists."""
    if target_type == GLOBAL and target is not None:
        raise BadInput("A global reflection is about everything: leave target_id out.")
    if target is None:
        if target_type in (ENTITY, RELATION):
            raise BadInput(f"A reflection on {target_type} needs target_id: which one?")
        return None
    if target_type == RELATION:
        return _relation(graph, target)
    if isinstance(target, Triple):
        raise BadInput(f"target_id of {target_type} must be an id or a name.")
    if isinstance(target, str):
        return graph[target].id
    entity = graph.by_id.get(target)
    if entity is None or entity.is_placeholder:
        raise BadInput(f"No entity has id {target}. describe_entity tells ids; a name is taken as well.")
    return target


def _relation(graph: Graph, target: int | str | Triple) -> int:
    if isinstance(target, str):
        raise BadInput("target_id of relation must be its id, or {from, to, relationType}.")
    if isinstance(target, int):
        if target not in graph.relations:
            raise BadInput(f"No relation has id {target}. Every answer that shows relations tells their ids.")
        return target
    relation = graph.relation(graph[target.source].id, graph[target.target].id, target.relation_type)
    if relation is None:
        raise BadInput(f"Relation not found: {target.source} -> {target.target} ({target.relation_type})")
    return relation.id


def _told(graph: Graph, thought: Reflection) -> dict[str, Any]:
    """A reflection as documented, and what its target is called if it still exists."""
    told: dict[str, Any] = {
        "id": thought.id,
        "target_type": thought.target_type,
        "target_id": thought.target_id,
        "author": thought.author,
        "content": thought.content,
        "mood": thought.mood,
        "created_at": thought.created_at,
    }
    if thought.target_id is not None:
        told["target"] = _called(graph, thought.target_type, thought.target_id)
    return told


def _called(graph: Graph, target_type: str, target: int) -> Any:
    if target_type == RELATION:
        relation = graph.relations.get(target)
        if relation is None:
            return None
        return f"{graph.name_of(relation.source)} -> {graph.name_of(relation.target)} ({relation.relation_type})"
    return graph.name_of(target) if target in graph.by_id else None


def _once(curator: Curator, graph: Graph, thought: Reflection) -> dict[str, str]:
    """What a target that is gone was called: whom the thought was about is half of what it says."""
    if thought.target_id is None or thought.target_type == RELATION or thought.target_id in graph.by_id:
        return {}
    name = curator.name_once(thought.target_id)
    return {} if name is None else {"target_was": name}


@tool(past=True)
def search_reflections(
    curator: Curator,
    query: Query,
    author: str | None = None,
    mood: str | None = None,
    target_type: str | None = None,
    limit: Results = 10,
) -> dict[str, Any]:
    """Find reflections by words and meaning, best first; author, mood and target_type narrow it."""
    from mcp_memory.search.reflections import best

    with curator.facts() as graph:
        wanted = [
            one
            for one in graph.reflections.values()
            if (not author or one.author == author)
            and (not mood or one.mood == mood)
            and (not target_type or one.target_type == target_type)
        ]
        said = graph.thoughts.read(query, [one.id for one in wanted])
    near = dict(curator.nearness(query, [one.id for one in wanted])) if wanted and query.strip() else {}
    found = best(wanted, said, near, curator.now(), max(limit, 0))
    with curator.facts() as graph:
        results = [
            {**_told(graph, thought), **_once(curator, graph, thought), "score": round(score, 4)}
            for thought, score in found
        ]
    return {"results": results, **({} if near or not wanted else {"note": curator.missing("Searched")})}
