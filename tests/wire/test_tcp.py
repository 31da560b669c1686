"""Many clients over TCP: lines that come in pieces, clients that do not read, come too often or go in the middle."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from mcp_memory.wire.jsonrpc import MOST_BYTES
from tests.conftest import person
from tests.wire.network import HELLO, PATIENCE, SIGNALS, Line, Toy, call, real, remember, request, running
from tests.wire.toy import META

TOKEN = "a-token-of-some-length"
URI = "memory://knowledge-graph"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Toy]:
    toy = Toy(tmp_path, "tcp")
    with running(toy):
        yield toy


@pytest.fixture
def line(server: Toy) -> Iterator[Line]:
    with Line(server) as line:
        yield line


def ids(messages: list[Any]) -> list[Any]:
    return [message.get("id", message.get("method")) for message in messages]


# ── lines ────────────────────────────────────────────────────────────────────────────────────────


def test_pipelined_calls_are_answered_in_the_order_they_came(line: Line) -> None:
    line.send(*(remember(i, f"n{i}") for i in range(500)), call(500, "names"))

    said = [line.receive() for _ in range(501)]

    assert ids(said) == list(range(501))
    assert said[-1]["result"]["structuredContent"]["names"] == [f"n{i}" for i in range(500)]


def test_a_line_may_come_in_any_pieces(line: Line) -> None:
    for byte in remember(1, "Ådä") + b"\r\n\n":
        line.socket.sendall(bytes([byte]))

    assert line.receive()["id"] == 1
    assert line.names() == ["Ådä"]


def test_a_client_that_has_said_everything_is_answered_and_then_let_go(line: Line) -> None:
    line.socket.sendall(remember(1, "Ada") + b"\n" + request("ping", 2))
    line.socket.shutdown(socket.SHUT_WR)

    assert ids(line.rest()) == [1, 2]


def test_a_line_over_the_limit_is_refused_and_the_connection_lives_on(line: Line) -> None:
    line.send(remember("big", "x" * MOST_BYTES), request("ping", 2))

    refused = line.receive()

    assert (refused["id"], refused["error"]["code"]) == ("big", -32600)
    assert "16 MiB" in refused["error"]["message"]
    assert line.receive()["id"] == 2


def test_each_connection_is_a_session_of_its_own(server: Toy, line: Line) -> None:
    with Line(server) as other:
        line.ask(request("initialize", 1, **{**HELLO, "protocolVersion": "2025-03-26"}))
        batch = b"[" + remember(1, "Ada") + b"," + request("ping", 2) + b"]"

        assert ids(line.ask(batch)) == [1, 2]
        assert other.ask(batch)["error"]["code"] == -32600
        assert other.names() == ["Ada"]


# ── clients that are slow, many, or strangers ────────────────────────────────────────────────────


def test_a_client_that_does_not_read_is_not_read_from_and_nobody_else_notices(server: Toy, line: Line) -> None:
    size, calls = 1_000_000, 60
    before = server.resident_mb()
    line.send(*(call(i, "swell", size=size) for i in range(calls)))
    with Line(server) as other:
        other.ask(request("ping", 1))
        started = time.monotonic()
        for i in range(100):
            assert other.ask(request("ping", i))["id"] == i
        assert time.monotonic() - started < 5
        # Each answer takes 4 MB and is held two or three times at worst; all of them together would be 240 MB.
        assert server.resident_mb() - before < 60

    for i in range(calls):
        answer = line.receive()
        assert answer["id"] == i
        assert len(answer["result"]["structuredContent"]["text"]) == size


def test_a_client_that_only_sends_is_stopped_by_the_pipe_and_not_kept_in_memory(server: Toy, line: Line) -> None:
    before = server.resident_mb()
    line.socket.settimeout(1)
    flood = b"".join(call(i, "swell", size=10_000) + b"\n" for i in range(2000))
    with pytest.raises(TimeoutError):
        for _ in range(1000):
            line.socket.sendall(flood)

    assert server.resident_mb() - before < 40


def test_one_connection_too_many_is_told_so(tmp_path: Path) -> None:
    with running(Toy(tmp_path, "tcp", "--max-connections", "2")) as server:
        first, second = Line(server), Line(server)
        assert first.ask(request("ping", 1))["result"] == second.ask(request("ping", 1))["result"] == {}
        with Line(server) as third:
            (refused,) = third.rest()
            assert "Too many connections" in refused["error"]["message"]
            assert refused["error"]["data"] == {"retryable": True}
        first.close()
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with Line(server, request("ping", 1) + b"\n") as fourth:
                if "result" in fourth.receive():
                    break
        else:
            pytest.fail("the place of a client that left is not given to another")
        second.close()


@pytest.mark.parametrize("token", [TOKEN, f"Bearer {TOKEN}", f"bearer  {TOKEN}\r"])
def test_the_token_is_the_first_line(tmp_path: Path, token: str) -> None:
    with running(Toy(tmp_path, "tcp", MCP_MEMORY_AUTH_TOKEN=TOKEN)) as server, Line(server) as line:
        line.send(token.encode(), request("ping", 1))

        assert line.receive() == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize("first", [b"wrong", b"Bearer", b"", b"x" * 5000, remember(1, "Eve"), TOKEN.encode() + b"x"])
def test_a_stranger_is_told_what_is_wanted_and_let_go(tmp_path: Path, first: bytes) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n", encoding="utf-8")
    with running(Toy(tmp_path, "tcp", "--auth-token-file", str(file))) as server:
        with Line(server) as stranger:
            stranger.send(first, remember(2, "Eve"))
            (refused,) = stranger.rest()
            assert refused["error"]["code"] == -32001
            assert "bearer token as the first line" in refused["error"]["message"]
        with Line(server, TOKEN.encode() + b"\n") as friend:
            assert friend.names() == []


# ── calls that take time ─────────────────────────────────────────────────────────────────────────


def begin_toiling(server: Toy, line: Line) -> None:
    line.send(server.toil("long"))
    assert line.receive()["method"] == "notifications/progress"


def test_a_long_call_keeps_nobody_waiting_but_the_calls_behind_it(server: Toy, line: Line) -> None:
    begin_toiling(server, line)
    line.send(remember(1, "Ada"), request("ping", 2))
    assert line.receive()["id"] == 2
    with Line(server) as other:
        assert other.names() == []
    server.gate.touch()

    assert ids([line.receive(), line.receive()]) == ["long", 1]
    assert line.names() == ["Toil", "Ada"]


def test_a_long_call_can_be_withdrawn(server: Toy, line: Line) -> None:
    begin_toiling(server, line)

    line.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long"}}')

    assert line.names() == []


def test_a_long_call_of_a_client_that_went_away_is_broken_off(server: Toy) -> None:
    with Line(server) as line:
        begin_toiling(server, line)
        line.send(remember(1, "Ada"))
    with Line(server) as other:
        until = time.monotonic() + PATIENCE
        while other.names() != ["Ada"] and time.monotonic() < until:
            time.sleep(0.01)

        assert other.names() == ["Ada"]


def test_a_write_that_waits_for_a_locked_file_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    ada, bob = person("Ada"), person("Bob")
    with running(real(file, "tcp")) as server, Line(server) as writer, Line(server) as reader:
        writer.ask(call(1, "create_entities", entities=[ada]))
        another = apsw.Connection(str(file))
        another.execute("begin immediate")
        writer.send(call(2, "create_entities", entities=[bob]), call(3, "open_nodes", names=["Bob"]))
        writer.send(request("ping", 4))
        assert writer.receive()["id"] == 4
        for _ in range(20):
            found = reader.ask(call(1, "open_nodes", names=["Ada", "Bob"]))["result"]["structuredContent"]
            assert [entity["name"] for entity in found["entities"]] == ["Ada"]
        another.execute("rollback")
        another.close()

        written, read = writer.receive(), writer.receive()

    assert (written["id"], written["result"].get("isError")) == (2, None)
    assert read["id"] == 3
    assert [entity["name"] for entity in read["result"]["structuredContent"]["entities"]] == ["Bob"]


# ── news ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_client_hears_of_what_others_write_and_once_of_its_own(server: Toy, line: Line) -> None:
    line.ask(request("initialize", 1, **HELLO))
    line.ask(request("resources/subscribe", 2, uri=URI))
    with Line(server) as other:
        other.ask(remember(1, "Ada"))
        assert line.receive() == {
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": {"uri": URI},
        }
    line.send(remember(3, "Bob"), request("ping", 4))

    assert ids([line.receive() for _ in range(3)]) == ["notifications/resources/updated", 3, 4]
    assert ids([line.ask(request("ping", 5))]) == [5]


def test_a_stateless_client_hears_of_what_others_write_on_its_stream(server: Toy, line: Line) -> None:
    ack = line.ask(request("subscriptions/listen", "s", notifications={"resourceSubscriptions": [URI]}, _meta=META))
    assert ack["method"] == "notifications/subscriptions/acknowledged"
    with Line(server) as other:
        other.ask(remember(1, "Ada"))

    assert line.receive()["params"] == {"_meta": {"io.modelcontextprotocol/subscriptionId": "s"}, "uri": URI}


# ── the end ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_a_clean_end_within_a_second(server: Toy, line: Line, number: int) -> None:
    line.ask(remember(1, "Ada"))
    started = time.monotonic()

    assert server.end(number) == (0, "")
    assert line.rest() == []
    assert server.names() == 1
    assert time.monotonic() - started < 5  # a second on a machine that has time


@pytest.mark.parametrize("number", SIGNALS)
def test_what_was_sent_before_a_signal_is_answered_before_the_end(server: Toy, line: Line, number: int) -> None:
    line.ask(request("ping", "first"))
    line.send(*(remember(i, f"n{i}") for i in range(300)))
    server.process.send_signal(number)

    assert ids(line.rest()) == list(range(300))
    assert server.ended() == (0, "")
    assert server.names() == 300


@pytest.mark.parametrize("number", SIGNALS)
def test_a_long_call_is_broken_off_by_a_signal_and_answered_with_the_reason(
    server: Toy, line: Line, number: int
) -> None:
    begin_toiling(server, line)
    line.send(remember(1, "Ada"))
    line.ask(request("ping", 2))
    server.process.send_signal(number)

    long, behind = line.rest()

    assert "nothing was changed" in long["result"]["content"][0]["text"]
    assert behind["id"] == 1
    assert server.ended() == (0, "")
    assert server.names() == 1


@pytest.mark.parametrize("number", SIGNALS)
def test_open_streams_are_told_that_they_end(server: Toy, line: Line, number: int) -> None:
    line.ask(request("subscriptions/listen", "s", notifications={}, _meta=META))
    server.process.send_signal(number)

    (ended,) = line.rest()

    assert (ended["id"], ended["result"]["resultType"]) == ("s", "complete")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_write_that_waits_for_a_locked_file_does_not_hold_up_the_end(tmp_path: Path, number: int) -> None:
    file = tmp_path / "memory.db"
    with running(real(file, "tcp")) as server, Line(server) as line:
        line.ask(call(1, "open_nodes", names=[]))
        another = apsw.Connection(str(file))
        another.execute("begin immediate")
        line.send(call(2, "create_entities", entities=[person("Ada")]))
        line.ask(request("ping", 3))
        started = time.monotonic()
        server.process.send_signal(number)

        (refused,) = line.rest()

        assert "locked by another program" in refused["result"]["content"][0]["text"]
        assert server.ended()[0] == 0
        assert time.monotonic() - started < 8  # not the fifteen seconds that it would have waited
        another.close()
