"""Many clients at one address: one event loop for all of them, and one space.

The law: the loop never waits, neither for a lock nor for a file nor for a client. A call is made in the
loop when it can be done at once, which takes microseconds, and else by a worker. At the end what has
been received is answered."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from mcp_memory.settings import BadSetting
from mcp_memory.wire.access import Access, access_for, address_of
from mcp_memory.wire.stdio import SWITCH_SECONDS

if TYPE_CHECKING:
    from mcp_memory.settings import Settings
    from mcp_memory.wire.connection import Connection
    from mcp_memory.wire.offer import Offer
    from mcp_memory.wire.session import Session

    Job = Callable[[], None]

# At the end: how long what still comes in is read, how long calls may take, and how long their answers.
DRAIN_SECONDS, QUIET_SECONDS = 0.2, 0.02
GRACE_SECONDS = 0.4
FAREWELL_SECONDS = 0.2
BACKLOG = 256
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Workers:
    """Threads for calls that would keep the loop waiting: made when needed, kept, no obstacle to the end."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._idle = 0
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job] = SimpleQueue()

    def do(self, job: Job) -> None:
        with self._lock:
            is_new = not self._idle and self._count < self._most
            self._count += is_new
            self._idle -= not is_new
        self._jobs.put(job)
        if is_new:
            threading.Thread(target=self._work, name="worker", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._jobs.get()()
            with self._lock:
                self._idle += 1


class Service:
    """What the connections of one address share."""

    def __init__(self, offer: Offer, access: Access, most_connections: int) -> None:
        self.offer = offer
        self.access = access
        self.loop = asyncio.get_running_loop()
        self.date = b""
        self.connections: set[Connection] = set()
        self.hearers: set[Connection] = set()  # those that want to know when others write
        self._most = most_connections
        self._turned_away = 0
        self._workers = Workers(most_connections)
        self._writers: deque[object] = deque()
        self._will_tell = False
        offer.listeners.append(self._wrote)
        offer.desk.space.is_shared = True

    # ── connections ──────────────────────────────────────────────────────────────────────────────

    def admit(self, connection: Connection) -> bool:
        """Is there room for it?"""
        is_full = len(self.connections) - self._turned_away >= self._most
        if is_full and self._turned_away >= self._most:
            connection.transport.abort()  # they come faster than they can be told
            return True
        self.connections.add(connection)
        self._turned_away += is_full
        connection.is_turned_away = is_full
        return not is_full

    def leave(self, connection: Connection) -> None:
        if connection in self.connections:
            self.connections.discard(connection)
            self._turned_away -= connection.is_turned_away
        self.hearers.discard(connection)

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

        self._workers.do(job)

    # ── news ─────────────────────────────────────────────────────────────────────────────────────

    def _wrote(self, session: Session) -> None:
        """A session has written; called in whichever thread that was."""
        if not self.hearers:
            return
        self._writers.append(session.client)
        if not self._will_tell:
            self._will_tell = True
            self.loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._will_tell = False
        writers = set()
        while self._writers:
            writers.add(self._writers.popleft())
        for connection in list(self.hearers):
            connection.hear(writers)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────

    async def end(self) -> None:
        """Answer what has been received, say goodbye, and let go."""
        await self._drain()
        for connection in list(self.connections):
            connection.is_ending = True
            connection.read_if(False)
        await self._until(lambda: not any(each.is_at_work for each in self.connections), GRACE_SECONDS)
        self.offer.desk.space.is_ending = True
        for connection in list(self.connections):
            connection.give_up()
        await self._until(lambda: not any(each.is_at_work for each in self.connections), GRACE_SECONDS)
        for connection in list(self.connections):
            connection.finish()
        await self._until(lambda: not self.connections, FAREWELL_SECONDS)
        for connection in list(self.connections):
            connection.transport.abort()

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
    host, port = address_of(settings.bind)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        asyncio.run(_listen(offer, access, settings, host, port))
    finally:
        if close is not None:
            close()
    return 0


async def _listen(offer: Offer, access: Access, settings: Settings, host: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    _catch_signals(loop, asked.set)
    service = Service(offer, access, settings.max_connections)
    service.tick()
    try:
        server = await loop.create_server(_kind(settings.transport, service), host, port, backlog=BACKLOG)
    except OSError as error:
        raise BadSetting(f"Nothing can be served at {settings.bind}: {error.strerror or error}.") from error
    for place in server.sockets:
        _announce(settings.transport, place.getsockname())
    # The first call must not wait for the file; whoever needs it is told what may be wrong with it.
    threading.Thread(target=_prepare, args=(offer,), name="preparer", daemon=True).start()
    await asked.wait()
    server.close()
    await service.end()


def _kind(transport: str, service: Service) -> Callable[[], Connection]:
    if transport == "tcp":
        from mcp_memory.wire.tcp import TcpConnection

        return lambda: TcpConnection(service)
    from mcp_memory.wire.http import HttpConnection
    from mcp_memory.wire.streamable import Endpoint

    endpoint = Endpoint(service)
    return lambda: HttpConnection(service, endpoint)


def _announce(transport: str, address: tuple[Any, ...]) -> None:
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    path = "/mcp" if transport == "http" else ""
    sys.stderr.write(f"mcp-memory: listening on {transport}://{host}:{address[1]}{path}\n")
    sys.stderr.flush()


def _prepare(offer: Offer) -> None:
    try:
        offer.desk.space.graph()
    except Exception:
        return


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
