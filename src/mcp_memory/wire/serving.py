"""Many clients at one address: one event loop for all of them, and one space.

The law: the loop never waits, neither for a lock nor for a file nor for a client. A call is made in the
loop when it can be done at once, which takes microseconds, and else by a worker. At the end what has
been received is answered."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_memory.settings import BadSetting
from mcp_memory.wire.access import Access, access_for, address_of, is_loopback
from mcp_memory.wire.audit import Audit
from mcp_memory.wire.connection import SLICE_SECONDS
from mcp_memory.wire.meters import Meters
from mcp_memory.wire.oauth import resource_of
from mcp_memory.wire.stdio import SWITCH_SECONDS
from mcp_memory.wire.tls import Certificate, certificate_for
from mcp_memory.wire.workers import Workers

if TYPE_CHECKING:
    from mcp_memory.settings import Settings
    from mcp_memory.tools.registry import Tool
    from mcp_memory.wire.connection import Connection
    from mcp_memory.wire.offer import Offer
    from mcp_memory.wire.session import Session
    from mcp_memory.wire.tls import Greeting

T = TypeVar("T")
log = logging.getLogger("mcp_memory")

# At the end: how long what still comes in is read, how long calls may take, and how long their answers.
DRAIN_SECONDS, QUIET_SECONDS = 0.2, 0.02
GRACE_SECONDS = 0.4
FAREWELL_SECONDS = 0.2
# Connections that the system keeps waiting for us, and how many of them are let in before the others have a turn:
# 256 at once took 20 ms, which everybody else waited.
BACKLOG, ACCEPTED_AT_ONCE = 1024, 16
# When all places are taken, who has asked nothing for so long after coming makes room.
STRANGER_SECONDS = 0.25
PREPARE_SECONDS = 2.0
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Service:
    """What the connections of one address share."""

    def __init__(
        self,
        offer: Offer,
        access: Access,
        most_connections: int,
        *,
        audit: Audit | None = None,
        certificate: Certificate | None = None,
        resource: str = "",
        compress_from: int = 1 << 62,
    ) -> None:
        self.offer = offer
        self.access = access
        self.audit = audit or Audit()
        self.certificate = certificate
        self.resource = resource  # our own address, as clients know it
        self.compress_from = compress_from
        self.meters = Meters()
        self.is_ending = False
        self.greetings: dict[asyncio.Transport, float] = {}  # connections before TLS is agreed on, and since when
        self.held = 0  # bytes of large messages that are still coming
        self._is_refreshing = False
        self.loop = asyncio.get_running_loop()
        self.date = b""
        self.connections: set[Connection] = set()
        self.hearers: set[Connection] = set()  # those that want to know when others write
        self._most = most_connections
        self._turned_away = 0
        self.workers = Workers(most_connections)
        self._untold: dict[Connection, None] = {}  # those that have yet to hear of a write, in order
        self._will_tell = False
        self.began = self.loop.time()
        self.is_prepared = False  # the graph has been asked for, and there was an answer
        self._turns: list[Connection] = []  # those that go on in the loop's next turn
        offer.listeners.append(self._wrote)
        offer.desk.watch = self._called

    # ── connections ──────────────────────────────────────────────────────────────────────────────

    def admit(self, connection: Connection) -> bool:
        """Is there room for it?"""
        is_full = len(self.connections) - self._turned_away >= self._most
        if is_full and self._displace():
            is_full = False
        if is_full and self._turned_away >= self._most:
            connection.transport.abort()  # they come faster than they can be told
            return True
        self.connections.add(connection)
        self._turned_away += is_full
        connection.is_turned_away = is_full
        return not is_full

    def _displace(self) -> bool:
        """Send away who came first and has not yet shown that it may ask for the memory: it had its time."""
        latest = self.loop.time() - STRANGER_SECONDS
        strangers = [
            each for each in self.connections if not (each.is_proven or each.is_turned_away) and each.came < latest
        ]
        if strangers:
            first = min(strangers, key=attrgetter("came"))
            first.transport.abort()
            self.leave(first)
        return bool(strangers)

    def may_greet(self, transport: asyncio.Transport) -> bool:
        """Is there room for one more who has yet to agree on TLS? Who came first makes it."""
        now = self.loop.time()
        if len(self.greetings) >= self._most:
            first = next(iter(self.greetings))
            if now - self.greetings[first] < STRANGER_SECONDS:
                return False
            del self.greetings[first]
            first.abort()
        self.greetings[transport] = now
        return True

    def leave(self, connection: Connection) -> None:
        if connection in self.connections:
            self.connections.discard(connection)
            self._turned_away -= connection.is_turned_away
        self.hearers.discard(connection)

    def turn(self, connection: Connection) -> None:
        """Have it go on in the loop's next turn."""
        if not self._turns:
            self.loop.call_soon(self._take_turns)
        self._turns.append(connection)

    def _take_turns(self) -> None:
        """Whatever is answered now has come before: one look at what other processes wrote is enough for all of it."""
        turns, self._turns = self._turns, []
        with self.offer.desk.space.one_look():
            for connection in turns:
                try:
                    connection.take_turn()
                except Exception:
                    log.exception("a connection failed, and is closed")
                    connection.transport.abort()

    def tick(self) -> None:
        """Once a second: the date of answers, and what has taken too long."""
        now = time.gmtime()
        self.date = (
            f"{DAYS[now.tm_wday]}, {now.tm_mday:02} {MONTHS[now.tm_mon - 1]} {now.tm_year} "
            f"{now.tm_hour:02}:{now.tm_min:02}:{now.tm_sec:02} GMT"
        ).encode()
        for connection in list(self.connections):
            connection.tick(self.loop.time())
        self.loop.call_later(1.0, self.tick)
        if not self._is_refreshing:
            self._is_refreshing = True
            self.workers.do(self.refresh)

    def refresh(self) -> None:
        """Take up what was changed outside: tokens, keys, certificates. For a worker."""
        try:
            found = [self.access.refresh(), self.certificate.refresh() if self.certificate is not None else ""]
            for what in filter(None, found):
                self.audit.noted(what)
        except Exception:
            log.exception("what changed outside could not be taken up")
        self._is_refreshing = False

    # ── what is counted ──────────────────────────────────────────────────────────────────────────

    def _called(self, tool: Tool, origin: str, seconds: float, is_error: bool) -> None:
        self.meters.called(tool.name, seconds, is_error)
        if self.audit.tells_calls:
            self.audit.called(tool.name, origin, seconds, is_error, tool.writes)

    # ── calls that take time ─────────────────────────────────────────────────────────────────────

    def work(self, session: Session, connection: Connection, to: Any = None) -> None:
        """Have a worker do what the session began; what it says is delivered to the connection."""
        session.errand_begun = False

        def job() -> None:
            session.work(lambda lines: connection.send(lines, to))
            try:
                self.loop.call_soon_threadsafe(connection.worked, to)
            except RuntimeError:  # the loop has ended
                return

        # Where nobody shows a token nobody is known from another, and all are trusted.
        lane = connection.allowance if session.only_reads and not self.access.is_open else None
        session.step_aside = self.workers.step_aside
        self.workers.do(job, lane)

    def do(self, job: Callable[[], T], then: Callable[[T], None]) -> None:
        """Have a worker do this, and the loop go on with what it got."""

        def work() -> None:
            got = job()
            try:
                self.loop.call_soon_threadsafe(then, got)
            except RuntimeError:  # the loop has ended
                return

        self.workers.do(work)

    # ── news ─────────────────────────────────────────────────────────────────────────────────────

    def _wrote(self, session: Session | None) -> None:
        """A session has written, or somebody else; called in whichever thread that was."""
        if not self.hearers:
            return
        if not self._will_tell:
            self._will_tell = True
            try:
                self.loop.call_soon_threadsafe(self._tell)
            except RuntimeError:  # the loop has ended
                return

    def _tell(self) -> None:
        self._will_tell = False
        is_telling = bool(self._untold)
        self._untold.update(dict.fromkeys(self.hearers))
        if not is_telling:
            self._go_on_telling()

    def _go_on_telling(self) -> None:
        """Tell one after the other, and let whoever asks have a turn between."""
        until = self.loop.time() + SLICE_SECONDS
        try:
            while self._untold and self.loop.time() < until:
                connection = next(iter(self._untold))
                del self._untold[connection]
                if connection in self.hearers:
                    connection.hear()
        finally:
            if self._untold:
                self.loop.call_soon(self._go_on_telling)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────

    async def end(self) -> None:
        """Answer what has been received, say goodbye, and let go."""
        self.is_ending = True
        for transport in list(self.greetings):
            transport.abort()
        await self._drain()
        for connection in list(self.connections):
            connection.is_ending = True
            connection.read_if(False)
        await self._until(lambda: not any(each.is_at_work for each in self.connections), GRACE_SECONDS)
        for connection in list(self.connections):
            connection.give_up()
        await self._until(lambda: not any(each.is_at_work for each in self.connections), GRACE_SECONDS)
        self.offer.desk.space.is_ending = True
        for connection in list(self.connections):
            connection.finish()
        await self._until(lambda: not self.connections, FAREWELL_SECONDS)
        for connection in list(self.connections):
            connection.transport.abort()
        self.audit.end()

    async def _drain(self) -> None:
        """Read what was sent before the end was asked for."""
        until = self.loop.time() + DRAIN_SECONDS
        quiet_since = self.loop.time()
        while self.loop.time() < until and self.loop.time() - quiet_since < QUIET_SECONDS:
            await asyncio.sleep(0.005)
            quiet_since = max([quiet_since, *(connection.heard for connection in self.connections)])

    async def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        until = self.loop.time() + seconds
        while not condition() and self.loop.time() < until:
            await asyncio.sleep(0.005)


# ── the process ──────────────────────────────────────────────────────────────────────────────────


def listen(offer: Offer, settings: Settings, close: Callable[[], None] | None = None) -> int:
    """Serve whoever comes, until a signal asks for the end; the result is the exit code."""
    access = access_for(settings)
    certificate = certificate_for(settings)
    host, port = address_of(settings.bind)
    _make_room_for(settings.max_connections)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        asyncio.run(_listen(offer, access, certificate, settings, host, port))
    finally:
        offer.end()
        if close is not None:
            close()
    return 0


async def _listen(
    offer: Offer, access: Access, certificate: Certificate | None, settings: Settings, host: str, port: int
) -> None:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    _catch_signals(loop, asked.set)
    service = Service(
        offer,
        access,
        settings.max_connections,
        audit=Audit(settings.audit),
        certificate=certificate,
        resource=resource_of(settings),
        compress_from=settings.compress_from,
    )
    service.tick()
    try:
        server = await loop.create_server(_kind(settings.transport, service), host, port, backlog=ACCEPTED_AT_ONCE)
    except OSError as error:
        raise BadSetting(f"Nothing can be served at {settings.bind}: {error.strerror or error}.") from error
    for place in server.sockets:
        with socket.fromfd(place.fileno(), place.family, place.type) as same:
            same.listen(BACKLOG)
        _announce(settings.transport, place.getsockname(), certificate is not None)
    if not access.is_open and certificate is None and not is_loopback(host):
        service.audit.noted(
            "tokens travel unencrypted at this address: give --tls-cert, or let only a proxy with TLS reach it"
        )
    # The first call must not wait for the file; whoever needs it is told what may be wrong with it.
    threading.Thread(target=_prepare, args=(service,), name="preparer", daemon=True).start()
    await asked.wait()
    server.close()
    await service.end()


def _kind(transport: str, service: Service) -> Callable[[], Connection | Greeting]:
    make: Callable[[], Connection]
    if transport == "tcp":
        from mcp_memory.wire.tcp import TcpConnection

        make = partial(TcpConnection, service)
    else:
        from mcp_memory.wire.http import HttpConnection
        from mcp_memory.wire.streamable import Endpoint

        make = partial(HttpConnection, service, Endpoint(service))
    if service.certificate is None:
        return make
    from mcp_memory.wire.tls import Greeting

    return partial(Greeting, service, service.certificate, make)


def _announce(transport: str, address: tuple[Any, ...], is_private: bool) -> None:
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    path = "/mcp" if transport == "http" else ""
    scheme = {"http": "https", "tcp": "tls"}[transport] if is_private else transport
    sys.stderr.write(f"mcp-memory: listening on {scheme}://{host}:{address[1]}{path}\n")
    sys.stderr.flush()


def _prepare(service: Service) -> None:
    while not (service.is_prepared or service.is_ending):
        try:
            service.offer.desk.space.graph()
            service.is_prepared = True
        except Exception:
            time.sleep(PREPARE_SECONDS)


def _make_room_for(connections: int) -> None:
    """Have the system allow as many open files as there may be connections, and as many turned away."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    wanted = 3 * connections + 128
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if hard not in (resource.RLIM_INFINITY,) and hard < wanted:
            raise BadSetting(
                f"--max-connections {connections} needs {wanted} open files, and the system allows {hard}. Ask for "
                "fewer, or raise the limit (ulimit -n, or LimitNOFILE in systemd)."
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _catch_signals(loop: asyncio.AbstractEventLoop, ask: Callable[[], None]) -> None:
    """SIGTERM and SIGINT end the serving. A second one ends the process as it always did."""

    def asked(*_: object) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            if sys.platform != "win32":
                loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        loop.call_soon_threadsafe(ask)

    for number in (signal.SIGTERM, signal.SIGINT):
        if sys.platform == "win32":
            signal.signal(number, asked)
        else:
            loop.add_signal_handler(number, asked)
