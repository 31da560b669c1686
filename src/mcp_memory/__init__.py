"""mcp-memory: a knowledge graph that AI agents keep for years.

    from mcp_memory import open_space

    space = open_space("memory.db")

The names below load what they need when they are first used; importing the package loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_memory.assembly import open_space
    from mcp_memory.space import Space

__version__ = "0.1.0"
__all__ = ["Space", "__version__", "open_space"]

HOMES = {"open_space": "mcp_memory.assembly", "Space": "mcp_memory.space"}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(HOMES[name]), name)
