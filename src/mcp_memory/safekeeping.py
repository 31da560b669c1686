"""Backups of a whole memory and the way back from one, for a person at a terminal.

The law: what is called a backup was opened and examined before it got its name; a memory that is replaced
was copied first; and nobody loses what a running server has just written."""

from __future__ import annotations

import glob
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.assembly import store_of
from mcp_memory.facts import BadInput, MemoryFault
from mcp_memory.space import Space
from mcp_memory.stores.formats import format_of
from mcp_memory.stores.onefile import OneFile
from mcp_memory.stores.store import StoreFault, StoreFull
from mcp_memory.stores.wholefile import TICK, flush_folder, flush_to_disk

if TYPE_CHECKING:
    from mcp_memory.stores.sqlite.backup import Held

ENDING = ".backup"
STAMP = "%Y%m%dT%H%M%SZ"
PARTIAL = ".partial"
CLOSING_SECONDS = 2.0  # a server that is just ending is waited for
# What can stand beside a database and hold changes that are not in it yet; it belongs to that file and no other.
LEFT_OVER = ("-wal", "-journal")
DERIVED = ("-shm", "-graph", "-vectormap", "-passages")
# What an examined copy does not need.
HELP_FILES = (*LEFT_OVER, *DERIVED, ".lock")


class Kept(NamedTuple):
    """What a file holds, as it was examined."""

    path: str
    entities: int
    relations: int
    calls: int | None  # of a format that keeps history


class Restored(NamedTuple):
    kept: Kept
    before: str | None  # where the memory that was replaced is kept


def back_up(path: str, place: str | None = None, keep: int | None = None) -> tuple[Kept, list[str]]:
    """A copy of a memory as it is now, examined; and older ones that were removed. Servers go on meanwhile.

    `place`: a file, or a folder; without it the copy stands beside the memory. `keep`: so many copies stay
    of those that were named by their time."""
    aim = os.path.abspath(_aim(path, place))
    if os.path.exists(aim):
        raise BadInput(f"{aim} exists already and is not written over. Remove it, or choose another name.")
    kind = format_of(path)
    with _partial(aim) as partial:
        _copy(kind, path, partial)
        kept = examine(kind, partial)._replace(path=aim)
        _name(partial, aim)
    return kept, [] if keep is None else _rotate(path, os.path.dirname(aim), keep)


def restore(file: str, path: str) -> Restored:
    """Put a memory in the place of another one, which is copied first.

    From before that copy until the other has its name nobody can write. A database in use is refused."""
    if not os.path.isfile(file):
        raise BadInput(f"There is no file {file}. Check the path.")
    if os.path.exists(path) and os.path.samefile(file, path):
        raise BadInput(f"{file} is this memory itself. Name a backup.")
    kind = format_of(file)
    target = os.path.realpath(path)  # behind a link, where everybody who writes it meets
    if _size(target) and format_of(target) != kind:
        raise BadInput(
            f"{file} is a {kind} memory and {path} a {format_of(path)} one. `mcp-memory import` takes over another "
            "format."
        )
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with _partial(target) as partial:
        _copy_now(kind, file, partial)
        kept = examine(kind, partial, file)._replace(path=path)
        with _held(kind, target) as held:
            before = _set_aside(held, target)
            for ending in (*LEFT_OVER, *DERIVED):
                with suppress(OSError):
                    os.remove(target + ending)
            _later_than(target, partial)
            _name(partial, target)
    return Restored(kept, before)


@contextmanager
def _held(kind: str, path: str) -> Iterator[Held | None]:
    """Nobody else writes this memory. What is given copies a database; any other file lies still."""
    if kind != "sqlite":
        store = store_of(kind, path, patience=CLOSING_SECONDS)
        assert isinstance(store, OneFile)
        try:
            with store.locked():
                yield None
        finally:
            store.close()
        return
    from mcp_memory.stores.sqlite.backup import held

    # SQLite takes an empty file for a new one, and would remove the changes that are left of it.
    with held(path) if _size(path) else nullcontext() as database:
        yield database


def _set_aside(held: Held | None, path: str) -> str | None:
    """Copy the memory that will be replaced, or what is left of it; the name of the copy."""
    left = [ending for ending in ("", *LEFT_OVER) if _size(path + ending)]
    if held is not None:
        left = [""]  # it has taken in all the rest
    if not left:
        return None
    place = _unused(f"{path}.before-restore-{_now()}")
    with _partial(place) as partial:
        for ending in left:
            if held is None or not held.copy(partial):
                _copy_file(path + ending, partial + ending)
        for ending in reversed(left):
            _name(partial + ending, place + ending)
    return place + left[0]


def _later_than(path: str, partial: str) -> None:
    """Who follows a plain file by its time must see that it is another one now."""
    with suppress(FileNotFoundError):
        later = max(time.time_ns(), TICK + os.stat(path).st_mtime_ns)
        os.utime(partial, ns=(later, later))


def examine(kind: str, path: str, named: str | None = None) -> Kept:
    """Open a copy as a server would, have the doctor look at it, and close it as one plain file."""
    space = Space(store_of(kind, path), keeps_usage=False)
    try:
        findings = [finding.text for finding in space.check()]
        graph = space.graph()
        calls = None if space.history is None else sum(1 for _ in _calls(space))
    except StoreFault as fault:
        raise type(fault)(str(fault).replace(path, named or path)) from fault
    finally:
        space.close()
    if findings:
        raise MemoryFault(
            f"{named or 'The memory'} is not in order: {findings[0]}"
            + (f" (and {len(findings) - 1} more findings)" if len(findings) > 1 else "")
            + ". `mcp-memory doctor` tells what can be done; nothing was written."
        )
    if kind == "sqlite":
        from mcp_memory.stores.sqlite.backup import into_one_file

        into_one_file(path)
    for ending in HELP_FILES:
        with suppress(OSError):
            os.remove(path + ending)
    return Kept(path, graph.entity_count, graph.relation_count, calls)


def _calls(space: Space) -> Iterator[int]:
    history = space.history
    assert history is not None
    yield from history.newest(1 << 62)


# ── copying ──────────────────────────────────────────────────────────────────────────────────────


def _copy(kind: str, path: str, partial: str) -> None:
    """A memory as it is, committed and whole, whoever writes to it meanwhile."""
    if kind == "sqlite":
        from mcp_memory.stores.sqlite.backup import copy_online

        copy_online(path, partial)
        return
    store = store_of(kind, path)
    try:
        with _locked(store):
            _copy_now(kind, path, partial)
    finally:
        store.close()


@contextmanager
def _locked(store: object) -> Iterator[None]:
    """No writer of ours is in the middle of a write. A file that may only be read has none."""
    assert isinstance(store, OneFile)
    if not os.access(store.path, os.W_OK) or not os.access(os.path.dirname(store.path), os.W_OK):
        yield
        return
    with store.locked():
        yield


def _copy_now(kind: str, path: str, partial: str) -> None:
    if kind == "sqlite":
        from mcp_memory.stores.sqlite.backup import copy_online

        copy_online(path, partial)
        return
    _copy_file(path, partial)


def _copy_file(path: str, partial: str) -> None:
    try:
        with open(path, "rb") as source, open(partial, "xb") as target:
            while piece := source.read(1 << 20):
                target.write(piece)
            target.flush()
            flush_to_disk(target.fileno())
    except OSError as error:
        raise StoreFull(f"{path} cannot be copied to {partial}: {error.strerror}. Nothing was changed.") from error


@contextmanager
def _partial(aim: str) -> Iterator[str]:
    """A name to write under until it is whole; nothing of it is left behind when it does not become so."""
    os.makedirs(os.path.dirname(aim), exist_ok=True)
    partial = f"{aim}.{os.getpid()}{PARTIAL}"
    try:
        yield partial
    finally:
        for left in glob.glob(f"{glob.escape(partial)}*"):
            with suppress(OSError):
                os.remove(left)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _name(partial: str, aim: str) -> None:
    """What was written gets its name, and that is on the disk before anything else is removed or replaced."""
    os.replace(partial, aim)
    flush_folder(os.path.dirname(aim))


# ── names ────────────────────────────────────────────────────────────────────────────────────────


def _now() -> str:
    return datetime.now(timezone.utc).strftime(STAMP)


def _aim(path: str, place: str | None) -> str:
    if place is None:
        return _unused(f"{path}.{_now()}")
    if os.path.isdir(place) or place.endswith(("/", os.sep)):
        return _unused(os.path.join(place, f"{os.path.basename(path)}.{_now()}"))
    return place


def _unused(beginning: str) -> str:
    place, number = f"{beginning}{ENDING}", 1
    while os.path.exists(place):
        number += 1
        place = f"{beginning}-{number}{ENDING}"
    return place


def _rotate(path: str, folder: str, keep: int) -> list[str]:
    """Remove the oldest of the copies that were named by their time; what has another name is not ours to remove."""
    name = os.path.basename(path)
    ours = re.compile(re.escape(name) + r"\.(\d{8}T\d{6}Z)(?:-\d+)?" + re.escape(ENDING))
    found = [
        (match[1], os.stat(place).st_mtime_ns, place)
        for place in glob.glob(os.path.join(glob.escape(folder), f"{glob.escape(name)}.*{ENDING}"))
        if (match := ours.fullmatch(os.path.basename(place)))
    ]
    old = [place for _, _, place in sorted(found)[: max(len(found) - keep, 0)]]
    for place in old:
        os.remove(place)
    return old
