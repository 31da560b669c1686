"""How far a journal is known to be on the disk: a note in its lock file, which no other reader of journals needs.

The law: the note says less than is true, never more. It is made after a flush, names its content by a checksum
of what stands before the place, and is on the disk itself before anything is appended that is not."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NamedTuple
from zlib import crc32

from mcp_memory.stores.wholefile import flush_folder, flush_to_disk

# What stands before a place in a journal is remembered by so many bytes: also a file that was written over is known.
MARK = 64
NOTE = "flushed %020d %08x\n"  # always as long: half of a sector that was there before cannot be missing
SIZE = len(NOTE % (0, 0))


class Place(NamedTuple):
    """A place in a journal, and what stands before it."""

    at: int
    checksum: int


def place(at: int, mark: bytes) -> Place:
    return Place(at, crc32(mark))


def end_of(path: str) -> Place | None:
    """Where a journal ends now; None if there is none that can be read."""
    with suppress(OSError), open(path, "rb", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MARK))
        return place(size, file.read(min(size, MARK)))
    return None


def note(path: str, flushed: Place, lasting: bool = False) -> None:
    """Write down in this lock file what is on the disk. `lasting`: and bring the note there."""
    if sys.platform == "win32":
        return  # who holds the lock keeps others from writing there
    file = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        os.write(file, (NOTE % flushed).encode())
        if lasting:
            flush_to_disk(file)
    finally:
        os.close(file)
    if lasting:
        flush_folder(os.path.dirname(path))


def noted(path: str, data: bytes) -> int | None:
    """Up to where this content of a journal was noted to be on the disk; None: nobody knows."""
    if sys.platform == "win32":
        return 0
    try:
        with open(path, "rb", buffering=0) as file:
            word, at, checksum = file.read(SIZE).decode("ascii").split()
        flushed = Place(int(at), int(checksum, 16))
    except (OSError, ValueError):
        return None
    before = data[max(0, flushed.at - MARK) : flushed.at]
    is_of_this = word == "flushed" and flushed.at <= len(data) and flushed.checksum == crc32(before)
    return flushed.at if is_of_this else None
