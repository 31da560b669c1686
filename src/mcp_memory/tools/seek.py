"""Tools that find entities by what is said of them."""

from __future__ import annotations

from typing import Any

from mcp_memory.graph import Graph
from mcp_memory.tools.inputs import Offset, Query
from mcp_memory.tools.registry import tool
from mcp_memory.tools.rendering import all_relations_json, entities_json, relations_json

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
        "entities": entities_json(graph, page),
        "relations": all_relations_json(graph)
        if len(page) == graph.entity_count and not graph.placeholders
        else relations_json(graph, graph.relations_touching(page)),
    }
    if offset + len(page) < len(found):
        answer |= {"total": len(found), "nextOffset": offset + len(page)}
    return answer
