"""What another process writes to the same memory is told to whoever follows it, over every transport."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_memory.assembly import open_space
from tests.conftest import Caller, person
from tests.peers import Peer
from tests.wire.network import SETTINGS, Line, Web, call, real, request, running
from tests.wire.toy import META

UPDATED = "notifications/resources/updated"
ADA = "memory://entity/Ada"


@pytest.fixture(params=["memory.db", "memory.mcpmem"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


@pytest.fixture
def elsewhere(file: Path) -> Iterator[Caller]:
    """This process, which is no server."""
    space = open_space(file)
    call = Caller(space)
    call("create_entities", entities=[person("Ada"), person("Bob")])
    yield call
    space.close()


def test_over_stdio(file: Path, elsewhere: Caller) -> None:
    with Peer([sys.executable, "-m", "mcp_memory", "-f", str(file), "--settings", str(SETTINGS)]) as peer:
        peer.initialize()
        peer.request("resources/subscribe", {"uri": ADA})
        peer.call("get_entity", name="Ada")
        elsewhere("add_observations", name="Bob", observations=["nobody follows Bob"])
        elsewhere("add_observations", name="Ada", observations=["likes tea"])

        assert peer.receive() == {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": ADA}}
        assert "likes tea" in peer.request("resources/read", {"uri": ADA})["contents"][0]["text"]


def test_over_http_in_both_eras(file: Path, elsewhere: Caller) -> None:
    with running(real(file, "http")) as server, Web(server) as web, Web(server) as news, Web(server) as modern:
        web.shake_hands()
        assert web.post(request("resources/subscribe", uri=ADA)).status == 200
        stream = news.ask("GET", **{name.replace("-", "_"): value for name, value in web.headers.items()})
        stateless = modern.modern("subscriptions/listen", "s", notifications={"resourceSubscriptions": [ADA]})
        assert stateless.event()["method"] == "notifications/subscriptions/acknowledged"
        web.call("get_entity", name="Ada")

        elsewhere("add_observations", name="Ada", observations=["likes tea"])

        for heard in (stream.event(), stateless.event()):
            assert (heard["method"], heard["params"]["uri"]) == (UPDATED, ADA)


def test_over_tcp(file: Path, elsewhere: Caller) -> None:
    with running(real(file, "tcp")) as server, Line(server) as line:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        line.ask(request("initialize", **hello))
        line.ask(request("resources/subscribe", 2, uri=ADA))
        line.ask(call(3, "get_entity", name="Ada"))

        elsewhere("delete_entities", entityNames=["Ada"])

        assert line.receive() == {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": ADA}}


@pytest.mark.parametrize("transport", ["http", "tcp"])
def test_of_many_who_ask_at_once_everybody_is_told_what_was_written_before(
    transport: str, file: Path, elsewhere: Caller
) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running(real(file, transport)))
        clients = [stack.enter_context(Line(server)) for _ in range(12)]
        for number in range(40):
            fact = f"fact {number}"
            elsewhere("add_observations", name="Ada", observations=[fact])
            asking = call(number, "get_entity", name="Ada")
            for client in clients:
                client.socket.sendall(posted(asking) if transport == "http" else asking + b"\n")
            for client in clients:
                assert fact in told(client, transport), number


def posted(body: bytes) -> bytes:
    """A stateless request, as bytes."""
    message = json.loads(body)
    message["params"]["_meta"] = META
    body = json.dumps(message).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        "Mcp-Method: tools/call\r\nMcp-Name: get_entity\r\n\r\n"
    )
    return head.encode() + body


def told(client: Line, transport: str) -> str:
    """The next answer."""
    if transport == "tcp":
        return str(client.receive())
    size = 0
    while (line := client.answers.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        size = int(value) if name == b"content-length" else size
    return client.answers.read(size).decode()
