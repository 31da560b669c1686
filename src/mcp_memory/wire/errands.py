"""The long call of a session while it runs elsewhere, and what waits behind it.

One runs at a time. Whatever reads or writes the space and arrives meanwhile waits in order, so that a
client's calls take effect in the order it sent them."""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.asides import heard_by
from mcp_memory.errand import Cancelled, Errand
from mcp_memory.facts import MemoryFault
from mcp_memory.losses import Unconfirmed
from mcp_memory.pace import STEPS_BETWEEN_LOOKS, Pace, at
from mcp_memory.wire.asking import confirm
from mcp_memory.wire.eras import SINCE
from mcp_memory.wire.jsonrpc import ID_STARTS, INTERNAL_ERROR, Fault, Message, encode, key_of, notification

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_memory.desk import Answer
    from mcp_memory.wire.calls import Call
    from mcp_memory.wire.offer import Offer

    Send = Callable[[list[bytes]], None]

# What may wait behind a long call before a client is told to slow down: four lines of the largest size.
MOST_WAITING_BYTES = 64 * 1024 * 1024
# At the end: a lock that is held so long is not one of a write by another process of ours.
LAST_PATIENCE = 0.4


class LongCall:
    """A call that runs in a thread of its own, with a way to tell how far it is."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.dialogue = dialogue = call.dialogue
        self.era = dialogue.era
        self.ident = bytes(dialogue.message.id)
        self.tool = call.tool
        self.unwanted = False  # the client withdrew it: not another word about it
        self.errand = Errand(self._report)
        self.errand.client = dialogue
        dialogue.errand = self.errand
        self._last = -1
        self._steps = 0
        meta = dialogue.meta
        token = bytes(meta.progress_token) if meta else b""
        self._token = token if token and token[0] in ID_STARTS else b""

    def withdraw(self) -> None:
        self.unwanted = True
        self.errand.cancel()

    def make(self, offer: Offer) -> Answer | None:
        """Make the call, or find that it was made before."""
        if self.tool.writes and self.dialogue.request_key:
            return offer.retries.once(self.call, lambda: self._make(offer), wait=True)
        return self._make(offer)

    def _make(self, offer: Offer) -> Answer:
        """Make it, with leave of the user where it takes more away than it may alone."""
        call, desk = self.call, offer.desk
        most = offer.most_lost(self.tool, self.dialogue)
        while True:
            try:
                pace = Pace(STEPS_BETWEEN_LOOKS, self._look, self.errand.progress)
                with at(pace) if self.tool.is_lengthy else nullcontext(), heard_by(self.dialogue.log):
                    return desk.call(call.tool, call.arguments, call.origin, self.errand, most_lost=most)
            except Unconfirmed as stakes:
                try:
                    confirm(self.dialogue, self.tool.name, stakes.losses)
                except MemoryFault as fault:
                    return desk.refusal(fault)
                most = stakes.losses.total

    def _look(self) -> None:
        self._steps += STEPS_BETWEEN_LOOKS
        self.errand.progress(self._steps, None, "searching")

    def _report(self, done: int, total: int | None, message: str) -> None:
        # Progress must grow, and a hundred notices are as good as a million.
        step = total // 100 if total else 0
        send = self.dialogue.send
        if not self._token or send is None or done < self._last + max(step, 1):
            return
        self._last = done
        fields: dict[str, Any] = {"progressToken": msgspec.Raw(self._token), "progress": done}
        if total is not None:
            fields["total"] = total
        if message and self.era.version >= SINCE["progress"]["message"]:
            fields["message"] = message
        send([notification("notifications/progress", encode(fields))])


class Errands:
    """A running long call and its queue. Whoever looks at both holds the lock."""

    def __init__(self, first: LongCall | None = None) -> None:
        self.lock = Lock()
        self.stirred = Event()  # something came for a call that waits
        self.running: LongCall | None = first
        self.is_unwanted = False  # what was taken up last was withdrawn
        self.pace = Pace(
            STEPS_BETWEEN_LOOKS, self._look, too_long=self._wait_no_more
        )  # of the thread that does all this
        self._taken_up: Any = None  # the id of what was taken up last
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
        self.stirred.set()

    def next(self) -> tuple[Message | None, bytes]:
        message, line = self.waiting.popleft()
        self.bytes -= len(line)
        self._taken_up = None if message is None else key_of(bytes(message.id))
        self.is_unwanted = False
        return message, line

    def _look(self) -> None:
        """Is what waits for another program still wanted?"""
        if self.running is not None:
            self.running.errand.check()
        elif self.is_unwanted:
            raise Cancelled("Cancelled; nothing was changed.")

    def hurry(self) -> None:
        """The client is gone, or the server ends: another program is not waited for any longer."""
        self.pace.patience = LAST_PATIENCE
        if self.running is not None:
            self.running.errand.cancel()

    def _wait_no_more(self) -> bool:
        self.pace.patience = 0.0  # a lock that one has waited for in vain is none to wait for again
        return False

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
        self.is_unwanted = self._taken_up == wanted
