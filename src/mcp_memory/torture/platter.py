"""What would still be on the disk if the power failed now: each content as it was flushed last, and the names as
they were when their folder was flushed last. Everything else may be there, or not, or in part.

It stands in a folder of its own, so that it outlives the processes that are killed, and all of them share it.
The law: nothing is called flushed that was not. What was not flushed is kept or lost by sectors; a lost sector of
what was on the disk before is as it was, and one that is new is zeros, as file systems promise."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from mcp_memory.stores.filelock import FileLock

SECTOR = 512
PATIENCE = 60.0
# Not on any disk: shared memory is begun anew after a start.
PASSING = ("-shm",)

Names = dict[str, str]  # of files in the folder, and which file each is


class Platter:
    def __init__(self, folder: str, place: str) -> None:
        self.folder = folder
        self.place = place
        self._contents = os.path.join(place, "contents")
        self._held = os.path.join(place, "held")
        self._names = os.path.join(place, "names.json")
        self._flushes = os.path.join(place, "flushes")
        for one in (self._contents, self._held):
            os.makedirs(one, exist_ok=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        lock = FileLock(os.path.join(self.place, "platter.lock"))
        if not lock.acquire(PATIENCE):
            raise TimeoutError("another victim keeps the platter locked")
        try:
            yield
        finally:
            lock.close()

    # ── what is flushed ──────────────────────────────────────────────────────────────────────────

    def take_content(self, path: str, read: Callable[[], bytes], descriptor: int | None = None) -> None:
        """A file was flushed: remember it as it is. `read` is called while nobody else remembers something."""
        if path.endswith(PASSING):
            return
        with self._alone(), suppress(FileNotFoundError):
            found = os.stat(path)
            if descriptor is None or os.path.samestat(found, os.fstat(descriptor)):
                _put(os.path.join(self._contents, _ident(found)), read())

    def take_names(self) -> None:
        """The folder was flushed."""
        with self._alone():
            names = self._names_now()
            for name, ident in names.items():  # a file that is held keeps its number, whatever becomes of its name
                with suppress(OSError):
                    os.link(os.path.join(self.folder, name), os.path.join(self._held, ident))
            _put(self._names, msgspec.json.encode(names))

    def take_all(self) -> None:
        """Begin with everything on the disk that stands in the folder. Nobody may be at work in it."""
        self.take_names()
        for name in self._names_now():
            path = os.path.join(self.folder, name)
            self.take_content(path, lambda path=path: _read(path))  # type: ignore[misc]

    def _names_now(self) -> Names:
        names: Names = {}
        for entry in os.scandir(self.folder):
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False) and not entry.name.endswith(PASSING):
                    names[entry.name] = _ident(os.stat(entry.path))
        return names

    # ── how long a flush takes ───────────────────────────────────────────────────────────────────

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Note when a flush begins and ends: what is acknowledged meanwhile waits for the next one."""
        self._note("+")
        try:
            yield
        finally:
            self._note("-")

    def _note(self, what: str) -> None:
        with open(self._flushes, "ab", buffering=0) as file:  # a line is one write: processes do not mix theirs
            file.write(f"{os.getpid()} {threading.get_ident()} {what} {time.monotonic()}\n".encode())

    def longest_flush(self, until: float) -> float:
        """In seconds; one that had not ended then lasted until then."""
        began: dict[tuple[str, str], float] = {}
        longest = 0.0
        with suppress(FileNotFoundError):
            for line in _read(self._flushes).decode().splitlines():
                pid, thread, what, at = line.split()
                if what == "+":
                    began[pid, thread] = float(at)
                else:
                    longest = max(longest, float(at) - began.pop((pid, thread), float(at)))
        return max(longest, *(until - at for at in began.values()), 0.0) if began else longest

    # ── the power fails ──────────────────────────────────────────────────────────────────────────

    def after_the_cut(self, chance: random.Random) -> dict[str, bytes]:
        """The files as the next start finds them. Every process must be dead."""
        then: Names = {}
        with suppress(FileNotFoundError):
            then = msgspec.json.decode(_read(self._names), type=Names)
        now = self._names_now()
        files = {}
        for name in sorted(then | now):
            ident = chance.choice((then, now)).get(name)
            if ident is not None:
                path = os.path.join(self.folder, name)
                files[name] = torn(self._flushed(ident), self._written(ident, path, now.get(name) == ident), chance)
        return files

    def _flushed(self, ident: str) -> bytes:
        with suppress(FileNotFoundError):
            return _read(os.path.join(self._contents, ident))
        return b""

    def _written(self, ident: str, path: str, is_it: bool) -> bytes:
        with suppress(FileNotFoundError):
            return _read(path if is_it else os.path.join(self._held, ident))
        return self._flushed(ident)


def torn(flushed: bytes, written: bytes, chance: random.Random) -> bytes:
    """A content of which only a part reached the disk: none, all, the beginning, or any sectors."""
    if flushed == written:
        return written
    differing = [at for at in range(0, len(written), SECTOR) if written[at : at + SECTOR] != flushed[at : at + SECTOR]]
    match chance.randrange(4):
        case 0:
            return flushed
        case 1:
            return written
        case 2:
            kept = set(differing[: chance.randint(0, len(differing))])
            end = max((min(at + SECTOR, len(written)) for at in kept), default=0)
        case _:
            kept = {at for at in differing if chance.random() < 0.5}
            end = max((min(at + SECTOR, len(written)) for at in kept), default=0)
            end = chance.choice((end, len(written)))
    content = bytearray(flushed.ljust(max(end, len(flushed)), b"\0"))
    for at in kept:
        sector = written[at : at + SECTOR]
        content[at : at + len(sector)] = sector
    return bytes(content)


def _ident(found: os.stat_result) -> str:
    return f"{found.st_dev}-{found.st_ino}"


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _put(path: str, content: bytes) -> None:
    beside = f"{path}.new"
    with open(beside, "wb") as file:
        file.write(content)
    os.replace(beside, path)
