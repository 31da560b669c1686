"""Standard error that keeps nobody waiting.

The law: who says something there goes on, whether anybody reads it or not. A client that keeps a pipe and
never reads it would else stop the thread that says the first line too many, and with it the end of the
process. What nobody takes is left out, and counted for whoever reads later."""

from __future__ import annotations

import io
import select
import sys
import threading
from typing import Any

# A reader that is merely busy gets so long, once; then lines are left out until there is room again.
PATIENCE_SECONDS = 0.2
# A pipe that has room for anything has room for as much as this (POSIX: 512 bytes at least are written as one).
PIECE = 512


class Patient(io.RawIOBase):
    """A descriptor that is written to as long as somebody takes what is written."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = io.FileIO(descriptor, "wb", closefd=False)
        self._turn = threading.Lock()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._left_out = 0

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor.fileno()

    def isatty(self) -> bool:
        return self._descriptor.isatty()

    def write(self, data: Any) -> int:
        said = bytes(data)
        if not self._turn.acquire(timeout=PATIENCE_SECONDS):
            return len(said)
        try:
            if self._left_out and self._has_room(0):
                lines, self._left_out = self._left_out, 0
                self._say(f"\nmcp-memory: {lines} lines are left out here, which nobody read\n".encode())
            if self._left_out or not self._say(said):
                self._left_out += said.count(b"\n")
        finally:
            self._turn.release()
        return len(said)

    def _say(self, said: bytes) -> bool:
        for at in range(0, len(said), PIECE):
            if not self._has_room(PATIENCE_SECONDS):
                return False
            self._descriptor.write(said[at : at + PIECE])
        return True

    def _has_room(self, seconds: float) -> bool:
        # Whose reader is gone has room too: writing tells.
        return bool(self._poll.poll(seconds * 1000))


def take_standard_error() -> None:
    """Whatever this process says from here on keeps nobody waiting. On Windows a pipe cannot be asked for room."""
    is_ours = sys.stderr is sys.__stderr__
    if sys.platform == "win32" or sys.stderr is None or not is_ours:
        return
    sys.stderr.flush()
    raw: Any = Patient(sys.stderr.fileno())
    # Text on top of what has no buffer: as Python itself does with -u.
    sys.stderr = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
