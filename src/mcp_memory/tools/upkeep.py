"""Tools that look after the memory itself and change no fact."""

from __future__ import annotations

import os
from typing import Any

from mcp_memory.errand import Errand
from mcp_memory.space import Space
from mcp_memory.tools.registry import tool

# The file itself, and what SQLite has not carried over into it yet.
PARTS = ("", "-wal")


@tool(idempotent=True, scope="admin")
def compact(errand: Errand) -> dict[str, Any]:
    """Give back the disk space that deleted and replaced facts still take, and history beyond its retention. No fact
    is lost; seldom needed."""
    errand.progress(0, None, "compacting")
    errand.space.settle()  # or what still has to be written would count as growth
    before, version = _bytes(errand.space), _journal_version(errand.space)
    dropped = errand.space.compact(lambda done, total: errand.progress(done, total, "compacting"))
    after = _bytes(errand.space)
    answer = {"success": True, "message": "Log compacted successfully", "bytesBefore": before, "bytesAfter": after}
    errand.log("info", f"compacted: {before} bytes before, {after} after")
    if version == 1:
        answer["note"] = OLDER_SERVERS
    if dropped is None:
        return answer
    errand.log("notice", f"the history of {dropped.calls} calls, until {dropped.until}, is kept no longer")
    return answer | {"historyDropped": dropped._asdict()}


OLDER_SERVERS = (
    "The journal was of version 1 and is of version 2 now. The Rust mcp-memory before 2.0 takes such a file for an "
    "empty memory: for that server write one of version 1 with mcp-memory export FILE.mcpmem --journal-version 1."
)


def _journal_version(space: Space) -> int:
    """Of a memory that is a journal; 0 for any other."""
    version: int = getattr(space.store, "journal_version", 0)
    return version


def _bytes(space: Space) -> int:
    """What the memory takes on disk; 0 for one that is no file, or not yet."""
    path = getattr(space.store, "path", None)
    return 0 if path is None else sum(_size(f"{path}{part}") for part in PARTS)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
