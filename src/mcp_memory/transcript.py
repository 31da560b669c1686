"""A whole memory with its history as one text file, `.mcphistory`: a line that says what it is, a line for each
entry of the feed, and a line that says it is complete.

The law: what is taken in was replayed and examined apart before it touches a memory; a part of a transcript
is not taken for all of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from mcp_memory.changes import AnyChange, Entry, Was
from mcp_memory.facts import BadInput, MemoryFault
from mcp_memory.graph import Graph
from mcp_memory.stores.wholefile import flush_to_disk

if TYPE_CHECKING:
    from mcp_memory.space import Space

SUFFIX = ".mcphistory"
FORMAT, VERSION = "mcp-memory history", 1
STRIDE = 200  # entries between two words about how far it is
WRITTEN_AT_ONCE = 500

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

encode = msgspec.json.encode
Progress = Callable[[int], None]


class Head(msgspec.Struct):
    format: str
    version: int
    floor: int  # the entries up to this one are the beginning, a state and no calls


class Line(msgspec.Struct, omit_defaults=True):
    """One entry of the feed."""

    seq: int
    at: str
    changes: list[AnyChange]
    by: str = ""
    tool: str = ""
    part: int = 0
    was: Was | None = None


class End(msgspec.Struct):
    entries: int
    sha256: str  # of every line before this one


decode_head = msgspec.json.Decoder(Head).decode
decode_line = msgspec.json.Decoder(Line).decode
decode_end = msgspec.json.Decoder(End).decode


def write(space: Space, path: str, told: Progress) -> int:
    """The transcript of a memory, as it is at this moment; how many entries it has. The file must not exist."""
    history = space.history
    if history is None:
        raise BadInput("This memory's format keeps no history. Export to .jsonl, .mcpmem or .db writes the facts.")
    partial = f"{path}.{os.getpid()}.partial"
    digest, count = hashlib.sha256(), 0
    try:
        with open(partial, "xb") as file:
            upto, floor, first = space.graph().seq, history.floor, history.first
            # Later calls only append: what stands up to here stays, unless somebody compacts, which is noticed.
            for line in _lines(history.between(first - 1, upto), floor):
                digest.update(line)
                file.write(line)
                if count % STRIDE == 0:
                    told(count)
                count += 1
            if history.floor != floor or count != upto - first + 2:
                raise MemoryFault("The memory was compacted meanwhile; nothing was written. Try again.")
            file.write(encode(End(count - 1, digest.hexdigest())) + b"\n")
            file.flush()
            flush_to_disk(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise MemoryFault(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            os.remove(partial)
    return count - 1


def _lines(entries: Iterator[Entry], floor: int) -> Iterator[bytes]:
    yield encode(Head(FORMAT, VERSION, floor)) + b"\n"
    for entry in entries:
        line = Line(entry.seq, entry.at, entry.changes, entry.origin, entry.tool, entry.part, entry.was)
        yield encode(line) + b"\n"


def read(path: str) -> tuple[int, Iterator[Entry]]:
    """The floor, and the entries one by one; BadInput where it is not what was written."""
    try:
        file = open(path, "rb")  # noqa: SIM115  (closed when the entries were read)
    except OSError as error:
        raise MemoryFault(f"{path} cannot be read: {error.strerror}. Check the path.") from error
    first = file.readline()
    try:
        head = decode_head(first)
    except UNREADABLE as error:
        file.close()
        raise BadInput(f"{path} is no history of mcp-memory: {error}") from error
    if head.format != FORMAT or head.version > VERSION:
        file.close()
        raise BadInput(f"{path} is a {head.format} of version {head.version}; this mcp-memory knows up to {VERSION}.")

    def entries() -> Iterator[Entry]:
        digest, count, previous = hashlib.sha256(first), 0, b""
        with file:
            for line in file:
                if previous:
                    digest.update(previous)
                    count += 1
                    yield _entry(path, count + 1, previous)
                previous = line
        try:
            end = decode_end(previous)
        except UNREADABLE as error:
            raise BadInput(f"{path} is not complete: its last line is missing. Nothing was changed.") from error
        if (end.entries, end.sha256) != (count, digest.hexdigest()):
            raise BadInput(f"{path} was altered or cut after it was written. Nothing was changed.")

    return head.floor, entries()


def _entry(path: str, number: int, line: bytes) -> Entry:
    try:
        said = decode_line(line)
    except UNREADABLE as error:
        raise BadInput(f"{path}, line {number} is no entry of a history: {error}. Nothing was changed.") from error
    return Entry(said.seq, said.at, said.changes, said.by, said.tool, said.part, said.was)


def replayed(path: str) -> Graph:
    """What a transcript says in the end, after it was taken in apart and found to be in order."""
    from mcp_memory.assembly import open_space

    with TemporaryDirectory(prefix="mcp-memory-", ignore_cleanup_errors=True) as folder:
        apart = open_space(os.path.join(folder, "apart.db"), keeps_usage=False)
        try:
            floor, entries = read(path)
            apart.take_feed(entries, floor)
            apart.settle()
            findings = apart.check()
            if findings:
                raise BadInput(f"{path} is not in order: {findings[0].text}. Nothing was changed.")
            return apart.graph()
        except MemoryFault as fault:
            if isinstance(fault, BadInput):
                raise
            raise BadInput(f"{path} cannot be replayed: {fault}") from fault
        except (KeyError, IndexError, ValueError) as error:
            raise BadInput(f"{path} cannot be replayed: it speaks of a fact that was not there ({error}).") from error
        finally:
            apart.close()
