"""Calls that take long: what one may touch, whom it works for, and in which turn the heavy ones come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from mcp_memory.asides import say
from mcp_memory.facts import MemoryFault

if TYPE_CHECKING:
    from mcp_memory.changes import Plan
    from mcp_memory.graph import Graph
    from mcp_memory.space import Space


class Cancelled(MemoryFault):
    """The client withdrew the call; nothing was changed."""


class ServerBusy(MemoryFault):
    """As many heavy calls are running as may run at a time."""

    code = "heavy_tool_backpressure"
    retryable = True

    def __init__(self, most: int) -> None:
        super().__init__("server_busy")
        self.message = f"Too many heavy maintenance operations are running (limit={most}). Retry later."


class Turns:
    """Heavy calls take turns: so many at a time, and who waits longer than `patience` is sent away."""

    def __init__(self, most: int = 1, patience: float = 2.0) -> None:
        self._most = most
        self._patience = patience
        self._free = threading.BoundedSemaphore(most)

    def __enter__(self) -> None:
        if self._free.acquire(blocking=False):
            return
        say("info", f"waiting for another heavy call to end, for {self._patience:g} s at most")
        if not self._free.acquire(timeout=self._patience):
            raise ServerBusy(self._most)

    def __exit__(self, *_: object) -> None:
        self._free.release()


class Client(Protocol):
    """Whoever a long call works for."""

    def ask(self, questions: dict[str, Any]) -> dict[str, Any]:
        """Have the client answer these; its answers by the same keys."""

    def log(self, level: str, text: str) -> None:
        """Tell the client something, if it wants to know."""


class Errand:
    """What a long call may touch: files inside the allowed roots, progress, and one commit at its end."""

    def __init__(self, report: Callable[[int, int | None, str], None] | None = None) -> None:
        self._report = report
        self._cancelled = threading.Event()
        self.space: Space
        self.client: Client | None = None
        self.keeps_loose_ends = False  # relations to what nobody has created yet come over too
        self.origin = ""
        self.tool = ""

    def cancel(self) -> None:
        self._cancelled.set()

    def check(self) -> None:
        """Raise Cancelled when the client no longer wants to know."""
        if self._cancelled.is_set():
            raise Cancelled("Cancelled; nothing was changed.")

    def log(self, level: str, text: str) -> None:
        """Say something to a client that listens to such things: debug, info, warning, error."""
        if self.client is not None:
            self.client.log(level, text)

    def progress(self, done: int, total: int | None = None, message: str = "") -> None:
        """Tell the client how far it is; raises Cancelled when it no longer wants to know."""
        self.check()
        if self._report is not None:
            self._report(done, total, message)

    def commit(self, planner: Callable[[Graph], Plan]) -> Any:
        """Plan on the current graph and make it true, all of it or nothing."""
        return self.space.commit(planner, self.origin, self.tool)
