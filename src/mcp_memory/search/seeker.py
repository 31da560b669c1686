"""What a tool that searches by relevance may touch: the graph, what was used before, and who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mcp_memory.graph import Graph
    from mcp_memory.search.usage import Usage
    from mcp_memory.search.vectors import Vectors


class Seeker(NamedTuple):
    """One search under way."""

    graph: Graph
    usage: Usage
    origin: str
    vectors: Vectors | None  # what the texts mean; None where there is no model
