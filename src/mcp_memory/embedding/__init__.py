"""Meaning as numbers: which models there are, the engine that runs one, and the texts it is given.

Nothing here is loaded until a vector is needed, and everything else works without it."""

from mcp_memory.embedding.engine import Engine, engine, engine_for, why_not

__all__ = ["Engine", "engine", "engine_for", "why_not"]
