"""MCP over HTTP ("Streamable HTTP"): which request is whose, what its headers must say, and how it is answered.

Both families of revisions at one address: with a handshake, where a client shows the id it was given, and
stateless, where every request says everything. An answer is JSON, unless notices come before it."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from mcp_memory.wire.callers import ANYBODY, Caller
from mcp_memory.wire.eras import STATELESS_ERAS
from mcp_memory.wire.exchange import Exchange, Stream
from mcp_memory.wire.gate import TOO_MUCH, Gate
from mcp_memory.wire.http import JSON, Reply, refused
from mcp_memory.wire.jsonrpc import (
    ABSENT,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NULL,
    PARSE_ERROR,
    Fault,
    Message,
    decode,
    fault_in,
    refusal,
)
from mcp_memory.wire.mirror import HEADER_MISMATCH, argument_mismatch, mismatch
from mcp_memory.wire.pages import pages
from mcp_memory.wire.session import META, UNSUPPORTED_VERSION, Session
from mcp_memory.wire.tape import Shelf, Tape

if TYPE_CHECKING:
    from mcp_memory.wire.http import HttpConnection, Request
    from mcp_memory.wire.pages import Page
    from mcp_memory.wire.serving import Service

PATHS = frozenset({b"/mcp", b"/mcp/"})
METHODS = b"POST, GET, DELETE"
STATELESS = frozenset(version.encode() for version in STATELESS_ERAS)
PLAIN = frozenset((b"", b"identity"))  # how a body may be encoded
SESSION_ID = b"mcp-session-id"
MOST_CLIENTS = 1024
MOST_OF_ONE_CALLER = 256
MOST_STREAMS_OF_ONE_CLIENT = 16
CLIENT_SECONDS = 24 * 3600.0  # a client that asked nothing for so long begins anew

NOWHERE = refused(404, "Not found: the server is at /mcp.")
NO_SUCH_METHOD = refused(405, f"Method not allowed: {METHODS.decode()}.", b"allow: " + METHODS + b"\r\n")
EMPTY = refused(400, "Parse error: the body is empty", code=PARSE_ERROR)
ONLY_POST = refused(405, "Method not allowed: this revision of the protocol only has POST.", b"allow: POST\r\n")
NOT_JSON = refused(415, "Unsupported media type: the body must be application/json, and not encoded.")
NOT_ACCEPTED = refused(406, "Not acceptable: Accept must name application/json and text/event-stream.")
NO_STREAM = refused(406, "Not acceptable: this is answered with text/event-stream, which Accept must name.")
TOO_MANY_CLIENTS = refused(503, "Too many sessions are at work. Try again in a moment.", b"retry-after: 1\r\n")
UNKNOWN_CLIENT = "Session not found: it ended. Begin a new one with initialize."
NO_SESSION_ID = "Bad request: send the Mcp-Session-Id that initialize was answered with, or begin with initialize."


class Client:
    """A client that shook hands: its conversation, its open streams, and what it is waiting for."""

    def __init__(self, session: Session, now: float, caller: Caller, tape: Tape) -> None:
        self.session = session
        self.tape = tape
        self.caller = caller
        self.used = now
        self.streams: list[Stream] = []
        self.exchanges: set[Exchange] = set()

    @property
    def is_idle(self) -> bool:
        return not self.streams and not self.exchanges


class Endpoint:
    """What stands at /mcp."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.offer = service.offer
        self.clients: dict[bytes, Client] = {}
        self.gate = Gate(service)
        self.shelf = Shelf()
        self.pages: dict[bytes, Page] = pages(self)

    # ── before the body ──────────────────────────────────────────────────────────────────────────

    def check(self, request: Request, connection: HttpConnection) -> Reply | None:
        """Why a request with this head is refused, if it is; or its answer, if that needs nothing more."""
        wrong = self.gate.check_names(request, connection)
        if wrong is not None:
            return wrong
        path = request.target.partition(b"?")[0]
        if request.method in (b"GET", b"HEAD") and (page := self.pages.get(path)) is not None:
            return page(request, connection)
        wrong = self.gate.check_sender(request, connection)
        if wrong is not None:
            return wrong
        if path not in PATHS:
            return NOWHERE
        return self._check_post(request) if request.method == b"POST" else self._check_other(request)

    def _check_post(self, request: Request) -> Reply | None:
        if not is_json(request.header(b"content-type")) or request.header(b"content-encoding") not in PLAIN:
            return NOT_JSON
        return None if any(accepted(request)) else NOT_ACCEPTED

    def _check_other(self, request: Request) -> Reply | None:
        if request.method not in (b"GET", b"DELETE"):
            return NO_SUCH_METHOD
        if self._is_stateless(request):
            return ONLY_POST
        return NO_STREAM if request.method == b"GET" and not accepted(request)[1] else None

    def _is_stateless(self, request: Request) -> bool:
        return not self.offer.official and request.header(b"mcp-protocol-version") in STATELESS

    # ── requests ─────────────────────────────────────────────────────────────────────────────────

    def answer(self, request: Request, connection: HttpConnection) -> None:
        """Answer it, now or later."""
        if request.method == b"POST":
            body = bytes(request.body)
            message = message_in(body)
            if self._is_stateless(request):
                reply = self._post_stateless(request, connection, message, body)
            else:
                reply = self._post_in_session(request, connection, message, body)
        else:
            reply = self._get(request, connection) if request.method == b"GET" else self._delete(request)
        if reply is not None:
            self.gate.refuse(reply, request, connection)

    def _session(self, caller: Caller, connection: HttpConnection) -> Session:
        who = connection.address if caller.name in ("", "default") else f"as {caller.name}"
        via = f"http {who}".rstrip()
        return Session(self.offer, via, at_once=True, level=caller.level, shown=caller.shown)

    def _post_stateless(
        self, request: Request, connection: HttpConnection, message: Message | None, body: bytes
    ) -> Reply | None:
        if message is None:
            fault = fault_in(body) or Fault(INVALID_REQUEST, "Invalid request: this is no request")
            if body.lstrip()[:1] == b"[":
                fault = Fault(INVALID_REQUEST, "Invalid request: this revision has no batches; send one message")
            return Reply(400, refusal(fault), JSON)
        if message.id is ABSENT:
            return Reply(202)  # this revision has no notification that could matter here
        ident = bytes(message.id)
        wrong = self._check_stateless(request, message, ident) or self.gate.check_scope(request, message, ident)
        if wrong is None:
            session = self._session(request.caller, connection)
            self._hold(Exchange(connection, session, message, accepted(request)), message, body)
        return wrong

    def _check_stateless(self, request: Request, message: Message, ident: bytes) -> Reply | None:
        """What keeps a request from being what its headers and its revision want."""
        meta = message.params.meta if message.params is not None else None
        if meta is None or meta.version is ABSENT or meta.capabilities is ABSENT:
            missing = f"Invalid params: _meta must hold {META}protocolVersion and {META}clientCapabilities"
            return refused(400, missing, code=INVALID_PARAMS, ident=ident)
        if wrong := mismatch(request, message):
            return refused(400, wrong, code=HEADER_MISMATCH, ident=ident)
        if message.method == "tools/call" and (wrong := self._wrong_argument(request, message)):
            return refused(400, wrong, code=HEADER_MISMATCH, ident=ident)
        if message.method == "initialize":
            return refused(404, "Method not found: initialize", code=METHOD_NOT_FOUND, ident=ident)
        return NO_STREAM if message.method == "subscriptions/listen" and not accepted(request)[1] else None

    def _wrong_argument(self, request: Request, message: Message) -> str | None:
        name = None if message.params is None else message.params.name
        tool = self.offer.desk.tools.get(name) if isinstance(name, str) else None
        return argument_mismatch(request, message, tool.headers) if tool is not None and tool.headers else None

    def _post_in_session(
        self, request: Request, connection: HttpConnection, message: Message | None, body: bytes
    ) -> Reply | None:
        ident = bytes(message.id) if message is not None and message.id is not ABSENT else NULL
        wrong = self._wrong_version(request, message, ident)
        if wrong is not None:
            return wrong
        key = request.header(SESSION_ID)
        if not key and message is not None and message.method == "initialize" and ident != NULL:
            return self._begin(request.caller, connection, message, body)
        client = self._client(key, request.caller)
        if client is None:
            return refused(404, UNKNOWN_CLIENT, ident=ident) if key else refused(400, NO_SESSION_ID, ident=ident)
        return self._ask(client, request, connection, message, body)

    def _ask(
        self, client: Client, request: Request, connection: HttpConnection, message: Message | None, body: bytes
    ) -> Reply | None:
        method = "" if message is None else message.method
        if not body.strip():
            return EMPTY
        if message is not None and (wrong := self.gate.check_scope(request, message, bytes(message.id) or NULL)):
            return wrong
        if message is not None and method == "initialize":
            return Reply(200, b"".join(client.session.accept(message, body)), JSON)
        if message is not None and method == "notifications/cancelled":
            for exchange in client.exchanges:
                exchange.session.accept(message, body)
            return Reply(202)
        exchange = Exchange(connection, client.session.fork(), message, accepted(request), client)
        self._hold(exchange, message, body)
        return None

    def _hold(self, exchange: Exchange, message: Message | None, body: bytes) -> None:
        """Have the session say what it says, now or in a worker."""
        session = exchange.session
        said = session.receive(body) if message is None else session.accept(message, body)
        if session.errand_begun:
            self.service.work(session, exchange.connection, exchange)
            exchange.wait(said)
        else:
            exchange.deliver(said)
            exchange.worked()

    def _wrong_version(self, request: Request, message: Message | None, ident: bytes) -> Reply | None:
        version = version_of(request)
        meta = message.params.meta if message is not None and message.params is not None else None
        said = b"" if meta is None or self.offer.official else bytes(meta.version)
        if said and said != b'"' + version.encode("latin-1") + b'"':
            what = f"is {version!r}, the body says {said.decode()}" if version else "is missing"
            return refused(400, f"Header mismatch: MCP-Protocol-Version {what}", code=HEADER_MISMATCH, ident=ident)
        if not version or version in self.offer.eras:
            return None
        if self.offer.official:
            return refused(400, f"Bad request: unsupported protocol version {version!r}", ident=ident)
        data = {"supported": list(STATELESS_ERAS), "requested": version}
        fault = Fault(UNSUPPORTED_VERSION, "Unsupported protocol version", ident, data)
        return Reply(400, refusal(fault), JSON)

    # ── clients that shook hands ─────────────────────────────────────────────────────────────────

    def _begin(self, caller: Caller, connection: HttpConnection, message: Message, body: bytes) -> Reply:
        mine = caller if caller is not ANYBODY and caller.allowance.sessions >= MOST_OF_ONE_CALLER else None
        if (mine or len(self.clients) >= MOST_CLIENTS) and not self._forget_one(mine):
            return TOO_MANY_CLIENTS
        session = self._session(caller, connection)
        said = b"".join(session.accept(message, body))
        if not session.shook_hands:
            return Reply(200, said, JSON)
        key = os.urandom(24).hex().encode()
        tape = Tape(self.shelf, None if caller is ANYBODY else caller.allowance)
        self.clients[key] = Client(session, self.service.loop.time(), caller, tape)
        caller.allowance.sessions += 1
        return Reply(200, said, JSON + b"mcp-session-id: " + key + b"\r\n")

    def _forget_one(self, caller: Caller | None) -> bool:
        """Make room: the client (of this caller) that has been silent for longest must begin anew."""
        idle = [
            key
            for key, client in self.clients.items()
            if client.is_idle and (caller is None or client.caller.allowance is caller.allowance)
        ]
        if idle:
            self._forget(min(idle, key=lambda key: self.clients[key].used))
        return bool(idle)

    def _forget(self, key: bytes) -> None:
        client = self.clients.pop(key)
        client.caller.allowance.sessions -= 1
        client.tape.clear()

    def _client(self, key: bytes, caller: Caller) -> Client | None:
        client = self.clients.get(key)
        # An id that was overheard is worth nothing with another token.
        if client is None or client.caller.name != caller.name:
            return None
        now = self.service.loop.time()
        if client.is_idle and now - client.used > CLIENT_SECONDS:
            self._forget(key)
            return None
        client.session.level, client.session.shown = caller.level, caller.shown
        client.used = now
        return client

    def _of_client(self, request: Request) -> Client | Reply:
        wrong = self._wrong_version(request, None, NULL)
        if wrong is not None:
            return wrong
        key = request.header(SESSION_ID)
        return self._client(key, request.caller) or (
            refused(404, UNKNOWN_CLIENT) if key else refused(400, NO_SESSION_ID)
        )

    def _get(self, request: Request, connection: HttpConnection) -> Reply | None:
        client = self._of_client(request)
        if isinstance(client, Reply):
            return client
        allowance = request.caller.allowance
        if allowance.streams >= allowance.most:
            return TOO_MUCH
        if len(client.streams) >= MOST_STREAMS_OF_ONE_CLIENT:
            client.streams[0].finish()  # it has come back so often that the first are likely dead
        said = client.tape.after(request.header(b"last-event-id"))
        stream, missed = said if said is not None else (b"", [])
        if not stream.startswith(b"p"):
            Stream(connection, client, missed)
        elif (exchange := next((each for each in client.exchanges if each.stream == stream), None)) is not None:
            exchange.move_to(connection, missed)
        else:  # it was answered meanwhile
            connection.open_stream()
            for event in missed:
                connection.send_event(event.line, event.ident)
            connection.close_stream()
        return None

    def _delete(self, request: Request) -> Reply:
        client = self._of_client(request)
        if isinstance(client, Reply):
            return client
        self._forget(request.header(SESSION_ID))
        for stream in list(client.streams):
            stream.finish()
        for exchange in client.exchanges:
            exchange.give_up()
        client.tape.clear()
        return Reply(204)


# ── heads and bodies ─────────────────────────────────────────────────────────────────────────────


def version_of(request: Request) -> str:
    return request.header(b"mcp-protocol-version").decode("latin-1")


def accepted(request: Request) -> tuple[bool, bool]:
    """Does the client take JSON, and does it take events? One that does not say takes anything."""
    return _taken(request.header(b"accept"))


# A client says the same with every request. What is remembered of strangers is bounded: a head is, and so many are.


@lru_cache(64)
def _taken(accept: bytes) -> tuple[bool, bool]:
    accept = accept.lower()
    if not accept or b"*/*" in accept:
        return True, True
    return (
        b"application/json" in accept or b"application/*" in accept,
        b"text/event-stream" in accept or b"text/*" in accept,
    )


@lru_cache(64)
def is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


def message_in(body: bytes) -> Message | None:
    try:
        return decode(body)
    except (ValueError, RecursionError):
        return None
