"""A whole journal file as facts, and as a list of what in it is not served. Nothing is changed here."""

from __future__ import annotations

import os
import time

import msgspec

from mcp_memory.stores.journal import mcpmem
from mcp_memory.stores.journal.content import Content, hardly_any_garbage
from mcp_memory.stores.journal.replay import Replay, Stretch
from mcp_memory.stores.store import StoreDamaged, StoreFault

# What stands before `end` is remembered by so many bytes: a file that was written over is not appended to.
MARK = 64


class Reading(msgspec.Struct):
    """What a file says."""

    content: Content
    version: int  # of the records; 0: there is nothing yet
    start: int  # where records begin; 0 in a file without magic
    end: int  # where the next record would go
    mark: bytes  # what stands before that
    bad: list[Stretch]
    tail: Stretch | None


def read(data: bytes, at: str, path: str) -> Reading:
    """Everything that can be understood. StoreDamaged: these bytes are no journal."""
    version, start = _beginning(data, path)
    if not version:
        tail = Stretch(0, len(data), "the file ends inside its first eight bytes") if data else None
        return Reading(Content(), 0, 0, 0, b"", [], tail)
    replay = Replay(at)
    with hardly_any_garbage():
        replay.run(mcpmem.scan(data, start, version), start)
        content = replay.content()
    end = replay.end
    return Reading(content, version, start, end, data[max(0, end - MARK) : end], replay.bad, replay.tail)


def read_file(path: str) -> Reading:
    """What a journal says that is not ours to touch."""
    try:
        with open(path, "rb") as file:
            data = file.read()
            at = time_of(os.fstat(file.fileno()).st_mtime_ns)
    except OSError as error:
        raise StoreFault(f"Cannot read {path}: {error.strerror or error}. Put that right and try again.") from error
    return read(data, at, path)


def time_of(nanoseconds: int) -> str:
    """A time of the file system as facts carry it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(nanoseconds // 1_000_000_000))


def _beginning(data: bytes, path: str) -> tuple[int, int]:
    """Version of the records, and where they begin."""
    head = data[: mcpmem.HEAD]
    for version, magic in mcpmem.MAGIC.items():
        if head == magic:
            return version, mcpmem.HEAD
    if mcpmem.FAMILY.startswith(head[: len(mcpmem.FAMILY)]) and len(head) < mcpmem.HEAD:
        return 0, 0
    if head.startswith(mcpmem.FAMILY):
        raise StoreDamaged(
            f"{path} is a journal of version {chr(head[-1])!r}, which this program does not know; it was "
            "left as it is. Upgrade mcp-memory, or name another memory file."
        )
    version = mcpmem.begins_with_record(data)
    if not version:
        raise StoreDamaged(
            f"{path} is not a journal (.mcpmem): it begins with {head!r}. It was left as it is. Name another memory "
            "file, or bring the facts of this one over with `mcp-memory import`."
        )
    return version, 0
