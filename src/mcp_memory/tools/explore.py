"""Tools that follow relations: ways between two entities, and who is around one.

A relation is walked in both directions unless a direction is asked for; ended ones are not walked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Annotated, Any, Literal

from msgspec import Meta

from mcp_memory.facts import Relation, UnknownEntity
from mcp_memory.tools.inputs import Name, Names, Offset
from mcp_memory.tools.registry import tool
from mcp_memory.tools.rendering import entities_json, graph_json, relations_json
from mcp_memory.views import View
from mcp_memory.walks import MOST_STEPS, Walkable, reach, second, shortest, simple_paths

Depth = Annotated[int, Meta(ge=0, le=16)]
PathDepth = Annotated[int, Meta(ge=1, le=16)]
PathCount = Annotated[int, Meta(ge=1, le=1000)]
Direction = Literal["both", "out", "in"]

# Enough for an answer that still fits a context; the rest is had by paging.
DEFAULT_REACHED = 500
# Nobody pages through more than this, and counting them takes some 50 ms (400 along one direction).
MOST_REACHED = 50_000
# A page shows at most this many relations for each entity of its limit, and never fewer than a thousand.
RELATIONS_EACH = 10
FEWEST_RELATIONS = 1000


@tool(camel=True, lengthy=True, past=True)
def find_path(graph: View, from_: Name, to: Name) -> dict[str, Any]:
    """The shortest way from one entity to another along relations of any direction, as names; [] when they are not
    connected."""
    path = shortest(graph, _id(graph, from_), _id(graph, to))
    return {"path": _names(graph, path or [])}


def _id(graph: View, name: str) -> int:
    entity_id = graph.id_of(name)
    if entity_id is None:
        raise UnknownEntity(name)
    return entity_id


def _names(graph: View, entity_ids: Iterable[int]) -> list[str]:
    return list(map(graph.name_of, entity_ids))


@tool(camel=True, lengthy=True, past=True)
def find_all_paths(
    graph: View, from_: Name, to: Name, max_depth: PathDepth = 6, max_paths: PathCount = 50, offset: Offset = 0
) -> dict[str, Any]:
    """Every way between two entities that visits none twice and has at most maxDepth relations, shortest first.
    cut says that there may be more."""
    start, goal = _id(graph, from_), _id(graph, to)
    paths, cut = simple_paths(graph, start, goal, max_depth, offset + max_paths, MOST_STEPS)
    page = paths[offset:]
    answer: dict[str, Any] = {"paths": [_names(graph, path) for path in page]}
    if not cut:
        return answer
    if len(page) == max_paths:
        hint = "There may be more: ask again with nextOffset as offset."
        return {**answer, "cut": True, "nextOffset": offset + len(page), "hint": hint}
    hint = f"The search was ended because it became too large. A maxDepth below {max_depth} asks for less."
    return {**answer, "cut": True, "hint": hint}


@tool(camel=True, lengthy=True, past=True)
def get_neighbors(
    graph: View,
    name: Name,
    direction: Direction = "both",
    relation_type: str = "",
    depth: Depth = 1,
    offset: Offset = 0,
    limit: Offset = DEFAULT_REACHED,
) -> bytes:
    """An entity and those around it up to depth steps away, nearest first, with the relations among them. Follows
    only relations of a direction (out, in) or type if one is given."""
    origin = _id(graph, name)
    walked = graph if direction == "both" and not relation_type else Lane(graph, direction, relation_type)
    return _around(graph, walked, [origin], depth, offset, limit, relation_type)


@tool(lengthy=True, past=True)
def extract_subgraph(
    graph: View, names: Names, depth: Depth = 1, offset: Offset = 0, limit: Offset = DEFAULT_REACHED
) -> bytes:
    """The entities within depth steps of any of the named ones, nearest first, with all relations among them; unknown
    names are left out."""
    seeds = [entity_id for entity_id in map(graph.id_of, names) if entity_id is not None]
    return _around(graph, graph, seeds, depth, offset, limit)


class Lane:
    """A graph of which only relations of one direction or type are walked."""

    def __init__(self, graph: View, direction: Direction, relation_type: str) -> None:
        self.graph = graph
        self.goes_out = direction != "in"
        self.goes_in = direction != "out"
        self.relation_type = relation_type

    def neighbours(self, entity_ids: Iterable[int]) -> Iterator[tuple[int, Sequence[int]]]:
        found: dict[int, dict[int, None]] = {entity_id: {} for entity_id in entity_ids}
        for relation in self.graph.relations_touching(found):
            if self.relation_type and relation.relation_type != self.relation_type:
                continue
            if self.goes_out and relation.source in found:
                found[relation.source][relation.target] = None
            if self.goes_in and relation.target in found:
                found[relation.target][relation.source] = None
        for here, near in self.graph.neighbours(found):
            visible = found[here].keys() & near  # neither itself nor who was never created
            yield here, [there for there in found[here] if there in visible]


def _around(
    graph: View, walked: Walkable, seeds: list[int], depth: int, offset: int, limit: int, relation_type: str = ""
) -> bytes:
    """A page of who is reached. Every relation among them stands on one page: that of its later end."""
    reached, is_endless = reach(walked, seeds, depth, MOST_REACHED)
    end = offset + limit
    page = reached[offset:end]
    relations = _among(graph, reached[:end], page, relation_type)
    most = max(limit * RELATIONS_EACH, FEWEST_RELATIONS)
    more: dict[str, Any] = {}
    if end < len(reached):
        more = {"total": len(reached), "nextOffset": end}
    if is_endless:
        more |= {"cut": True, "hint": f"More than {MOST_REACHED} are reached; a smaller depth asks for less."}
    if len(relations) > most:
        hint = f"{len(relations) - most} more relations are among these; search_relations shows them by their ends."
        more |= {"cut": True, "hint": hint}
    return graph_json(entities_json(graph, page), relations_json(graph, relations[:most]), **more)


def _among(graph: View, so_far: list[int], page: list[int], relation_type: str) -> list[Relation]:
    if len(page) < len(so_far):
        # Who is beside somebody of the page, of those before it: what all of those are joined by is not asked.
        here = set(page)
        beside = set(so_far).intersection(chain.from_iterable(map(second, graph.neighbours(page))))
        among = graph.relations_among(here | beside)
        relations = [relation for relation in among if relation.source in here or relation.target in here]
    else:
        relations = graph.relations_among(page)
    if relation_type:
        relations = [relation for relation in relations if relation.relation_type == relation_type]
    return relations
