"""What a client over HTTP is waiting for: the answer to a request, or news on a stream.

An answer goes out as JSON. It becomes a stream of events when something must be said before it, when the
client takes nothing else, or when it takes so long that a proxy might lose patience. Of a client that shook
hands the events are taped: when its connection breaks off, it asks for the rest by the last id it saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_memory.wire.asking import MISSING_CAPABILITY
from mcp_memory.wire.http import JSON, Reply
from mcp_memory.wire.jsonrpc import (
    ABSENT,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Message,
    error_code,
    is_notice,
)
from mcp_memory.wire.methods import updates
from mcp_memory.wire.mirror import HEADER_MISMATCH
from mcp_memory.wire.news import is_news
from mcp_memory.wire.session import UNSUPPORTED_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_memory.wire.http import HttpConnection
    from mcp_memory.wire.session import Session
    from mcp_memory.wire.streamable import Client
    from mcp_memory.wire.tape import Event

SILENCE_SECONDS = 15.0
EMPTY_EVENTS_SINCE = "2025-11-25"
# In the stateless revision the status tells what went wrong before a tool was reached.
STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
    MISSING_CAPABILITY: 400,
}
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}'


class Exchange:
    """One POST, until its answer is out."""

    def __init__(
        self,
        connection: HttpConnection,
        session: Session,
        message: Message | None,
        accepts: tuple[bool, bool],
        client: Client | None = None,
    ) -> None:
        self.connection = connection
        self.session = session
        session.can_send = accepts[1]
        self.ident = b"" if message is None or message.id is ABSENT else bytes(message.id)
        self.takes_json, self.takes_events = accepts
        self.client = client
        self.is_readable = message is not None
        self.is_over = False
        self.is_stream = False
        self._owes_news = False
        self._allowance = connection.allowance
        self._is_counted = ""
        self.stream = b""  # its name on the client's tape
        self._spoke = connection.loop.time()

    @property
    def ends_with_its_client(self) -> bool:
        """Without a handshake, going away is how a client withdraws a request."""
        return self.client is None or self.is_stream

    @property
    def is_at_work(self) -> bool:
        return self.session.is_busy

    # ── saying ───────────────────────────────────────────────────────────────────────────────────

    def wait(self, said: list[bytes]) -> None:
        """A worker has it now."""
        self.connection.exchange = self
        self._count("calls")
        if self.client is not None:
            self.client.exchanges.add(self)
        self.deliver(said)

    def deliver(self, lines: list[bytes]) -> None:
        """Send these to the client: notices, and at last the reply."""
        for line in lines:
            if self.is_over:
                return
            if is_notice(line):
                self._notify(line)
            else:
                self._reply(line)

    def _notify(self, line: bytes) -> None:
        if self.client is not None and self.client.streams and is_news(line):
            self.client.streams[-1].tell([line])  # each message goes out on one stream only
        elif self.takes_events:
            self._say(line)

    def _say(self, line: bytes) -> None:
        """Send an event. If nobody is there it stands on the tape."""
        self._stream()
        client = self.client
        ident = b"" if client is None else client.tape.add(self.stream, line, self._spoke)
        if not self.connection.is_gone:
            self.connection.send_event(line, ident)

    def _reply(self, line: bytes) -> None:
        if self.is_stream or not self.takes_json:
            self._say(line)
            self._end()
            self._close()
        else:
            self._end()
            self.connection.reply(Reply(self._status(line), line, JSON))

    def _status(self, line: bytes) -> int:
        if self.client is None:
            return STATUSES.get(error_code(line, self.ident), 200)
        return 200 if self.is_readable or line.startswith(b"[") else 400

    def _stream(self) -> None:
        self._spoke = self.connection.loop.time()
        if not self.is_stream:
            self.is_stream = True
            self.connection.open_stream()
            if self.client is not None:
                self.stream = self.client.tape.begin(b"p")
                prime(self.connection, self.client, self.stream)

    def _close(self) -> None:
        if self.client is not None:
            self.client.tape.end(self.stream)
        if not self.connection.is_gone:
            self.connection.close_stream()

    def move_to(self, connection: HttpConnection, missed: list[Event]) -> None:
        """The client goes on listening here."""
        before, self.connection = self.connection, connection
        if before.exchange is self:
            before.exchange = None
            before.transport.abort()
        connection.exchange = self
        connection.open_stream()
        for event in missed:
            connection.send_event(event.line, event.ident)

    def worked(self) -> None:
        """The session has said everything; a request for news stays open, all else is at its end."""
        if self.is_over:
            return
        if self.session.streams:
            self._count("streams")
            self.connection.exchange = self
            self.connection.service.hearers.add(self.connection)
            return
        self._end()
        if self.is_stream or (self.ident and self.takes_events):  # withdrawn: there is no reply
            self._stream()
            self._close()
        else:
            self.connection.reply(Reply(202))

    def _count(self, what: str) -> None:
        """Take note of what the caller takes of the server; of nothing, at the end."""
        allowance = self._allowance
        if self._is_counted:
            setattr(allowance, self._is_counted, getattr(allowance, self._is_counted) - 1)
        self._is_counted = what
        if what:
            setattr(allowance, what, getattr(allowance, what) + 1)

    def _end(self) -> None:
        self.is_over = True
        self._count("")
        if self.client is not None:
            self.client.exchanges.discard(self)

    # ── news ─────────────────────────────────────────────────────────────────────────────────────

    def hear(self) -> None:
        """Somebody wrote."""
        if self.connection.is_clogged:
            self._owes_news = True
        else:
            self._owes_news = False
            for line in updates(self.session) if self.session.streams else ():
                self._say(line)

    def resume(self) -> None:
        """The client reads again."""
        if self._owes_news:
            self.hear()

    def tick(self, now: float) -> None:
        if now - self._spoke > SILENCE_SECONDS and self.takes_events and not self.connection.is_clogged:
            self._stream()
            self.connection.send_comment()

    # ── other ends ───────────────────────────────────────────────────────────────────────────────

    def abandon(self) -> None:
        """The client has gone."""
        if self.client is not None and self.is_stream and not self.is_over:
            return  # it may come back for the rest
        if self.client is None and self.ident:
            self.session.receive(CANCEL % self.ident)
        self._end()

    def give_up(self) -> None:
        self.session.give_up()

    def finish(self) -> None:
        """The server ends."""
        if not self.is_over and self.session.streams:
            self.deliver(self.session.end())


def prime(connection: HttpConnection, client: Client, stream: bytes) -> None:
    """The first words of a stream: an id to come back with, where the revision knows of an event without a message."""
    if client.session.era.version >= EMPTY_EVENTS_SINCE:
        connection.send_event(b"", b"%b.0" % stream)
    else:
        connection.send_comment()  # some clients wait for the first byte of the body


class Stream:
    """A GET of a client that shook hands: what happens beside its requests."""

    ends_with_its_client = True
    is_at_work = False

    def __init__(self, connection: HttpConnection, client: Client, missed: Iterable[Event] = ()) -> None:
        """`missed`: events of a stream that broke off."""
        self.connection = connection
        self.client = client
        self._allowance = connection.allowance
        self._allowance.streams += 1
        self._owes_news = False
        self._untold: dict[bytes, None] = {}  # what could not be sent; the same notice twice is one
        self._spoke = connection.loop.time()
        self.stream = client.tape.begin(b"g")
        connection.exchange = self
        client.streams.append(self)
        connection.service.hearers.add(connection)
        connection.open_stream()
        prime(connection, client, self.stream)
        for event in missed:
            connection.send_event(event.line, client.tape.add(self.stream, event.line, self._spoke))
        self.hear()  # of what happened while nobody listened

    def tell(self, lines: list[bytes]) -> None:
        """Something has changed."""
        self._untold.update(dict.fromkeys(lines))
        if not self.connection.is_clogged and self._untold:
            self._spoke = self.connection.loop.time()
            for line in self._untold:
                self.connection.send_event(line, self.client.tape.add(self.stream, line, self._spoke))
            self._untold.clear()

    def hear(self) -> None:
        # News go out once, on the newest stream.
        if self.client.streams[-1] is self:
            self._owes_news = self.connection.is_clogged
            if not self._owes_news:
                self.tell(updates(self.client.session))

    def resume(self) -> None:
        """The client reads again."""
        if self._owes_news:
            self.hear()
        self.tell([])

    def tick(self, now: float) -> None:
        self.client.used = now
        if now - self._spoke > SILENCE_SECONDS and not self.connection.is_clogged:
            self._spoke = now
            self.connection.send_comment()

    def abandon(self) -> None:
        if self in self.client.streams:
            self.client.streams.remove(self)
            self.client.tape.end(self.stream)
            self._allowance.streams -= 1

    def give_up(self) -> None:
        return

    def finish(self) -> None:
        self.abandon()
        self.connection.close_stream()
