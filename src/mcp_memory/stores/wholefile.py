"""A file that is replaced whole or not at all, and whose every version can be told from the others.

The law: under its name stands the old content or the new, never a part. It knows no format, takes no
lock and translates no error; who replaces it holds a lock against others who would."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

# One version of the file: time of change, size, inode.
Stamp = tuple[int, int, int]
MISSING: Stamp = (0, 0, 0)
# Every file of ours is later than the one it replaces, by more than the 100 ns that NTFS counts in:
# so a version never looks like an earlier one, not even with the same size and a reused inode.
TICK = 1000
READINGS = 100
F_BARRIERFSYNC = 85  # of macOS; Python has no name for it


class WholeFile:
    def __init__(self, path: str) -> None:
        self.path = path
        # The file behind a link is what is replaced, and where everybody who writes it must meet.
        self.target = os.path.realpath(path) if os.path.islink(path) else path
        self.temporary = f"{self.target}.mcp-memory.tmp"

    def moved(self) -> bool:
        """Is `path` a link now, or was it one? Then it may lead elsewhere than a moment ago."""
        return self.target != self.path or os.path.islink(self.path)

    def look(self) -> Stamp:
        """The version that stands there now: one system call."""
        try:
            return stamp_of(os.stat(self.path))
        except FileNotFoundError:
            return MISSING

    def read(self) -> tuple[bytes, Stamp]:
        """The whole content and its version. A file changed in place while it was read is read again."""
        try:
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file", self.path)
            for _ in range(READINGS):
                with _patiently(lambda: open(self.path, "rb", buffering=0)) as file:
                    before = stamp_of(os.fstat(file.fileno()))
                    data = file.read()
                    if before == stamp_of(os.fstat(file.fileno())):
                        return data, before
        except FileNotFoundError:
            return b"", MISSING
        raise OSError(errno.EBUSY, "another program keeps changing it", self.path)

    def is_writable(self) -> bool:
        """May the file be written? Renaming over it needs no such right, but who took it away meant it."""
        try:
            return bool(os.stat(self.target).st_mode & 0o222) and os.access(self.target, os.W_OK)
        except FileNotFoundError:
            return True

    def prepare(self, data: bytes, flush: bool) -> Stamp:
        """Write the next version under the temporary name: the old one's rights, a later time.

        Without `flush` it is still on the disk before the name is: after a power cut the old content stands
        there or the new. A name that comes first may stand on nothing but zeros, and all is lost."""
        try:
            old = os.stat(self.target)
        except FileNotFoundError:
            old = None
        self.discard()  # of a process that died
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = os.open(self.temporary, flags, 0o666 if old is None else stat.S_IMODE(old.st_mode))
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            if flush:
                flush_to_disk(file)
            else:
                put_before_what_follows(file)
            new = os.fstat(file)
        finally:
            os.close(file)
        if old is not None:
            _inherit(self.temporary, old, new)
        later = max(time.time_ns(), TICK + (old.st_mtime_ns if old is not None else 0))
        os.utime(self.temporary, ns=(later, later))
        return stamp_of(os.stat(self.temporary))

    def replace(self) -> None:
        """Let what was prepared stand under the name."""
        _patiently(lambda: os.replace(self.temporary, self.target))

    def discard(self) -> None:
        """Remove what was prepared, by us or by somebody who died."""
        with suppress(FileNotFoundError):
            os.unlink(self.temporary)

    def has_leftover(self) -> bool:
        return os.path.lexists(self.temporary)

    def flush(self) -> None:
        """Bring the file that stands there now to the disk, and its name."""
        if sys.platform == "win32":
            return  # an open descriptor would keep the next writer from replacing the file
        with suppress(FileNotFoundError):
            file = os.open(self.target, os.O_RDONLY)
            try:
                flush_to_disk(file)
            finally:
                os.close(file)
            self.flush_name()

    def flush_name(self) -> None:
        """Bring the directory to the disk, so that a power cut cannot take the rename back."""
        flush_folder(os.path.dirname(self.target))


def stamp_of(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _inherit(path: str, old: os.stat_result, new: os.stat_result) -> None:
    if sys.platform != "win32" and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with suppress(OSError):  # only root may give a file away
            os.chown(path, old.st_uid, old.st_gid)
    if old.st_mode != new.st_mode:
        os.chmod(path, stat.S_IMODE(old.st_mode))


def flush_to_disk(file: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(file, fcntl.F_FULLFSYNC)  # fsync alone leaves it in the drive's own memory
    else:
        os.fsync(file)


def put_before_what_follows(file: int) -> None:
    """Whatever reaches the disk later, this is there by then. Without waiting for the drive, where that can be had."""
    if sys.platform == "darwin":
        import fcntl

        with suppress(OSError):  # a file system that has no barriers
            fcntl.fcntl(file, F_BARRIERFSYNC)
            return
    os.fsync(file)


def flush_folder(folder: str) -> None:
    """Bring the names in a folder to the disk."""
    if sys.platform == "win32":
        return
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has no such thing
            raise
    finally:
        os.close(directory)


T = TypeVar("T")


def _patiently(operation: Callable[[], T]) -> T:
    """Windows refuses for a moment what another process has open: try for two seconds there."""
    deadline = time.monotonic() + 2
    while True:
        try:
            return operation()
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > deadline:
                raise
        time.sleep(0.005)
