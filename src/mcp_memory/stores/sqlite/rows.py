"""Rows of the feed as entries."""

from __future__ import annotations

from typing import Any

import msgspec

from mcp_memory.changes import Entry, decode_changes, decode_was
from mcp_memory.stores.store import StoreDamaged

BROKEN_ENTRY = (
    "Entry {seq} of this memory's history cannot be read ({error}). The file was left as it is; "
    "put a backup in its place, or start with another --memory-file."
)


def entry_of(row: tuple[Any, ...]) -> Entry:
    """seq, at, body, origin, tool, part and, where it was asked for, what was before."""
    seq, at, body, origin, tool, part, *was = row
    try:
        images = decode_was(was[0]) if was and was[0] is not None else None
        return Entry(seq, at, decode_changes(body), origin, tool, part, images)
    except (msgspec.MsgspecError, TypeError) as error:
        raise StoreDamaged(BROKEN_ENTRY.format(seq=seq, error=error)) from error


def length_of(body: bytes) -> int:
    """How many changes an encoded list holds, told by its first bytes: msgpack's mark of an array."""
    mark = body[0]
    if mark & 0xF0 == 0x90:
        return mark & 0x0F
    return int.from_bytes(body[1:3] if mark == 0xDC else body[1:5], "big")
