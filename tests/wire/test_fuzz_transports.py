"""Whatever bytes come in over HTTP or TCP, in whatever pieces: each answer is one, the house stands, and the next
client is served."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.wire.network import PATIENCE, request
from tests.wire.test_fuzz import MESSAGES, WELL_FORMED, text_of
from tests.wire.test_http_wire import House, in_house, post
from tests.wire.toy import META

HEADERS = (
    "Host: localhost",
    "Content-Type: application/json",
    "Content-Length: 5",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Content-Length: 5\r\nContent-Length: 6",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: gzip",
    "Connection: close",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Expect: 100-continue",
    "Accept: text/event-stream",
    "Accept-Encoding: gzip",
    "MCP-Protocol-Version: 2026-07-28",
    "MCP-Protocol-Version: \x80",
    "Mcp-Method: tools/call",
    "Mcp-Name: =?base64?////?=",
    "Mcp-Session-Id: nobody's",
    "Last-Event-ID: 7",
    "Authorization: Bearer é",
    "Origin: https://evil.example",
    "X: " + "y" * 300,
    " folded: yes",
    "no colon",
    ": nothing",
)
BODIES = st.one_of(
    st.binary(max_size=40),
    (MESSAGES | WELL_FORMED).map(text_of),
    st.just(b"[" * 10_000),
    st.just(b"5\r\nhello\r\n0\r\n\r\n"),
    st.just(b"fffffffffffffffff\r\n"),
)
REQUESTS = st.builds(
    lambda method, path, version, headers, body: (
        f"{method} {path} HTTP/{version}\r\n".encode("latin-1")
        + "".join(f"{header}\r\n" for header in headers).encode("latin-1")
        + b"\r\n"
        + body
    ),
    st.sampled_from(["GET", "POST", "DELETE", "OPTIONS", "PUT", "PRI", "CONNECT", "\x00"]),
    st.sampled_from(
        ["/mcp", "/", "/healthz", "/metrics", "*", "//", "/mcp/../..", "/%00", "http://x/mcp", "/" + "x" * 300]
    ),
    st.sampled_from(["1.1", "1.0", "2.0", "9", ""]),
    st.lists(st.sampled_from(HEADERS), max_size=7),
    BODIES,
)
WHOLE = st.sampled_from([post("server/discover"), post("tools/call", name="names", arguments={}), post("nope")])
STREAMS = st.lists(st.one_of(REQUESTS, WHOLE, st.binary(max_size=60)), min_size=1, max_size=4).map(b"".join)
LINES = st.lists(
    st.one_of(
        st.binary(max_size=60),
        (MESSAGES | WELL_FORMED).map(text_of),
        st.just(b"[" * 10_000),
        st.just(request("server/discover", _meta=META)),
    ),
    min_size=1,
    max_size=5,
).map(b"\n".join)
CUTS = st.lists(st.integers(0, 400), max_size=6)
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(places)]


async def everything(house: House, data: bytes, cuts: list[int]) -> bytes:
    """What is said to these bytes until the client has said that it is done, and the house has nothing to add."""
    with contextlib.suppress(OSError):
        for piece in pieces(data, cuts):
            house.writer.write(piece)
            await house.writer.drain()
            await asyncio.sleep(0)
        house.writer.write_eof()
    said = b""
    with contextlib.suppress(OSError, TimeoutError):
        while part := await asyncio.wait_for(house.reader.read(65_536), 0.2):
            said += part
    return said


async def next_client(house: House, data: bytes) -> bytes:
    host, port = house.server.sockets[0].getsockname()
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(data)
    found = await asyncio.wait_for(reader.readline(), PATIENCE)
    writer.close()
    return found


COMMON = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@COMMON
@given(data=STREAMS, cuts=CUTS)
def test_no_bytes_break_the_http_house(data: bytes, cuts: list[int]) -> None:
    async def talk(house: House) -> None:
        said = await everything(house, data, cuts)
        assert not said or STATUS.match(said), said[:80]
        assert {int(code) for code in STATUS.findall(said)}.isdisjoint({500, 501, 502})
        assert (await next_client(house, post("server/discover"))).startswith(b"HTTP/1.1 200 ")

    in_house("http", talk)


@COMMON
@given(data=LINES, cuts=CUTS)
def test_no_bytes_break_the_tcp_house(data: bytes, cuts: list[int]) -> None:
    async def talk(house: House) -> None:
        said = await everything(house, data, cuts)
        for line in said.splitlines():
            answers: Any = json.loads(line)
            for one in answers if isinstance(answers, list) else [answers]:
                assert one["jsonrpc"] == "2.0"
                assert one.get("error", {}).get("code") != -32603, one
        assert json.loads(await next_client(house, request("server/discover", _meta=META) + b"\n"))["id"] == 1

    in_house("tcp", talk)


@pytest.mark.parametrize("transport", ["http", "tcp"])
def test_json_that_is_nested_ten_thousand_deep_is_a_parse_error(transport: str) -> None:
    deep = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"names","arguments":' + b"[" * 10_000
    deep += b"]" * 10_000 + b"}}"
    head = post("tools/call", name="names", arguments={}).partition(b"Content-Length")[0]
    sent = deep + b"\n" if transport == "tcp" else head + f"Content-Length: {len(deep)}\r\n\r\n".encode() + deep

    async def talk(house: House) -> None:
        said = await everything(house, sent, [])
        answer = json.loads(said.splitlines()[-1])
        assert (answer["id"], answer["error"]["code"]) == (7, -32700)
        assert "nested too deeply" in answer["error"]["message"]

    in_house(transport, talk)
