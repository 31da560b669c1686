"""Tools that find entities by what is said of them."""

from __future__ import annotations

from typing import Any

from mcp_memory.graph import Graph
from mcp_memory.tools.dialects import plain_entity, shown_relations
from mcp_memory.tools.inputs import Offset, Query
from mcp_memory.tools.registry import tool

# Enough for an answer that still fits a context; the rest is had by paging.
DEFAULT_FOUND = 50


@tool(camel=True)
def search_nodes(
    graph: Graph, query: Query, entity_type: str = "", limit: Offset = DEFAULT_FOUND, offset: Offset = 0
) -> dict[str, Any]:
    """Find entities by text in name, type or observations, ignoring case and accents: first the exact phrase,
    else entities with all the words, else the most relevant. Answers the best first, with relations touching them."""
    found = graph.texts.search(query, entity_type)
    page = found[offset : offset + limit]
    answer: dict[str, Any] = {
        "entities": [plain_entity(entity) for entity in page],
        "relations": shown_relations(graph, graph.relations_touching(entity.id for entity in page)),
    }
    if offset + len(page) < len(found):
        answer |= {"total": len(found), "nextOffset": offset + len(page)}
    return answer
