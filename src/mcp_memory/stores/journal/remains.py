"""What was taken out of a damaged journal: a line for each stretch of bytes, and the records that are still in it.

The law: whatever can be read is brought back, also of a transaction whose end is gone. Nothing that is known
is taken away for it: records are read as if nothing else were known."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mcp_memory.facts import GENERIC_TYPE
from mcp_memory.stores.journal import mcpmem
from mcp_memory.stores.journal.content import Content
from mcp_memory.stores.journal.mcpmem import Found
from mcp_memory.stores.journal.reading import time_of
from mcp_memory.stores.journal.replay import Replay, Stretch
from mcp_memory.stores.store import StoreFault


def kept(content: bytes, stretch: Stretch) -> bytes:
    """A line that says where bytes stood, why they are not served, and what they are."""
    raw = content[stretch.start : stretch.end].hex()
    return f"bytes {stretch.start} to {stretch.end}, {stretch.reason}: {raw}".encode()


def read_remains(path: str) -> tuple[Content, int]:
    """The facts in these lines, and how many stretches are no record."""
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
            at = time_of(os.fstat(file.fileno()).st_mtime_ns)
    except OSError as error:
        raise StoreFault(f"Cannot read {path}: {error.strerror or error}. Put that right and try again.") from error
    replay, unreadable = Replay(at), 0
    names: set[str] = set()
    for line in lines:
        found = _records(line)
        replay.run(_by_themselves(found, names), 0)
        unreadable += sum(kind < 0 for kind, *_ in found) or not found
    return replay.content(), unreadable


def _records(line: bytes) -> list[Found]:
    """What stands in a line. Only in version 2 a checksum tells a record, so that is asked first."""
    try:
        raw = bytes.fromhex(line.rpartition(b": ")[2].decode("ascii"))
    except ValueError:
        return []
    found: list[Found] = []
    for version in (2, 1):
        try:
            found = list(mcpmem.scan(raw, 0, version))
        except mcpmem.TooDamaged:
            continue
        if any(0 <= kind < mcpmem.BEGIN for kind, *_ in found):
            break
    return found


def _by_themselves(records: list[Found], names: set[str]) -> Iterator[Found]:
    """Records without their transactions; what adds to an entity that is not in here makes one of its name."""
    for kind, start, end, fields in records:
        if kind == mcpmem.ADD_OBSERVATIONS and fields[0] not in names:
            kind, fields = mcpmem.CREATE_ENTITY, (fields[0], GENERIC_TYPE, fields[1])
        if kind == mcpmem.CREATE_ENTITY:
            names.add(fields[0])
        elif kind == mcpmem.DELETE_ENTITY:
            names.discard(fields[0])
        if 0 <= kind < mcpmem.BEGIN:
            yield kind, start, end, fields
