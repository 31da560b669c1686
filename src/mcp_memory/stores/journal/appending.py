"""The end of a file that is kept open to be written on.

The law: what is appended stands there whole or not at all, and only behind what was expected there."""

from __future__ import annotations

import errno
import os
import sys

from mcp_memory.stores.wholefile import MISSING, Stamp, flush_to_disk, stamp_of

FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class Overtaken(Exception):
    """The file is not as it was: somebody wrote it who takes no lock."""


class Tape:
    def __init__(self, path: str) -> None:
        self.path = path
        self._fd: int | None = None

    def append(self, data: bytes, stamp: Stamp, end: int, flush: bool) -> Stamp:
        """Write behind `end` of the file of this stamp, which is created if it says so; its new stamp."""
        fd = self._create() if stamp == MISSING else self._open()
        try:
            found = os.fstat(fd)
            if found.st_ino != stamp[2] and stamp != MISSING:
                self.close()  # somebody wrote the file anew since it was opened
                fd = self._open()
                found = os.fstat(fd)
            if found.st_size != end or (stamp != MISSING and found.st_ino != stamp[2]):
                raise Overtaken
            if not found.st_mode & 0o222:  # an open file may still be written, but who took the right away meant it
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self.path)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(fd, rest) :]
                if flush:
                    flush_to_disk(fd)
            except BaseException:
                os.ftruncate(fd, end)
                raise
            return stamp_of(os.fstat(fd))
        except BaseException:
            self.close()
            raise
        finally:
            if sys.platform == "win32":
                self.close()  # an open file cannot be replaced there

    def cut(self, end: int) -> None:
        """Let the file end here, on the disk too."""
        fd = self._open()
        try:
            os.ftruncate(fd, end)
            flush_to_disk(fd)
        finally:
            self.close()

    def _create(self) -> int:
        self.close()
        try:
            self._fd = os.open(self.path, FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            raise Overtaken from None
        return self._fd

    def _open(self) -> int:
        if self._fd is None:
            try:
                if not os.stat(self.path).st_mode & 0o222:
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self.path)
                self._fd = os.open(self.path, FLAGS)
            except FileNotFoundError:
                raise Overtaken from None
        return self._fd

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)
