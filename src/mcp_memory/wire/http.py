"""HTTP/1.1 over a connection: requests in, answers and event streams out, in the order of the requests.

Parsing is llhttp's, Node's own parser, in its strict mode. Knows nothing of the protocol inside: an
endpoint looks at a request's head before its body is read, and answers it when it is there. Head, body,
time and what waits are all bounded."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from mcp_memory.wire.callers import ANYBODY
from mcp_memory.wire.connection import SLICE_SECONDS, Connection
from mcp_memory.wire.jsonrpc import INVALID_REQUEST, MOST_BYTES, Fault, refusal
from mcp_memory.wire.packing import AT_ONCE, HEADERS, packed, takes_gzip

if TYPE_CHECKING:
    import asyncio

    from mcp_memory.wire.callers import Allowance, Caller
    from mcp_memory.wire.exchange import Exchange, Stream
    from mcp_memory.wire.serving import Service
    from mcp_memory.wire.streamable import Endpoint

MOST_OF_A_HEAD = 65_536
MOST_HEADERS = 128
REQUEST_SECONDS = 60.0  # from the first byte of a request to its last
HEAD_SECONDS = 10.0  # from the first byte of a request to the end of its head
IDLE_SECONDS = 120.0  # between two requests
PIECE = 65_536  # a larger body is not copied for the sake of its head
# So much of a large body is handed over at a time: to hand over 24 MB at once took 20 ms, which everybody else waited.
LARGE_PIECE = 256 * 1024

REASONS = {
    200: "OK",
    202: "Accepted",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
STATUS_LINES = {status: f"HTTP/1.1 {status} {reason}\r\n".encode() for status, reason in REASONS.items()}
JSON = b"content-type: application/json\r\n"
EVENTS = b"content-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\nx-accel-buffering: no\r\n"


class Reply(NamedTuple):
    """A whole answer; `headers` are complete lines."""

    status: int
    body: bytes = b""
    headers: bytes = b""
    reason: str = ""  # a word for the log, where somebody is refused


def refused(
    status: int, why: str, headers: bytes = b"", code: int = INVALID_REQUEST, ident: bytes = b"null", reason: str = ""
) -> Reply:
    """A refusal, in words that an MCP client shows."""
    return Reply(status, refusal(Fault(code, why, ident)), JSON + headers, reason)


class Request:
    """One request, while it comes in and until it is answered."""

    __slots__ = (
        "begun",
        "body",
        "caller",
        "cors",
        "header_count",
        "headers",
        "is_complete",
        "is_old",
        "keep_alive",
        "method",
        "refusal",
        "size",
        "target",
    )

    def __init__(self, begun: float) -> None:
        self.begun = begun
        self.method = b""
        self.target = b""
        self.headers: dict[bytes, bytes] = {}
        self.header_count = 0
        self.caller: Caller = ANYBODY
        self.cors = b""  # lines that let the page of a browser read the answer
        self.body: bytes | bytearray = b""
        self.size = 0  # of the head, then of the body
        self.refusal: Reply | None = None
        self.is_complete = False
        self.is_old = False  # HTTP/1.0
        self.keep_alive = False

    def header(self, name: bytes) -> bytes:
        return self.headers.get(name, b"")

    def add(self, part: bytes) -> None:
        """A part of the body. They may be a byte long each, so they are not kept one by one."""
        if not self.body:
            self.body = part
            return
        if isinstance(self.body, bytes):
            self.body = bytearray(self.body)
        self.body += part


class HttpConnection(Connection):
    """A client's requests, one after the other."""

    exchange: Exchange | Stream | None
    delivers_when_gone = True  # to the tape

    def __init__(self, service: Service, endpoint: Endpoint) -> None:
        super().__init__(service)
        self.endpoint = endpoint
        self.local = ""
        self.exchange = None  # what is being answered, if that takes longer than a moment
        self._parser = HttpRequestParser(self)
        self._coming: Request | None = None
        self._is_in_head = False
        self._body_only = False  # the parser was begun anew in the middle of a request
        self._waiting: deque[Request] = deque()
        self._answering: Request | None = None
        self._is_going_on = False
        self._rest = memoryview(b"")  # of a large body
        self._is_chunked = False
        self._keeps = True  # the connection, after it
        self._is_broken = False  # what still comes is not read as requests

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.local = str((transport.get_extra_info("sockname") or ("",))[0]).lower()

    # ── in ───────────────────────────────────────────────────────────────────────────────────────

    def data_received(self, data: bytes) -> None:
        if self._is_broken:
            return
        self.heard = self.loop.time()
        was_in_head, coming = self._is_in_head, self._coming
        try:
            self._feed(data)
        except HttpParserError as error:
            if self._coming is None or self._coming.refusal is None:
                reason = error.__context__ or error
                self._break_off(refused(400, f"Bad request: {reason}"))
                return
        if was_in_head and self._is_in_head and coming is self._coming and coming is not None:
            coming.size += len(data)  # pieces of one header reach us only when it is complete
            if coming.size > MOST_OF_A_HEAD:
                coming.refusal = TOO_LONG_A_HEAD
        if self._coming is not None and self._coming.refusal is not None:
            self._break_off(self._coming.refusal)
            return
        self.go_on_soon()

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            # A wish to speak another protocol (h2c, as Java's client sends it) may be ignored, but the parser
            # stops at it. A new one is told where it stands and reads the body and what follows.
            rest = data[upgrade.args[0] :]
            assert self._coming is not None
            length = self._coming.header(b"content-length") or b"0"
            is_chunked = bool(self._coming.header(b"transfer-encoding"))
            framing = b"transfer-encoding: chunked" if is_chunked else b"content-length: " + length
            self._parser = HttpRequestParser(self)
            self._body_only = True
            self._parser.feed_data(b"POST / HTTP/1.1\r\n" + framing + b"\r\n\r\n")
            if rest:
                self._feed(rest)

    def on_message_begin(self) -> None:
        if not self._body_only:
            self._coming = Request(self.heard)
            self._is_in_head = True

    def on_url(self, part: bytes) -> None:
        if self._coming is not None and not self._body_only:
            self._coming.target += part
            self._coming.size += len(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        request = self._coming
        if request is None or not self._is_in_head:  # a trailer is no header
            return
        request.header_count += 1
        if request.header_count > MOST_HEADERS:
            request.refusal = TOO_MANY_HEADERS
            raise ValueError(TOO_MANY_HEADERS)
        request.size += len(name) + len(value)
        if request.size > MOST_OF_A_HEAD:
            request.refusal = TOO_LONG_A_HEAD
            raise ValueError(TOO_LONG_A_HEAD)
        name, value = name.lower(), value.strip(b" \t")
        headers = request.headers
        headers[name] = headers[name] + b", " + value if name in headers else value

    def on_headers_complete(self) -> None:
        request = self._coming
        if request is None or self._body_only:
            return
        self._is_in_head = False
        request.size = 0
        request.method = self._parser.get_method()
        request.keep_alive = self._parser.should_keep_alive()
        request.is_old = self._parser.get_http_version() == "1.0"
        request.refusal = self.endpoint.check(request, self)
        length = request.header(b"content-length")
        if request.refusal is None and length and int(length) > MOST_BYTES:
            request.refusal = TOO_LARGE
        is_asked = request.header(b"expect").lower() == b"100-continue" and not request.is_old
        if is_asked and request.refusal is None and self._answering is None and not self._waiting:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, part: bytes) -> None:
        request = self._coming
        if request is None or request.refusal is not None:
            return
        request.size += len(part)
        request.add(part)
        if request.size > MOST_BYTES:
            request.refusal = TOO_LARGE
        elif request.size > PIECE and not self.hold(request.size):
            request.refusal = TOO_MUCH_AT_ONCE
        if request.refusal is not None:
            request.body = b""

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade() or self._coming is None:
            return
        self._body_only = False
        self._coming.is_complete = True
        self._waiting.append(self._coming)
        self._coming = None

    # ── out ──────────────────────────────────────────────────────────────────────────────────────

    def go_on(self) -> None:
        if self.exchange is not None and not self.is_clogged:
            self.exchange.resume()
        if self._is_going_on:
            return
        if self._rest:
            self._send_on()
        self._is_going_on = True
        until = 0.0  # one request has all the time it needs
        while self._waiting and self._answering is None and not (self.is_clogged or self.is_lingering or self.is_gone):
            if until and self.loop.time() > until:
                self.go_on_soon()
                break
            request = self._answering = self._waiting.popleft()
            self.hold(0)
            if request.refusal is not None:
                self.endpoint.gate.refuse(request.refusal, request, self)
            else:
                self.endpoint.answer(request, self)
            if self._waiting and not until:
                until = self.loop.time() + SLICE_SECONDS
        self._is_going_on = False
        if self.client_has_ended and not self.is_at_work:
            self.transport.close()
        elif not self.is_lingering:
            # While a single request is answered we read on: a client that goes away is noticed.
            self.read_if(not (self._waiting or self.is_clogged or self.is_ending))

    def reply(self, reply: Reply) -> None:
        """Answer the request whose turn it is, in fewer bytes where that is worth it."""
        request = self._answering
        assert request is not None
        if len(reply.body) < self.service.compress_from or not takes_gzip(request.header(b"accept-encoding")):
            self._send(request, reply)
        elif len(reply.body) <= AT_ONCE:
            self._send(request, self._packed(reply))
        else:
            self.exchange = None
            self.service.do(partial(self._packed, reply), partial(self._send_if_here, request))

    @staticmethod
    def _packed(reply: Reply) -> Reply:
        return reply._replace(body=packed(reply.body), headers=reply.headers + HEADERS)

    def _send_if_here(self, request: Request, reply: Reply) -> None:
        if not self.is_gone:
            self._send(request, reply)

    def _send(self, request: Request, reply: Reply) -> None:
        keep = request.keep_alive and not self.is_ending
        head = [STATUS_LINES[reply.status], b"date: ", self.service.date, b"\r\n", reply.headers, request.cors]
        if reply.status != 204:
            head.append(b"content-length: %d\r\n" % len(reply.body))
        if not keep:
            head.append(b"connection: close\r\n")
        elif request.is_old:
            head.append(b"connection: keep-alive\r\n")
        head.append(b"\r\n")
        if request.method == b"HEAD":
            reply = reply._replace(body=b"")
        if len(reply.body) > PIECE:
            self.transport.write(b"".join(head))
            self.exchange = None  # it has said everything
            self._rest, self._keeps = memoryview(reply.body), keep
            self._send_on()
        else:
            head.append(reply.body)
            self.transport.write(b"".join(head))
            self._answered(keep)

    def _send_on(self) -> None:
        """The next piece of a large body: when the client has taken those before, and others had their turn."""
        if self.is_clogged or self.transport.is_closing():
            return
        self.transport.write(self._rest[:LARGE_PIECE])
        self._rest = self._rest[LARGE_PIECE:]
        if not self._rest:
            self._answered(self._keeps)
        elif not self.is_clogged:
            self.go_on_soon()

    def _answered(self, keep: bool) -> None:
        request, self._answering, self.exchange = self._answering, None, None
        self.service.hearers.discard(self)
        if not keep:
            self._waiting.clear()
            if request is not None and request.is_complete:
                self.transport.close()
            else:
                self.linger()
        elif not self._is_going_on:
            self.go_on_soon()

    def open_stream(self) -> None:
        """Begin to answer with events."""
        assert self._answering is not None
        self._is_chunked = not self._answering.is_old
        cors = self._answering.cors
        ending = b"transfer-encoding: chunked\r\n" if self._is_chunked else b"connection: close\r\n"
        self.transport.write(
            b"".join((STATUS_LINES[200], b"date: ", self.service.date, b"\r\n", EVENTS, cors, ending, b"\r\n"))
        )

    def send_event(self, message: bytes, ident: bytes = b"") -> None:
        if not message:
            self._write_piece(b"id: %b\ndata:\n\n" % ident)
            return
        name = b"id: %b\n" % ident if ident else b""
        self._write_piece(b"".join((name, b"event: message\ndata: ", message, b"\n\n")))

    def send_comment(self) -> None:
        """Something to show that the stream is alive."""
        self._write_piece(b":\n\n")

    def _write_piece(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    def close_stream(self) -> None:
        assert self._answering is not None
        if self._is_chunked and not self.transport.is_closing():
            self.transport.write(b"0\r\n\r\n")
        self._answered(self._is_chunked and self._answering.keep_alive and not self.is_ending)

    def _break_off(self, reply: Reply) -> None:
        """Answer a request that will not be read to its end, after those before it, and close."""
        request = self._coming or Request(self.heard)
        request.keep_alive = False
        request.refusal = reply
        self._coming = None
        self._is_broken = True
        self.hold(0)
        self._waiting.append(request)
        self.go_on()

    def turn_away(self) -> None:
        self._break_off(TOO_MANY)

    # ── beside the requests ──────────────────────────────────────────────────────────────────────

    def deliver(self, lines: list[bytes], to: Any) -> None:
        to.deliver(lines)

    def worked(self, to: Any) -> None:
        to.worked()

    def hear(self) -> None:
        if self.exchange is not None:
            self.exchange.hear()

    def ended(self) -> None:
        if self.exchange is not None and self.exchange.ends_with_its_client:
            self.transport.close()
        else:
            self.go_on()

    def gone(self) -> None:
        self._waiting.clear()
        if self.exchange is not None:
            exchange, self.exchange = self.exchange, None
            exchange.abandon()

    def tick(self, now: float) -> None:
        super().tick(now)
        if self.is_lingering or self.transport.is_closing():
            return
        if self.exchange is not None:
            self.exchange.tick(now)
        elif self._coming is not None and self.transport.is_reading() and now - self._coming.begun > self._patience:
            self._break_off(TOO_SLOW)
        elif self._coming is None and not self.is_at_work and now - self.heard > IDLE_SECONDS:
            self.transport.close()

    @property
    def allowance(self) -> Allowance:
        return ANYBODY.allowance if self._answering is None else self._answering.caller.allowance

    @property
    def _patience(self) -> float:
        return HEAD_SECONDS if self._is_in_head else REQUEST_SECONDS

    # ── the end ──────────────────────────────────────────────────────────────────────────────────

    @property
    def is_at_work(self) -> bool:
        if self.is_gone:
            return False
        exchange = self.exchange
        return bool(self._waiting) or (self._answering is not None and (exchange is None or exchange.is_at_work))

    def give_up(self) -> None:
        if self.exchange is not None:
            self.exchange.give_up()

    def show_out(self) -> None:
        # Each request shows its token anew; only what goes on by itself must be ended.
        self.caller = None
        if self.exchange is not None and not self.exchange.is_at_work:
            self.exchange.finish()

    def finish(self) -> None:
        if self.exchange is not None:
            self.exchange.finish()
        self.transport.close()


TOO_LARGE = refused(413, f"The body is larger than {MOST_BYTES >> 20} MiB. Send less in one call.")
TOO_LONG_A_HEAD = refused(431, f"The head of the request is longer than {MOST_OF_A_HEAD >> 10} KiB.")
TOO_MUCH_AT_ONCE = refused(503, "Too many large requests at a time. Try again in a moment.", b"retry-after: 1\r\n")
TOO_MANY_HEADERS = refused(431, f"The request has more than {MOST_HEADERS} headers.")
TOO_SLOW = refused(
    408, f"The request did not come in time: {HEAD_SECONDS:g} s for its head, {REQUEST_SECONDS:g} s for all of it."
)
TOO_MANY = refused(503, "Too many connections. Try again when others have closed theirs.", b"retry-after: 1\r\n")
