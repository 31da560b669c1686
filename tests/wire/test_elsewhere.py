"""What another process writes to the same memory is told to whoever follows it, over every transport."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_memory.assembly import open_space
from tests.conftest import Caller, person
from tests.peers import Peer
from tests.wire.network import SETTINGS, Line, Web, call, real, request, running

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
