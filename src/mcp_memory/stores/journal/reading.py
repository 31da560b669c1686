"""A whole journal file as facts, and as a list of what in it is not served. Nothing is changed here."""

from __future__ import annotations

import os
import time

import msgspec

from mcp_memory.stores.journal import mcpmem
from mcp_memory.stores.journal.content import Content, hardly_any_garbage
from mcp_memory.stores.journal.flushed import MARK, noted
from mcp_memory.stores.journal.replay import Replay, Stretch
from mcp_memory.stores.store import StoreDamaged, StoreFault

SECTOR = 512  # the least that a disk writes
# Zeros are taken for a power cut only behind what is known to have been flushed, and only so near the end: more is
# not written between two flushes of the disk. Elsewhere they are damage like any other, and cost only themselves.
LATEST = 16 << 20
POWER = "the power failed before all of it reached the disk"


class Reading(msgspec.Struct):
    """What a file says."""

    content: Content
    version: int  # of the records; 0: there is nothing yet
    start: int  # where records begin; 0 in a file without magic
    end: int  # where the next record would go
    mark: bytes  # what stands before that
    bad: list[Stretch]
    tail: Stretch | None

    @property
    def unserved(self) -> list[Stretch]:
        return self.bad if self.tail is None else [*self.bad, self.tail]


def read(data: bytes, at: str, path: str) -> Reading:
    """Everything that can be understood of the journal at `path`. StoreDamaged: these bytes are no journal."""
    if data and len(data) <= LATEST and is_hole(data, Stretch(0, min(len(data), SECTOR), "")):
        return Reading(Content(), 0, 0, 0, b"", [], Stretch(0, len(data), POWER))  # new, and never flushed
    version, start = _beginning(data, path)
    if not version:
        tail = Stretch(0, len(data), "the file ends inside its first eight bytes") if data else None
        return Reading(Content(), 0, 0, 0, b"", [], tail)
    with hardly_any_garbage():
        replay = _replayed(data, start, version, at, path)
        hole = _unflushed(data, replay.bad, path)
        if hole is not None:
            # The disk was never flushed after this was written: what stands behind it was promised to nobody,
            # and without what is missing it would tell another story.
            replay = _replayed(data[:hole], start, version, at, path)
            first = hole if replay.tail is None else replay.tail.start
            replay.tail = Stretch(first, len(data), POWER)
        content = replay.content()
    end = replay.end
    return Reading(content, version, start, end, data[max(0, end - MARK) : end], replay.bad, replay.tail)


def _unflushed(data: bytes, bad: list[Stretch], path: str) -> int | None:
    """Where something is missing that never reached the disk."""
    holes = [stretch for stretch in bad if is_hole(data, stretch)]
    if not holes or len(data) - holes[-1].start > LATEST:
        return None
    flushed = noted(f"{os.path.realpath(path)}.lock", data)
    if flushed is None:
        return None
    return next((hole.start for hole in holes if hole.end > flushed and len(data) - hole.start <= LATEST), None)


def _replayed(data: bytes, start: int, version: int, at: str, path: str) -> Replay:
    replay = Replay(at)
    try:
        replay.run(mcpmem.scan(data, start, version), start)
    except mcpmem.TooDamaged:
        raise StoreDamaged(
            f"{path} is a journal in which nearly nothing is a record; it was left as it is. Put a backup in its "
            "place (mcp-memory restore FILE), or name another memory file."
        ) from None
    return replay


def is_hole(data: bytes, stretch: Stretch) -> bool:
    """Are there zeros where a sector should be? A file that grew and was not flushed has them after a power cut."""
    for at in range(stretch.start // SECTOR * SECTOR, stretch.end, SECTOR):
        first, end = max(at, stretch.start), min(at + SECTOR, len(data))
        if end <= stretch.end and not any(data[first:end]):
            return True
    return False


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
