"""Tools that tell how much is known, and of which kinds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mcp_memory.graph import Graph
from mcp_memory.tools.inputs import Offset
from mcp_memory.tools.recall import rest
from mcp_memory.tools.registry import tool


@tool(lengthy=True, past=True)
def graph_stats(graph: Graph) -> dict[str, Any]:
    """How many entities, relations and observations there are, and the size of the word index."""
    texts = graph.texts
    kept, kept_bytes = texts.vocabulary_size
    return {
        "entities": graph.entity_count,
        "relations": graph.relation_count,
        "totalObservations": graph.observation_count,
        "searchIndexEntries": texts.pairs,
        "internedStrings": kept,
        "internedBytes": kept_bytes,
    }


@tool(past=True)
def list_entity_types(graph: Graph, offset: Offset = 0, limit: Offset | None = None) -> dict[str, Any]:
    """The entity types in use with their counts, most used first; all of them, or a page."""
    return _ranked(graph.type_counts, offset, limit)


@tool(past=True)
def list_relation_types(graph: Graph, offset: Offset = 0, limit: Offset | None = None) -> dict[str, Any]:
    """The relation types in use with their counts, most used first; all of them, or a page."""
    return _ranked(graph.relation_type_counts, offset, limit)


def _ranked(counts: Counter[str], offset: int, limit: int | None) -> dict[str, Any]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    page = ranked[offset:] if limit is None else ranked[offset : offset + limit]
    return {"types": [{"type": name, "count": count} for name, count in page], **rest(len(ranked), offset, page)}
