"""HTTP/1.1 itself: requests in pieces, in a row, in odd forms, too long, too slow, and clients that do not read."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.desk import Desk
from mcp_memory.facts import Limits
from mcp_memory.space import Space
from mcp_memory.wire import Offer, connection, exchange, http, serving, tcp
from mcp_memory.wire.access import Access
from mcp_memory.wire.jsonrpc import MOST_BYTES
from tests.wire.network import PATIENCE, Server, Toy, Web, request, running
from tests.wire.toy import META, SERVER, TOOLS, ListStore

HEAD = "MCP-Protocol-Version: 2026-07-28\r\nContent-Type: application/json\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toy]:
    toy = Toy(tmp_path_factory.mktemp("toy"), "http")
    with running(toy):
        yield toy


class Raw:
    """Bytes in, bytes out."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
        self.answers = self.socket.makefile("rb")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer; its status is 0 when there is none."""
        status = self.answers.readline().split()
        headers: dict[str, str] = {}
        while line := self.answers.readline().strip().decode():
            name, _, value = line.partition(": ")
            headers[name] = value
        return int(status[1]) if status else 0, headers, self.answers.read(int(headers.get("content-length", 0)))

    def statuses(self) -> list[int]:
        """Of all answers until the server closes."""
        return [status for status, _, _ in iter(self.receive, (0, {}, b""))]


@pytest.fixture
def raw(server: Toy) -> Iterator[Raw]:
    with Raw(server) as raw:
        yield raw


def post(method: str, ident: Any = 1, /, more: str = "", **params: Any) -> bytes:
    """A stateless request as bytes."""
    body = request(method, ident, **params, _meta=META)
    name = f"Mcp-Name: {params['name']}\r\n" if "name" in params else ""
    head = f"POST /mcp HTTP/1.1\r\n{HEAD}Mcp-Method: {method}\r\n{name}{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def remember(ident: int, name: str) -> bytes:
    return post("tools/call", ident, name="remember", arguments={"name": name})


# ── forms ────────────────────────────────────────────────────────────────────────────────────────


def test_a_request_may_come_in_any_pieces(raw: Raw) -> None:
    for byte in post("server/discover", "é"):
        raw.send(bytes([byte]))

    status, headers, body = raw.receive()

    assert (status, json.loads(body)["id"]) == (200, "é")
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", headers["date"])
    assert "connection" not in headers


def test_requests_in_a_row_are_answered_in_their_order(raw: Raw) -> None:
    slow = post("tools/call", 1, name="toil", arguments={"name": "first", "steps": 1})
    raw.send(slow + b"".join(remember(i, f"p{i}") for i in range(2, 200)) + b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    said = [raw.receive() for _ in range(200)]

    assert [json.loads(body)["id"] for _, _, body in said] == [*range(1, 200), None]
    assert [status for status, _, _ in said] == [200] * 199 + [403]


def test_a_body_may_come_in_chunks(raw: Raw) -> None:
    body = request("server/discover", 1, _meta=META)
    head = f"POST /mcp HTTP/1.1\r\n{HEAD}Mcp-Method: server/discover\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:9], body[9:]))
    raw.send(head + chunks + b"0\r\nHost: evil.example\r\nContent-Type: text/plain\r\n\r\n")

    assert raw.receive()[0] == 200


def test_a_client_may_ask_whether_to_send_its_body(raw: Raw) -> None:
    whole = post("server/discover", more="Expect: 100-continue\r\n")
    head, _, body = whole.partition(b"\r\n\r\n")
    raw.send(head + b"\r\n\r\n")
    assert raw.receive()[0] == 100
    raw.send(body)
    assert raw.receive()[0] == 200

    raw.send(head.replace(b"localhost", b"evil.example") + b"\r\n\r\n")
    assert raw.statuses() == [403]


def test_the_old_version_of_http_is_answered_and_the_connection_closed(raw: Raw) -> None:
    raw.send(post("server/discover").replace(b"HTTP/1.1", b"HTTP/1.0"))

    assert raw.statuses() == [200]


def test_the_old_version_may_ask_for_more(raw: Raw) -> None:
    for _ in range(2):
        raw.send(post("server/discover", more="Connection: keep-alive\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert raw.receive()[1]["connection"] == "keep-alive"


def test_the_old_version_gets_events_until_the_connection_closes(raw: Raw) -> None:
    raw.send(post("server/discover", 7, more="Accept: text/event-stream\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"))

    assert raw.receive()[1]["content-type"] == "text/event-stream"
    rest = raw.answers.read()
    assert rest.startswith(b"event: message\ndata: {") and rest.endswith(b"}\n\n")


def test_a_client_may_close_with_its_request(raw: Raw) -> None:
    raw.send(post("server/discover", more="Connection: close\r\n") + post("server/discover"))

    status, headers, _ = raw.receive()

    assert (status, headers["connection"]) == (200, "close")
    assert raw.statuses() == []


def test_a_client_that_sends_nothing_more_is_answered(raw: Raw) -> None:
    raw.send(remember(1, "half") + remember(2, "closed"))
    raw.socket.shutdown(socket.SHUT_WR)

    assert raw.statuses() == [200, 200]


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_wish_for_another_protocol_is_ignored(raw: Raw, is_chunked: bool) -> None:
    whole = post(
        "server/discover", more="Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    )
    if is_chunked:
        head, _, body = whole.partition(b"\r\n\r\n")
        head = re.sub(rb"Content-Length: \d+", b"Transfer-Encoding: chunked", head)
        whole = head + b"\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    raw.send(whole + post("server/discover", 2) + whole)
    assert [raw.receive()[0] for _ in range(3)] == [200] * 3
    for byte in whole:
        raw.send(bytes([byte]))
    assert raw.receive()[0] == 200


def test_packed_answers_come_in_the_order_of_their_requests(raw: Raw) -> None:
    takes = "Accept-Encoding: gzip\r\n"
    sizes = [3_000_000, 10, 50_000, 400_000, 10]
    raw.send(
        b"".join(post("tools/call", i, takes, name="swell", arguments={"size": size}) for i, size in enumerate(sizes))
    )
    for i, size in enumerate(sizes):
        status, headers, body = raw.receive()
        assert (status, "content-encoding" in headers) == (200, size > 16_384)
        said = json.loads(gzip.decompress(body) if "content-encoding" in headers else body)
        assert (said["id"], len(said["result"]["structuredContent"]["text"])) == (i, size)


# ── too much ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "bad",
    [
        b"HELO there\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n X: folded\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: local\0host\r\n\r\n",
    ],
)
def test_what_is_no_http_is_a_bad_request_and_the_end(raw: Raw, bad: bytes) -> None:
    raw.send(bad + post("server/discover"))

    assert raw.statuses()[-1:] == [400]


def test_answers_before_a_bad_request_are_given(raw: Raw) -> None:
    slow = post("tools/call", 1, name="toil", arguments={"steps": 1})
    raw.send(slow + post("server/discover", 2) + b"\r\nnonsense\r\n\r\n")

    assert raw.statuses() == [200, 200, 400]


@pytest.mark.parametrize("size", [1, 100, 70_000])
def test_a_head_without_an_end_is_too_large(raw: Raw, size: int) -> None:
    raw.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
    line = b"X: " + b"y" * size + (b"\r\n" if size < 70_000 else b"")
    for _ in range(100_000 // len(line) + 1):
        raw.send(line)

    assert raw.statuses() == [431]


def test_an_address_without_an_end_is_too_large(raw: Raw) -> None:
    raw.send(b"POST /" + b"x" * 70_000)

    assert raw.statuses() == [431]


def test_a_body_that_is_announced_too_large_is_refused_before_it_comes(raw: Raw) -> None:
    head = f"POST /mcp HTTP/1.1\r\n{HEAD}Content-Length: {MOST_BYTES + 1}\r\n\r\n"
    raw.send(head.encode())

    assert raw.statuses() == [413]


def test_a_refusal_reaches_a_client_that_goes_on_sending(raw: Raw) -> None:
    head = f"POST /elsewhere HTTP/1.1\r\n{HEAD}Content-Length: {MOST_BYTES}\r\n\r\n"
    raw.send(head.encode() + b"x" * 1_000_000)

    assert raw.statuses() == [404]


def test_one_connection_too_many_is_told_so(tmp_path: Path) -> None:
    with running(Toy(tmp_path, "http", "--max-connections", "2")) as server:
        with Web(server) as one, Web(server) as two:
            assert one.modern("server/discover").status == two.modern("server/discover").status == 200
            with Raw(server) as three:
                three.send(post("server/discover"))
                status, headers, _ = three.receive()
                assert (status, headers["retry-after"]) == (503, "1")
                assert three.statuses() == []
            assert one.modern("server/discover").status == 200
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with Web(server) as four:
                if four.modern("server/discover").status == 200:
                    return
        pytest.fail("the place of a client that left is not given to another")


def test_a_client_that_does_not_read_is_not_read_from_and_nobody_else_notices(tmp_path: Path) -> None:
    size, calls = 1_000_000, 60
    with running(Toy(tmp_path, "http")) as server, Raw(server) as raw, Web(server) as other:
        before = server.resident_mb()
        raw.send(b"".join(post("tools/call", i, name="swell", arguments={"size": size}) for i in range(calls)))
        for _ in range(100):
            assert other.modern("server/discover").status == 200
        assert server.resident_mb() - before < 60

        for i in range(calls):
            status, _, body = raw.receive()
            assert (status, json.loads(body)["id"]) == (200, i)


# ── too slow: in this process, where the clock can be told what to say ───────────────────────────


class House:
    """A service in the test's own loop."""

    def __init__(self, transport: str) -> None:
        self.transport = transport

    async def __aenter__(self) -> House:
        offer = Offer(Desk(Space(ListStore()), TOOLS, Limits()), SERVER)
        self.service = serving.Service(offer, Access(), 8)
        self.service.tick()
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(serving._kind(self.transport, self.service), "127.0.0.1", 0)
        address = self.server.sockets[0].getsockname()
        self.reader, self.writer = await asyncio.open_connection(*address)
        while not self.service.connections:
            await asyncio.sleep(0)
        (self.connection,) = self.service.connections
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        self.server.close()
        await self.service.end()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        heard = self.connection.heard
        while self.connection.heard == heard:
            await asyncio.sleep(0.001)

    def later(self, seconds: float) -> None:
        """Let the service believe that so much time has passed."""
        self.connection.tick(self.service.loop.time() + seconds)

    async def rest(self) -> bytes:
        return await asyncio.wait_for(self.reader.read(), PATIENCE)


def in_house(transport: str, talk: Callable[[House], Awaitable[None]]) -> None:
    async def main() -> None:
        async with House(transport) as house:
            await talk(house)

    asyncio.run(main())


def test_a_request_that_does_not_come_to_its_end_is_given_up() -> None:
    async def talk(house: House) -> None:
        await house.send(post("server/discover")[:-1])
        house.later(http.REQUEST_SECONDS - 1)
        assert not house.connection.is_lingering
        house.later(http.REQUEST_SECONDS + 1)
        assert (await house.rest()).startswith(b"HTTP/1.1 408 ")

    in_house("http", talk)


def test_a_connection_on_which_nothing_happens_is_closed() -> None:
    async def talk(house: House) -> None:
        await house.send(post("server/discover"))
        assert (await house.reader.readline()).startswith(b"HTTP/1.1 200 ")
        house.later(http.IDLE_SECONDS - 1)
        assert not house.connection.transport.is_closing()
        house.later(http.IDLE_SECONDS + 1)
        assert house.connection.transport.is_closing()

    in_house("http", talk)


def test_a_stream_on_which_nothing_happens_shows_that_it_is_alive() -> None:
    async def talk(house: House) -> None:
        await house.send(post("subscriptions/listen", notifications={}))
        await house.reader.readuntil(b"\n\n\r\n")
        house.later(exchange.SILENCE_SECONDS - 1)
        house.later(exchange.SILENCE_SECONDS + 1)
        assert await house.reader.readexactly(8) == b"3\r\n:\n\n\r\n"

    in_house("http", talk)


@pytest.mark.parametrize("transport", ["tcp", "http"])
def test_a_client_that_has_stopped_reading_is_let_go_at_last(transport: str) -> None:
    async def talk(house: House) -> None:
        house.writer.transport.pause_reading()  # type: ignore[attr-defined]
        swell: dict[str, Any] = {"name": "swell", "arguments": {"size": 8_000_000}}
        if transport == "tcp":
            await house.send(request("tools/call", 1, **swell) + b"\n")
        else:
            await house.send(post("tools/call", 1, **swell))
        while not house.connection.is_clogged:
            await asyncio.sleep(0.001)
        house.later(connection.CLOGGED_SECONDS - 1)
        assert not house.connection.is_gone
        house.later(connection.CLOGGED_SECONDS + 1)
        while not house.connection.is_gone:
            await asyncio.sleep(0.001)

    in_house(transport, talk)


def test_a_tcp_client_that_never_says_a_line_is_let_go() -> None:
    async def talk(house: House) -> None:
        house.later(tcp.FIRST_LINE_SECONDS - 1)
        house.later(tcp.FIRST_LINE_SECONDS + 1)
        assert b"No line came" in await house.rest()

    in_house("tcp", talk)


def test_a_tcp_client_that_has_spoken_may_be_silent_for_long_but_not_in_the_middle_of_a_line() -> None:
    async def talk(house: House) -> None:
        await house.send(request("ping") + b"\n")
        await house.reader.readline()
        house.later(100_000)
        await house.send(b'{"jsonrpc"')
        house.later(tcp.LINE_SECONDS + 1)
        assert b"The line did not end" in await house.rest()

    in_house("tcp", talk)
