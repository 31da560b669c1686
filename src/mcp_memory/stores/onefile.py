"""What stores that live in one file of their own have in common: its lock, its quarantine, its errors in words."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from mcp_memory.stores.filelock import FileLock
from mcp_memory.stores.quarantine import Quarantine
from mcp_memory.stores.store import StoreFault, StoreFull, StoreLocked, StoreReadOnly
from mcp_memory.stores.wholefile import Stamp, WholeFile

PATIENCE = 15.0  # for the lock before a write
TIDYING_PATIENCE = 0.2  # for the lock when a reader would like to keep something aside
# What the doctor advises where a file holds what cannot be understood, and where something lies about beside it.
KEPT_ASIDE = (
    "what is not served is kept in {place}, and doctor --repair takes it out of the memory file; to have its facts, "
)
TIDIED = "doctor --repair tidies up"
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


class OneFile:
    """One memory file, with `<file>.lock` and perhaps `<file>.quarantine` beside it.

    Durability `normal`: an answered write survives the death of every process; the disk itself is
    flushed in the next quiet moment (not on Windows), so a power cut may take back what was written
    since the last one, and nothing else. `sync`: the disk is flushed before every answer."""

    longest_text: int | None = None  # in bytes
    quick = False  # a write is at least a few system calls, at worst the whole file

    def __init__(self, path: str | os.PathLike[str], *, durability: str = "normal", patience: float = PATIENCE) -> None:
        self.path = os.path.abspath(path)
        self._sync = durability == "sync"
        self.patience = patience
        self._unflushed = False
        self._aim()

    def _aim(self) -> None:
        self._file = WholeFile(self.path)
        self._lock = FileLock(f"{self._file.target}.lock")
        self._quarantine = Quarantine(self._file.target)

    def _acquire(self, patience: float) -> None:
        if self._file.moved():
            self._lock.close()
            self._aim()
        try:
            try:
                taken = self._lock.acquire(patience)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(self._file.target), exist_ok=True)
                taken = self._lock.acquire(patience)
        except OSError as error:
            self._fail(error, "write")
        if not taken:
            how_long = (
                f"has kept {self._lock.path} locked for {patience:g} s" if patience else f"locks {self._lock.path}"
            )
            raise StoreLocked(
                f"Another program {how_long}; nothing was changed. Repeat the call, or end the other program."
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No other writer of ours is at the file meanwhile."""
        self._acquire(self.patience)
        try:
            yield
        finally:
            self._lock.release()

    def _refuse_read_only(self) -> None:
        if not self._file.is_writable():
            raise StoreReadOnly(read_only(self._file.target))

    def _look(self) -> Stamp:
        try:
            return self._file.look()
        except OSError as error:
            self._fail(error, "read")

    def feed(self) -> None:
        return None

    def rebuild(self) -> None:
        """Nothing in a file of one piece is derived from something else in it."""

    def behind(self) -> int:
        return 0

    def settle(self, seconds: float | None = None) -> None:
        """Flush to the disk what was answered from the system's memory. May run beside everything else."""
        if self._unflushed:
            self._unflushed = False
            try:
                self._file.flush()
            except OSError as error:
                self._unflushed = True
                self._fail(error, "flush")

    def _has_leftover(self) -> bool:
        """Did a process that died leave its unfinished next version?"""
        if not self._file.has_leftover():
            return False
        # Somebody may be at work on it; nobody is while we hold the lock.
        try:
            self._acquire(self.patience)
        except StoreReadOnly:
            return True
        try:
            return self._file.has_leftover()
        finally:
            self._lock.release()

    def _fail(self, error: OSError, doing: str) -> NoReturn:
        if error.errno in FULL:
            raise StoreFull(
                f"No space left to write {self.path}; nothing was changed. Free some space and repeat the call."
            ) from error
        if doing == "write" and error.errno in FORBIDDEN:
            raise StoreReadOnly(read_only(error.filename or self._file.target)) from error
        raise StoreFault(
            f"Cannot {doing} {self.path}: {error.strerror or error}. Put that right and repeat the call."
        ) from error


def read_only(path: str) -> str:
    return f"{path} may not be written; nothing was changed. Reading goes on. Allow writing and repeat the call."
