"""A lock between processes, held on a small file that stays where it is.

The law: whoever holds it holds it alone, also among several spaces of one process, and death lets
go of it. Made by hand: the filelock package takes 62 us for what costs 1 us here, and 50 ms to import."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

FIRST_WAIT = 0.0005
LONGEST_WAIT = 0.01

if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> bool:
        os.lseek(fd, 0, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:  # the same numbers for "held" and for "not now"
            return False
        return True

    def _unlock(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    # flock, not lockf: the locks of lockf vanish when anybody in this process closes the file.
    def _lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


class FileLock:
    """One lock file; its descriptor is kept, so taking the lock again is one system call."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.held = False
        self._fd: int | None = None

    def acquire(self, patience: float) -> bool:
        """Take the lock, trying for `patience` seconds; False when somebody else kept it all the time."""
        wait = FIRST_WAIT
        deadline = time.monotonic() + patience
        while not self._try():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            # Uneven waits: processes that collided once do not collide in step for ever.
            time.sleep(min(left, wait * (0.5 + os.urandom(1)[0] / 255)))
            wait = min(wait * 1.5, LONGEST_WAIT)
        self.held = True
        return True

    def _try(self) -> bool:
        if self._fd is None:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        if not _lock(self._fd):
            return False
        # Somebody may have removed the file: then the next process would lock another one of the same name.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._fd), os.stat(self.path)):
                return True
        self.close()
        return self._try()

    def release(self) -> None:
        self.held = False
        if self._fd is not None:
            _unlock(self._fd)

    def close(self) -> None:
        """Let go of the lock and of the descriptor; the file stays for the others."""
        self.held = False
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)
