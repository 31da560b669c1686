"""The protocol over TCP: a message a line, a session a connection, in the order of each connection.

A client that does not read its answers is not read from either. Where a token is asked for, it is the
first line, and nothing else of a stranger is looked at."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from mcp_memory.facts import SCOPES
from mcp_memory.wire.access import MOST_OF_A_TOKEN
from mcp_memory.wire.callers import ALL, NOBODY, Denied
from mcp_memory.wire.connection import SLICE_SECONDS, Connection
from mcp_memory.wire.jsonrpc import Fault, refusal
from mcp_memory.wire.lines import Lines, TooLong
from mcp_memory.wire.methods import updates
from mcp_memory.wire.session import Session

if TYPE_CHECKING:
    import asyncio

    from mcp_memory.wire.callers import Allowance
    from mcp_memory.wire.serving import Service

FULL, UNAUTHORIZED = -32000, -32001
FIRST_LINE_SECONDS = 30.0
LINE_SECONDS = 60.0  # without a byte of a line that was begun
# A client that asks more often than it may is answered as often as it may.
SLOWED_SECONDS = 0.05
# What may wait behind a call before no more is read: the client will notice, and memory will not.
MOST_WAITING = 1024 * 1024
PIECE = 65_536  # answers are collected into pieces of about this size
GRACE_SECONDS = 0.5  # for a long call when its client has ended


class TcpConnection(Connection):
    """A session over a socket."""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self.session = Session(service.offer, "tcp", at_once=True, level=ALL if service.access.is_open else NOBODY)
        self._lines = Lines()
        self._pending: deque[bytes | TooLong] = deque()
        self._is_known = service.access.is_open
        self._greeting = b""  # what a stranger has sent so far
        self._has_spoken = False
        self._allowance: Allowance | None = None
        self._owes_news = False  # others wrote while the client did not read

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.session.transport = self.session.origin = f"tcp {self.address}".rstrip()  # unless a token has a name

    # ── in ───────────────────────────────────────────────────────────────────────────────────────

    def data_received(self, data: bytes) -> None:
        if self.is_lingering:
            return
        self.heard = self.loop.time()
        if not self._is_known:
            data = self._after_token(data)
        if data:
            lines = self._lines.feed(data)
            self.is_proven = self.is_proven or (self._is_known and bool(lines))
            self._has_spoken = self._has_spoken or bool(lines)
            self._pending.extend(lines)
            if (kept := self._lines.kept) <= PIECE:
                self.hold(0)
            elif not self.hold(kept):
                self._part(FULL, "Too many large lines at a time. Try again in a moment.", {"retryable": True})
                return
            self.go_on_soon()

    def _after_token(self, data: bytes) -> bytes:
        """What follows the token, once it has come and is right."""
        greeting = self._greeting + data
        token, line_end, rest = greeting.partition(b"\n")
        if line_end or len(token) > MOST_OF_A_TOKEN:
            try:
                self._let_in(token.strip()[:MOST_OF_A_TOKEN])
            except Denied as denied:
                self._turn_off(denied)
                return b""
        self._is_known = self._has_spoken = bool(line_end)
        self._greeting = b"" if line_end else greeting
        return rest

    def _let_in(self, token: bytes) -> None:
        caller = self.service.access.recognise(token)
        if caller.level == NOBODY:
            raise Denied("insufficient_scope", f"this token has none of the scopes {', '.join(SCOPES)}")
        if caller.allowance.sessions >= caller.allowance.most:
            raise Denied("too_much_at_once", "too many connections with this token", is_passing=True)
        caller.allowance.sessions += 1
        self.caller, self._allowance = caller, caller.allowance
        self.session.level, self.session.shown = caller.level, caller.shown
        if caller.name not in ("", "default"):
            self.session.transport = self.session.origin = f"tcp as {caller.name}"

    def _turn_off(self, denied: Denied) -> None:
        self.service.meters.refusals[denied.reason] += 1
        self.service.audit.refused(401, denied.reason, self.address)
        why = f"Authentication required: send the bearer token as the first line ({denied.text})."
        self._part(UNAUTHORIZED, why, {"retryable": True} if denied.is_passing else None)

    def show_out(self) -> None:
        self.caller = None
        self._pending.clear()
        self.session.give_up()
        self._part(UNAUTHORIZED, "The token of this connection has expired or was revoked.")

    def ended(self) -> None:
        self._pending.extend(self._lines.end() if self._is_known else [])
        self.go_on()
        if self.session.is_busy:
            self.loop.call_later(GRACE_SECONDS, self.session.give_up)

    def gone(self) -> None:
        self._pending.clear()
        if self._allowance is not None:
            self._allowance.sessions -= 1
            self._allowance = None
        self.session.give_up()

    # ── out ──────────────────────────────────────────────────────────────────────────────────────

    def go_on(self) -> None:
        until = self.loop.time() + SLICE_SECONDS
        said = updates(self.session) if self._owes_news and not self.is_clogged else []
        self._owes_news = self._owes_news and self.is_clogged
        size = 0
        while self._pending and self._may_answer():
            if self._allowance is not None and not self._allowance.take(self.loop.time()):
                self.loop.call_later(SLOWED_SECONDS, self.go_on_soon)
                break
            line = self._pending.popleft()
            answers = self.session.refuse(line) if isinstance(line, TooLong) else self.session.receive(line)
            said += answers
            size += sum(map(len, answers))
            if self.session.errand_begun:
                self.service.work(self.session, self)
            if size > PIECE:
                self._write(said)
                said, size = [], 0
            if self._pending and self.loop.time() > until:
                self.go_on_soon()
                break
        self._write(said)
        self._look_after()

    def _may_answer(self) -> bool:
        return not (self.is_clogged or self.is_lingering or self.session.waiting_bytes > MOST_WAITING)

    def _write(self, said: list[bytes]) -> None:
        if not said or self.transport.is_closing():
            return
        if len(said) == 1 and len(said[0]) > PIECE:  # too large to be copied for a line end
            self.transport.write(said[0])
            self.transport.write(b"\n")
        else:
            self.transport.write(b"\n".join(said) + b"\n")

    def _look_after(self) -> None:
        """Read on or not, hear of writes or not, and close when all is said."""
        if self.session.peer.interest.wants_anything or self.session.streams:
            self.service.hearers.add(self)
        else:
            self.service.hearers.discard(self)
        if self.client_has_ended:
            if not self.is_at_work and not self.is_lingering:
                self.finish()
        elif not self.is_lingering:
            self.read_if(not self._pending and self._may_answer() and not self.is_ending)

    def deliver(self, lines: list[bytes], to: Any) -> None:
        self._write(lines)
        if self._pending:
            self.go_on_soon()

    def worked(self, to: Any) -> None:
        if not self.is_gone:
            self.go_on()

    def hear(self) -> None:
        if self.is_lingering:
            return
        if self.is_clogged:
            self._owes_news = True
        else:
            self._write(updates(self.session))

    def _part(self, code: int, why: str, data: Any = None) -> None:
        if not self.is_lingering and not self.transport.is_closing():
            self._write([refusal(Fault(code, why, data=data))])
            self.linger()

    # ── the end ──────────────────────────────────────────────────────────────────────────────────

    def turn_away(self) -> None:
        self._part(FULL, "Too many connections. Try again when others have closed theirs.", {"retryable": True})

    def tick(self, now: float) -> None:
        super().tick(now)
        if not self._has_spoken and not self.is_lingering and now - self.came > FIRST_LINE_SECONDS:
            self._part(FULL, f"No line came within {FIRST_LINE_SECONDS:g} s.")
        elif self._lines.is_begun and self.transport.is_reading() and now - self.heard > LINE_SECONDS:
            self._part(FULL, f"The line did not end; nothing more came for {LINE_SECONDS:g} s.")

    @property
    def is_at_work(self) -> bool:
        return not self.is_gone and (bool(self._pending) or self.session.is_busy)

    def finish(self) -> None:
        self._write(self.session.end())
        self.service.hearers.discard(self)
        self.transport.close()

    def give_up(self) -> None:
        self.session.give_up()
