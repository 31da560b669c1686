"""What every connection has: a place among the others, a client that may be slow, and an end.

Everything here happens in the loop, but `send`, which a worker calls. The law: what is kept for a client
that does not read is bounded, and a connection that is closed has said its last word first."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from mcp_memory.wire.callers import ANYBODY

if TYPE_CHECKING:
    from mcp_memory.wire.callers import Allowance, Caller
    from mcp_memory.wire.serving import Service

# So much may wait to be sent before a client that does not read is no longer served, and for how long then.
MOST_UNSENT = 256 * 1024
CLOGGED_SECONDS = 60.0
# Of large messages that are still coming, all connections together.
MOST_HELD = 128 * 1024 * 1024
# Thousands of tiny requests fit into one read, and all are parsed before anybody else has a turn.
MOST_READ = 64 * 1024
# After the last word of a connection that is turned away: time for the client to read it.
LINGER_SECONDS = 2.0
# So long may the answers to what one client sent at once keep the others waiting.
SLICE_SECONDS = 0.002
# A computer that vanished is noticed after about two minutes, although its client had nothing to say.
KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


class Connection(asyncio.Protocol):
    """One client's bytes. Subclasses know what the bytes mean."""

    transport: asyncio.Transport
    delivers_when_gone = False

    def __init__(self, service: Service) -> None:
        self.service = service
        self.loop = service.loop
        self.is_turned_away = False
        self.is_gone = False
        self.is_clogged = False
        self.is_lingering = False
        self.is_ending = False  # the server is: nothing new is begun
        self.client_has_ended = False  # it sends nothing more
        self.is_proven = False  # it has asked something that not everybody may ask
        self.is_private = False  # TLS
        self.address = ""  # of the client
        self.caller: Caller | None = None  # whose token it showed last
        self.heard = self.came = self.loop.time()
        self._held = 0  # bytes of a message that has yet to come to its end
        self._since = 0.0  # when it clogged, or began to linger
        self._room = threading.Event()  # a worker may send its next piece
        self._room.set()
        self._will_go_on = False

    # ── what the loop tells ──────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=MOST_UNSENT)
        if hasattr(transport, "max_size"):  # of one read, in asyncio's own loop
            transport.max_size = MOST_READ
        self.is_private = transport.get_extra_info("sslcontext") is not None
        self.address = str((transport.get_extra_info("peername") or ("",))[0])
        _keep_alive(transport.get_extra_info("socket"))
        if not self.service.admit(self):
            self.turn_away()

    def pause_writing(self) -> None:
        self.is_clogged = True
        self._since = self.loop.time()
        self._room.clear()

    def resume_writing(self) -> None:
        self.is_clogged = False
        self._room.set()
        self.go_on()

    def eof_received(self) -> bool:
        self.client_has_ended = True
        if self.is_lingering:
            return False
        self.ended()
        return not self.is_private  # what it asked is still answered, where half an end exists

    def connection_lost(self, error: Exception | None) -> None:
        self.is_gone = True
        self._room.set()
        self.hold(0)
        self.service.leave(self)
        self.gone()

    # ── what a connection of some kind does ──────────────────────────────────────────────────────

    def turn_away(self) -> None:
        """There are too many connections: say so."""
        raise NotImplementedError

    def go_on(self) -> None:
        """Answer what has come in and not been answered."""
        raise NotImplementedError

    def ended(self) -> None:
        """The client will send nothing more."""
        raise NotImplementedError

    def gone(self) -> None:
        """There is nobody any more."""
        raise NotImplementedError

    def deliver(self, lines: list[bytes], to: Any) -> None:
        """Send what a worker said to a request; `to` is what the worker was given for it."""
        raise NotImplementedError

    def worked(self, to: Any) -> None:
        """The worker has said everything."""
        raise NotImplementedError

    def hear(self) -> None:
        """Somebody has written: tell this client if it wants to know."""
        raise NotImplementedError

    def tick(self, now: float) -> None:
        """A second has passed."""
        patience = LINGER_SECONDS if self.is_lingering else CLOGGED_SECONDS
        if (self.is_clogged or self.is_lingering) and now - self._since > patience:
            self.transport.abort()
        elif self.caller is not None and not self.is_lingering and self.caller.is_over(time.time()):
            self.is_proven = False
            self.show_out()

    @property
    def allowance(self) -> Allowance:
        """Of whoever asks what is answered now."""
        return ANYBODY.allowance if self.caller is None else self.caller.allowance

    @property
    def is_at_work(self) -> bool:
        """Is anything asked that has not been answered?"""
        raise NotImplementedError

    def show_out(self) -> None:
        """The token that let it in holds no longer."""
        raise NotImplementedError

    def finish(self) -> None:
        """The server ends: last words, and close."""
        raise NotImplementedError

    def give_up(self) -> None:
        """The server ends and can wait no longer."""
        raise NotImplementedError

    # ── what they have in common ─────────────────────────────────────────────────────────────────

    def send(self, lines: list[bytes], to: Any = None) -> None:
        """For a worker: have these delivered, once the client has taken what came before."""
        self._room.wait()
        if not lines or (self.is_gone and not self.delivers_when_gone):
            return
        self._room.clear()
        try:
            self.loop.call_soon_threadsafe(self._deliver, lines, to)
        except RuntimeError:  # the loop has ended
            self._room.set()

    def _deliver(self, lines: list[bytes], to: Any) -> None:
        if not self.is_gone or self.delivers_when_gone:
            self.deliver(lines, to)
        if not self.is_clogged or self.is_gone:
            self._room.set()

    def go_on_soon(self) -> None:
        """In the loop's next turn, when what others have sent is read too."""
        if not self._will_go_on:
            self._will_go_on = True
            self.service.turn(self)

    def take_turn(self) -> None:
        self._will_go_on = False
        if not self.is_gone:
            self.go_on()

    def hold(self, size: int) -> bool:
        """So much of a message has come and waits for the rest. Is there room for it among those of all?"""
        if size != self._held:
            self.service.held += size - self._held
            self._held = size
        return self.service.held <= MOST_HELD

    def read_if(self, wanted: bool) -> None:
        """Read on, or let what the client sends wait at its end."""
        if self.is_gone or self.transport.is_closing():
            return
        if wanted != self.transport.is_reading() and not self.client_has_ended:
            if wanted:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()

    def linger(self) -> None:
        """Close, but read and forget for a moment: closing on unread bytes would destroy what was said last."""
        if self.is_lingering or self.transport.is_closing():
            return
        self.is_lingering = True
        self._since = self.loop.time()
        if self.client_has_ended:
            self.transport.close()
            return
        self.read_if(True)
        if self.transport.can_write_eof():
            self.transport.write_eof()


def _keep_alive(its_socket: socket.socket | None) -> None:
    if its_socket is None or its_socket.family not in (socket.AF_INET, socket.AF_INET6):
        return
    its_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):
            its_socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
