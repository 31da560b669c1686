"""The SQLite store: one file per space, usable by anyone with SQL."""

from mcp_memory.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
