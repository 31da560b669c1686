"""The one resource: the whole graph, as every official client knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from mcp_memory.graph import Graph
    from mcp_memory.space import Space

URI = "memory://knowledge-graph"
MIME = "application/json"


def listed() -> dict[str, Any]:
    """How the resource introduces itself."""
    return {
        "uri": URI,
        "name": "knowledge-graph",
        "title": "Knowledge Graph",
        "description": "Everything remembered: all entities with their observations, and all relations",
        "mimeType": MIME,
    }


def contents(space: Space, pretty: bool, at_once: bool = False) -> dict[str, Any]:
    """The graph as it is now. Pretty is what JSON.stringify(graph, null, 2) writes."""
    from mcp_memory.tools.registry import Tool

    # Read as a tool reads, so that no change can come in between.
    text = msgspec.json.encode(space.call(Tool(knowledge_graph), (), at_once=at_once))
    if pretty:
        text = msgspec.json.format(text, indent=2)
    return {"uri": URI, "mimeType": MIME, "text": text.decode()}


def knowledge_graph(graph: Graph) -> dict[str, Any]:
    """All that is believed now, without ids and history."""
    from mcp_memory.tools.dialects import plain_entity, plain_relation

    return {
        "entities": [plain_entity(entity) for entity in graph.entities()],
        "relations": [plain_relation(graph, relation) for relation in graph.active_relations()],
    }
