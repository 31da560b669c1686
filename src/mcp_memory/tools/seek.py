"""Tools that find entities by what is said of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mcp_memory.desk import Pieces
from mcp_memory.embedding.numerics import has_numpy
from mcp_memory.facts import Limits
from mcp_memory.graph import Graph
from mcp_memory.tools.inputs import Offset, Query
from mcp_memory.tools.recall import rest, shortened
from mcp_memory.tools.registry import Within, tool
from mcp_memory.tools.rendering import entities_json, everything_json, graph_json, is_everything, relations_json

if TYPE_CHECKING:
    from mcp_memory.search.limbic import Ranked
    from mcp_memory.search.seeking import Hits
from mcp_memory.search.seeker import Seeker

# Enough for an answer that still fits a context; the rest is had by paging.
DEFAULT_FOUND = 50


@tool(camel=True, past=True)
def search_nodes(
    graph: Graph, query: Query, entity_type: str = "", limit: Offset = DEFAULT_FOUND, offset: Offset = 0
) -> bytes | Pieces:
    """Find entities by text in name, type or observations, ignoring case and accents: first the exact phrase,
    else entities with all the words, else the most relevant. Answers the best first, with relations touching them."""
    found = graph.texts.search(query, entity_type)
    page = found[offset : offset + limit]
    if is_everything(graph, page):
        return everything_json(graph)
    touching, more = shortened(graph.relations_touching(page))
    more |= rest(found, offset, page)
    return graph_json(entities_json(graph, page), relations_json(graph, touching), **more)


@tool(camel=True)
def search_semantic(
    seeker: Seeker, query: Query, limit: Annotated[int, Within(Limits.check_results)] = 10, entity_type: str = ""
) -> dict[str, Any]:
    """Ask in your own words: entities that may answer, best first, each with the observations that do (matches).
    Understands who is named and whether a time is asked for, in Spanish and English. status says found, weak or
    nothing found."""
    if not has_numpy():
        from mcp_memory.search.plain import answer

        return answer(seeker, query, limit, entity_type)
    from mcp_memory.search.seeking import seek

    usage, graph = seeker.usage, seeker.graph
    began = usage.now()
    hits = seek(graph, query, max(limit, 0), entity_type)
    ranked = usage.rank(query, hits.candidates, limit)[: max(limit, 0)]
    usage.served(query, ranked, limit=limit, origin=seeker.origin, began=began)
    return {"results": [_result(graph, row, hits) for row in ranked], "status": hits.status, "engine": "text"}


def _result(graph: Graph, row: Ranked, hits: Hits) -> dict[str, Any]:
    from mcp_memory.search.seeking import text_of, why

    candidate = row.candidate
    entity = graph.by_id[candidate.entity_id]
    matches = hits.matches[entity.id]
    return {
        "name": entity.name,
        "entityType": entity.entity_type,
        "observations": entity.texts(),
        "limbic_score": round(row.limbic_score, 4),
        "scoring": {
            "importance": round(row.importance, 4),
            "temporal_factor": round(row.temporal_factor, 4),
            "cooc_boost": round(row.cooc_boost, 4),
            "echo": round(row.echo, 4),
        },
        "rrf_score": round(candidate.rrf_score or 0.0, 6),
        "matches": [
            {"id": match.observation, "observation": text_of(graph, match), "score": round(match.score, 4)}
            for match in matches
            if match.observation is not None
        ],
        "why": why(graph, hits.question, matches),
    }
