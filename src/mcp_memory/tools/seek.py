"""Tools that find entities by what is said of them."""

from __future__ import annotations

from mcp_memory.desk import Pieces
from mcp_memory.graph import Graph
from mcp_memory.tools.inputs import Offset, Query
from mcp_memory.tools.recall import rest
from mcp_memory.tools.registry import tool
from mcp_memory.tools.rendering import entities_json, everything_json, graph_json, is_everything, relations_json

# Enough for an answer that still fits a context; the rest is had by paging.
DEFAULT_FOUND = 50


@tool(camel=True)
def search_nodes(
    graph: Graph, query: Query, entity_type: str = "", limit: Offset = DEFAULT_FOUND, offset: Offset = 0
) -> bytes | Pieces:
    """Find entities by text in name, type or observations, ignoring case and accents: first the exact phrase,
    else entities with all the words, else the most relevant. Answers the best first, with relations touching them."""
    found = graph.texts.search(query, entity_type)
    page = found[offset : offset + limit]
    if is_everything(graph, page):
        return everything_json(graph)
    touching = graph.relations_touching(page)
    return graph_json(entities_json(graph, page), relations_json(graph, touching), **rest(found, offset, page))
