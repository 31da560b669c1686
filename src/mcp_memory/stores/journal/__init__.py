"""Facts in a `.mcpmem` file: records of what happened, appended, in the Rust server's own bytes."""

from mcp_memory.stores.journal.store import JournalStore

__all__ = ["JournalStore"]
