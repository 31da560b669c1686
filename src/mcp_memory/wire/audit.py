"""Who asked and who was refused, a line each on stderr.

The law: a line never keeps a call waiting, not even when nobody reads stderr, and never holds a secret or
what a call is about: only words of ours, names of tokens and tools, and addresses. What a client chose
itself is written as JSON, so that it cannot begin a line of its own."""

from __future__ import annotations

import json
import sys
import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LEVELS = ("off", "refusals", "writes", "calls")
MOST_WAITING = 1000  # lines; more are counted and left out
MOST_REFUSALS = 20  # a second: a flood must not bury the rest


def to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


class Audit:
    """Takes note of who asks."""

    def __init__(self, level: str = "off", write: Callable[[str], None] = to_stderr) -> None:
        self._level = LEVELS.index(level)
        self._write = write
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._left_out = 0
        self._second, self._refusals = 0, 0
        self._writer: threading.Thread | None = None
        self.tells_calls = self._level >= LEVELS.index("writes")

    def refused(self, status: int, reason: str, address: str, by: str = "", tool: str = "") -> None:
        if self._level < LEVELS.index("refusals"):
            return
        now = int(time.time())
        if now != self._second:
            self._second, self._refusals = now, 0
        self._refusals += 1
        if self._refusals > MOST_REFUSALS:
            self._left_out += 1
            return
        self._note("refused", status=status, reason=reason, address=address, by=by, tool=tool)

    def called(self, tool: str, by: str, seconds: float, is_error: bool, writes: bool) -> None:
        if self._level >= LEVELS.index("writes" if writes else "calls"):
            outcome = "error" if is_error else "ok"
            self._note("called", tool=tool, by=by, outcome=outcome, ms=f"{seconds * 1e3:.2f}")

    def noted(self, what: str) -> None:
        """Something about the server itself."""
        if self._level:
            self._note("note", what=what)

    def _note(self, event: str, **said: object) -> None:
        if self._lines.qsize() >= MOST_WAITING:
            self._left_out += 1
            return
        left_out, self._left_out = self._left_out, 0
        fields = "".join(f" {name}={_plain(value)}" for name, value in said.items() if value != "")
        more = f" left_out={left_out}" if left_out else ""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._lines.put(f"mcp-memory audit: {at} {event}{fields}{more}\n")
        if self._writer is None:
            self._writer = threading.Thread(target=self._run, name="audit", daemon=True)
            self._writer.start()

    def _run(self) -> None:
        while True:
            self._write(self._lines.get())

    def end(self, seconds: float = 0.2) -> None:
        """Write what waits, unless nobody reads."""
        until = time.monotonic() + seconds
        while self._lines.qsize() and time.monotonic() < until:
            time.sleep(0.002)


def _plain(value: object) -> str:
    text = str(value)
    return text if text.isascii() and text.isprintable() and " " not in text and '"' not in text else json.dumps(text)
