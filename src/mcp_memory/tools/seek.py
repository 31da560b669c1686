"""Tools that find entities by what is said of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mcp_memory.desk import Pieces
from mcp_memory.embedding.numerics import has_numpy
from mcp_memory.facts import Limits
from mcp_memory.graph import Graph
from mcp_memory.search.budget import within
from mcp_memory.search.filters import Filters
from mcp_memory.search.seeker import Seeker, ask
from mcp_memory.tools.inputs import Offset, Query
from mcp_memory.tools.recall import rest, shortened
from mcp_memory.tools.registry import Within, tool
from mcp_memory.tools.rendering import entities_json, everything_json, graph_json, is_everything, relations_json

if TYPE_CHECKING:
    from mcp_memory.search.limbic import Ranked
    from mcp_memory.search.seeking import Hits

HYBRID, TEXT = "hybrid", "text"
FAILED = "The model failed; the log on stderr says how."
# Enough for an answer that still fits a context; the rest is had by paging.
DEFAULT_FOUND = 50


@tool(camel=True, lengthy=True, past=True)
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
    more |= rest(len(found), offset, page)
    return graph_json(entities_json(graph, page), relations_json(graph, touching), **more)


@tool(camel=True)
def search_semantic(
    seeker: Seeker,
    query: Query,
    limit: Annotated[int, Within(Limits.check_results)] = 10,
    entity_type: str = "",
    status: str = "",
    kind: str = "",
    after: str = "",
    before: str = "",
    max_tokens: Offset = 0,
) -> dict[str, Any]:
    """Ask in your own words, in any language: entities that may answer, best first, each with the observations that do
    (matches). kind, after and before (dates) narrow the observations, maxTokens the answer. status: found, weak,
    nothing found, incomplete index."""
    filters = Filters.of(entity_type, status, kind, after, before)
    if not has_numpy():
        from mcp_memory.search.plain import answer

        return answer(seeker, query, limit, filters, max_tokens)
    from mcp_memory.search.seeking import INCOMPLETE, seek

    usage = seeker.usage
    began = usage.now()
    asked = ask(seeker, query)
    with seeker.facts() as graph:
        hits = seek(graph, asked, max(limit, 0), filters)
        ranked = usage.rank(query, hits.candidates, limit)[: max(limit, 0)]
        results = within(max_tokens, (_result(graph, row, hits) for row in ranked))
    usage.served(query, ranked[: len(results)], limit=limit, origin=seeker.origin, began=began)
    told: dict[str, Any] = {"results": results, "status": hits.status, "engine": HYBRID}
    if hits.progress is not None and hits.status == INCOMPLETE:
        told["progress"] = {"embedded": hits.progress[0], "of": hits.progress[1]}
    change = seeker.change()
    if change is not None:
        told["reembedding"] = {"embedded": change[0], "of": change[1]}
    if asked.meaning is None:
        told |= {"engine": TEXT, "note": f"Found by words only. {seeker.why_not() or FAILED}"}
    if len(results) < len(ranked):
        told["left_out"] = len(ranked) - len(results)
    return told


def _result(graph: Graph, row: Ranked, hits: Hits) -> dict[str, Any]:
    from mcp_memory.search.seeking import text_of, why

    candidate = row.candidate
    entity = graph.by_id[candidate.entity_id]
    matches = hits.matches[entity.id]
    shown: dict[str, Any] = {
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
    }
    if candidate.distance is not None:
        shown["distance"] = round(candidate.distance, 4)
    if candidate.rrf_score:
        shown["rrf_score"] = round(candidate.rrf_score, 6)
    return shown | {
        "matches": [
            {"id": match.observation, "observation": text_of(graph, match), "score": round(match.score, 4)}
            for match in matches
            if match.observation
        ],
        "why": why(graph, hits.question, matches),
    }
