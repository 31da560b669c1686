"""All tools, and which of them a client is offered: by profile, by family, or readers only."""

from __future__ import annotations

from collections.abc import Iterable

from mcp_memory.facts import BadInput
from mcp_memory.tools import (  # noqa: F401  (each registers its tools)
    exchange,
    explore,
    forget,
    history,
    recall,
    reflect,
    remember,
    seek,
    survey,
    tidy,
    upkeep,
)
from mcp_memory.tools.registry import REGISTRY, Tool

# The order in which tools are offered; within a family, the order of its file.
FAMILIES = (
    "remember",
    "forget",
    "recall",
    "seek",
    "explore",
    "survey",
    "tidy",
    "reflect",
    "history",
    "exchange",
    "upkeep",
)

CORE = (
    "create_entities",
    "create_relations",
    "add_observations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "read_graph",
    "search_nodes",
    "open_nodes",
    "search_semantic",
    "describe_entity",
    "get_neighbors",
    "find_path",
)

# Names under which the predecessor's clients know some tools.
ALSO_KNOWN_AS = {
    "propose_entity_split_tool": "propose_entity_split",
    "execute_entity_split_tool": "execute_entity_split",
}

PROFILES = ("full", "core", "official")


def catalog(profile: str = "full", families: Iterable[str] = (), read_only: bool = False) -> dict[str, Tool]:
    """The tools of a profile, in a fixed order; `families` picks some, `read_only` leaves the writers out."""
    if profile == "official":
        from mcp_memory.tools.official import official_tools

        tools = list(official_tools().values())
    else:
        tools = sorted(REGISTRY.values(), key=lambda tool: FAMILIES.index(tool.family))
        if profile == "core":
            tools = [tool for tool in tools if tool.name in CORE]
    wanted = set(families)
    unknown = wanted - set(FAMILIES)
    if unknown:
        raise BadInput(f"No tool family is named {', '.join(sorted(unknown))}. There are: {', '.join(FAMILIES)}.")
    return {
        tool.name: tool for tool in tools if (not wanted or tool.family in wanted) and not (read_only and tool.writes)
    }
