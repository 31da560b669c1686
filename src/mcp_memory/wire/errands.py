"""The long call of a session while it runs elsewhere, and what waits behind it.

One runs at a time. Whatever reads or writes the space and arrives meanwhile waits in order, so that a
client's calls take effect in the order it sent them."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.space import Errand
from mcp_memory.wire.eras import SINCE, Era
from mcp_memory.wire.jsonrpc import ID_STARTS, INTERNAL_ERROR, Fault, Message, encode, key_of, notification

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_memory.tools.registry import Tool

    Send = Callable[[list[bytes]], None]

# What may wait behind a long call before a client is told to slow down: four lines of the largest size.
MOST_WAITING_BYTES = 64 * 1024 * 1024


class LongCall:
    """A call that runs in a thread of its own, with a way to tell how far it is."""

    def __init__(self, era: Era, ident: bytes, tool: Tool, arguments: bytes, origin: str, message: Message) -> None:
        self.era = era
        self.ident = ident
        self.tool = tool
        self.arguments = arguments
        self.origin = origin
        self.unwanted = False  # the client withdrew it: not another word about it
        self.errand = Errand(self._report)
        self.send: Send | None = None
        self._last = -1
        meta = message.params.meta if message.params else None
        token = bytes(meta.progress_token) if meta else b""
        self._token = token if token and token[0] in ID_STARTS else b""

    def withdraw(self) -> None:
        self.unwanted = True
        self.errand.cancel()

    def _report(self, done: int, total: int | None, message: str) -> None:
        # Progress must grow, and a hundred notices are as good as a million.
        step = total // 100 if total else 0
        if not self._token or self.send is None or done < self._last + max(step, 1):
            return
        self._last = done
        fields: dict[str, Any] = {"progressToken": msgspec.Raw(self._token), "progress": done}
        if total is not None:
            fields["total"] = total
        if message and self.era.version >= SINCE["progress"]["message"]:
            fields["message"] = message
        self.send([notification("notifications/progress", encode(fields))])


class Errands:
    """A running long call and its queue. Whoever looks at both holds the lock."""

    def __init__(self, first: LongCall | None = None) -> None:
        self.lock = Lock()
        self.running: LongCall | None = first
        self.waiting: deque[tuple[Message | None, bytes]] = deque()
        self.bytes = 0

    def wait(self, message: Message | None, line: bytes) -> None:
        """Put a request, or a batch (no message), at the end of the queue."""
        if self.bytes + len(line) > MOST_WAITING_BYTES:
            running = self.running  # may end while we speak
            name = running.tool.name if running is not None else "a long call"
            raise Fault(
                INTERNAL_ERROR,
                f"{name} is running and too much waits behind it. Send this again when it has answered.",
                data={"retryable": True},
            )
        self.bytes += len(line)
        self.waiting.append((message, line))

    def next(self) -> tuple[Message | None, bytes]:
        message, line = self.waiting.popleft()
        self.bytes -= len(line)
        return message, line

    def withdraw(self, wanted: Any) -> None:
        """Forget the call with this id, running or waiting."""
        running = self.running  # may end while we look
        if running is not None and key_of(running.ident) == wanted:
            running.withdraw()
            return
        for item in self.waiting:
            if item[0] is not None and key_of(bytes(item[0].id)) == wanted:
                self.waiting.remove(item)
                self.bytes -= len(item[1])
                return
