"""A disk that has room for so many bytes and no more, that may only be read, or on which the process dies at the
n-th write."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw


class Disk(apsw.VFS):
    """The system's own file system, except that somebody is asked before each write."""

    def __init__(self, before_write: Callable[[int], None]) -> None:
        self.before_write = before_write
        self.real = apsw.vfs_names()[0]  # the default one until now
        super().__init__("faulty", base=self.real, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return File(self.real, name, flags, self.before_write)


class File(apsw.VFSFile):
    def __init__(self, real: str, name: Any, flags: list[int], before_write: Callable[[int], None]) -> None:
        self.before_write = before_write
        super().__init__(real, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        self.before_write(len(data))
        super().xWrite(data, offset)


@contextmanager
def disk(before_write: Callable[[int], None]) -> Iterator[None]:
    faulty, hook = Disk(before_write), sys.unraisablehook
    # SQLite is told of every failed write, Python of the first: the others are no news.
    sys.unraisablehook = lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = hook
        faulty.unregister()


@contextmanager
def full_after(room: int) -> Iterator[None]:
    """Inside, SQLite can write so many bytes altogether; then the disk is full."""
    left = room

    def take(size: int) -> None:
        nonlocal left
        left -= size
        if left < 0:
            raise apsw.FullError("no room left on this disk")

    with disk(take):
        yield


@contextmanager
def counted() -> Iterator[list[int]]:
    """Inside, nothing fails; the sizes of all writes are collected."""
    sizes: list[int] = []
    with disk(sizes.append):
        yield sizes


class ReadOnlyDisk(apsw.VFS):
    """The system's own file system, on which nothing may be written. (File modes do not bind the superuser.)"""

    def __init__(self) -> None:
        self.real = apsw.vfs_names()[0]
        super().__init__("read-only", base=self.real, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        flags[0] &= ~(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        flags[0] |= apsw.SQLITE_OPEN_READONLY
        return apsw.VFSFile(self.real, name, flags)


@contextmanager
def read_only() -> Iterator[None]:
    faulty = ReadOnlyDisk()
    try:
        yield
    finally:
        faulty.unregister()


_dying: list[Disk] = []


def die_at(number: int) -> None:
    """From now on this process lives until its `number`-th write, and dies as if the power were cut."""
    left = number

    def count(size: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            if os.name == "posix":
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(9)

    _dying.append(Disk(count))  # a file system that nobody holds is taken out again
