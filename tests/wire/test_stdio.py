"""A server in a process of its own: how it begins, what may go wrong with its streams, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.wire.jsonrpc import MOST_BYTES
from mcp_memory.wire.stdio import Output
from tests.peers import Peer

TOY = Path(__file__).with_name("toy.py")
PATIENCE = 60
# A process on Windows cannot be asked to end, only ended.
SIGNALS = [] if sys.platform == "win32" else [signal.SIGTERM, signal.SIGINT]


class Server(Peer):
    """The toy server; `closed` is what it left behind when it had closed its space."""

    def __init__(self, folder: Path) -> None:
        self.left = folder / "left"
        self.gate = folder / "gate"
        super().__init__([sys.executable, str(TOY), str(self.left)], patience=PATIENCE)

    def remember(self, name: str, ident: Any) -> bytes:
        return request("tools/call", ident, name="remember", arguments={"name": name})

    def begin_toiling(self) -> None:
        """Begin a long call that waits at the gate, and come back when it is there."""
        arguments = {"name": "Toil", "steps": 1, "gate": str(self.gate)}
        self.send(request("tools/call", "long", name="toil", arguments=arguments, _meta={"progressToken": 1}))
        assert self.receive()["method"] == "notifications/progress"

    def rest(self) -> list[Any]:
        """Everything it still says until it ends."""
        assert self.process.stdout is not None
        return [json.loads(line) for line in self.process.stdout]

    def ended_well(self, names: int) -> bool:
        return self.process.wait(PATIENCE) == 0 and json.loads(self.left.read_text()) == names


def request(method: str, ident: Any, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    with server:
        yield server


def ids(messages: list[Any]) -> list[Any]:
    return [message.get("id", message.get("method")) for message in messages]


# ── streams ──────────────────────────────────────────────────────────────────────────────────────


def test_what_somebody_prints_goes_to_the_log_and_not_into_the_protocol(server: Server) -> None:
    server.initialize()

    assert server.call("shout")["structuredContent"] == {"printed": "yes"}
    assert server.request("ping") == {}
    server.close()
    assert server.log() == "stray output\nmore of it\n"


def test_pipelined_calls_are_answered_in_the_order_they_came(server: Server) -> None:
    server.send(*(server.remember(f"n{i}", i) for i in range(500)), request("tools/call", 500, name="names"))

    said = [server.receive() for _ in range(501)]

    assert ids(said) == list(range(501))
    assert said[-1]["result"]["structuredContent"]["names"] == [f"n{i}" for i in range(500)]


def test_lines_may_end_as_on_windows_and_the_last_one_not_at_all(server: Server) -> None:
    assert server.process.stdin is not None
    server.process.stdin.write(b"\r\n" + request("ping", 1) + b"\r\n\n" + request("ping", 2))
    server.process.stdin.close()

    assert ids(server.rest()) == [1, 2]
    assert server.ended_well(names=0)


def test_a_huge_answer_arrives_whole_at_a_slow_reader(server: Server) -> None:
    server.send(request("tools/call", 1, name="swell", arguments={"size": 8_000_000}), request("ping", 2))

    answer = server.receive()

    assert len(answer["result"]["structuredContent"]["text"]) == 8_000_000
    assert server.receive()["id"] == 2


def test_an_answer_that_is_taken_in_pieces_goes_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bytes] = []

    def take_a_little(descriptor: int, data: bytes) -> int:
        taken.append(bytes(data[:1000]))
        return len(taken[-1])

    monkeypatch.setattr(os, "write", take_a_little)
    Output(-1).send([b"a" * 2500, b"b" * 10])

    assert b"".join(taken) == b"a" * 2500 + b"\n" + b"b" * 10 + b"\n"


def test_a_line_over_the_limit_is_refused_and_the_connection_lives_on(server: Server) -> None:
    too_long = request("tools/call", "big", name="remember", arguments={"name": "x" * MOST_BYTES})
    threading.Thread(target=server.send, args=(too_long, request("ping", 2))).start()

    refused, pong = server.receive(), server.receive()

    assert (refused["id"], refused["error"]["code"]) == ("big", -32600)
    assert pong == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_the_largest_allowed_line_is_served(server: Server) -> None:
    empty = request("tools/call", "big", name="remember", arguments={"name": "n", "note": ""})
    line = request(
        "tools/call", "big", name="remember", arguments={"name": "n", "note": "x" * (MOST_BYTES - len(empty))}
    )
    assert len(line) == MOST_BYTES
    threading.Thread(target=server.send, args=(line,)).start()

    assert server.receive()["result"]["structuredContent"] == {"remembered": "n"}


@pytest.mark.parametrize("source", ["file", "nothing"])
def test_the_input_may_be_a_file_or_nothing(tmp_path: Path, source: str) -> None:
    requests = tmp_path / "requests"
    requests.write_bytes(request("ping", 1) + b"\n" if source == "file" else b"")
    with requests.open("rb") as file:
        done = subprocess.run(
            [sys.executable, str(TOY), str(tmp_path / "left")],
            stdin=file if source == "file" else subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=PATIENCE,
        )

    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ([1] if source == "file" else [])
    assert done.stderr == b""


def test_a_server_without_stderr_serves_all_the_same(tmp_path: Path) -> None:
    script = "import os,runpy,sys\nos.close(2)\nsys.argv=sys.argv[1:]\nrunpy.run_path(sys.argv[0],run_name='__main__')"
    lines = [request("tools/call", 1, name="shout"), request("ping", 2)]
    done = subprocess.run(
        [sys.executable, "-c", script, str(TOY), str(tmp_path / "left")],
        input=b"\n".join(lines),
        stdout=subprocess.PIPE,
        check=True,
        timeout=PATIENCE,
    )

    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]


# ── long calls ───────────────────────────────────────────────────────────────────────────────────


def test_a_long_call_leaves_the_connection_open_for_pings_and_its_own_withdrawal(server: Server) -> None:
    server.begin_toiling()
    server.send(request("ping", 1))
    assert server.receive()["id"] == 1

    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long"}})
    server.send(request("tools/call", 2, name="names"))

    assert server.receive()["result"]["structuredContent"] == {"names": []}


def test_calls_behind_a_long_one_are_answered_after_it(server: Server) -> None:
    server.begin_toiling()
    server.send(server.remember("Ada", 1), request("tools/call", 2, name="names"))
    server.gate.touch()

    said = [server.receive() for _ in range(3)]

    assert ids(said) == ["long", 1, 2]
    assert said[2]["result"]["structuredContent"] == {"names": ["Toil", "Ada"]}


# ── the end ──────────────────────────────────────────────────────────────────────────────────────


def test_the_end_of_the_input_is_a_clean_end(server: Server) -> None:
    server.send(server.remember("Ada", 1))
    server.receive()

    assert server.close() == 0
    assert server.ended_well(names=1)
    assert server.log() == ""


@contextmanager
def idle(server: Server) -> Iterator[None]:
    """A server that has answered and waits."""
    server.initialize()
    server.send(server.remember("Ada", "first"))
    server.receive()
    yield


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_a_clean_end(server: Server, number: int) -> None:
    with idle(server):
        server.process.send_signal(number)

    assert server.rest() == []
    assert server.ended_well(names=1)
    assert server.log() == ""


@pytest.mark.parametrize("number", SIGNALS)
def test_what_was_sent_before_a_signal_is_answered_before_the_end(server: Server, number: int) -> None:
    with idle(server):
        server.process.send_signal(signal.SIGSTOP)  # so that it finds all of it at once
        server.send(*(server.remember(f"n{i}", i) for i in range(200)))
        server.process.send_signal(number)
        server.process.send_signal(signal.SIGCONT)

    assert ids(server.rest()) == list(range(200))
    assert server.ended_well(names=201)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_long_call_is_broken_off_by_a_signal_and_answered_with_the_reason(server: Server, number: int) -> None:
    server.begin_toiling()
    server.send(server.remember("Ada", 1), request("ping", 2))
    assert server.receive()["id"] == 2
    server.process.send_signal(number)

    long, behind = server.rest()

    assert "nothing was changed" in long["result"]["content"][0]["text"]
    assert behind["id"] == 1
    assert server.ended_well(names=1)


def test_a_long_call_is_broken_off_at_the_end_of_the_input(server: Server) -> None:
    assert server.process.stdin is not None
    server.begin_toiling()
    server.process.stdin.close()

    (long,) = server.rest()

    assert long["result"]["isError"] is True
    assert server.ended_well(names=0)


def test_a_long_call_that_is_nearly_done_is_waited_for(server: Server) -> None:
    assert server.process.stdin is not None
    server.begin_toiling()
    server.process.stdin.close()
    time.sleep(0.05)
    server.gate.touch()

    (long,) = server.rest()

    assert long["result"]["structuredContent"] == {"steps": 1}
    assert server.ended_well(names=1)


def test_open_streams_are_told_that_they_end(server: Server) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    server.send(request("subscriptions/listen", "s", notifications={}, _meta=meta))
    assert server.receive()["method"] == "notifications/subscriptions/acknowledged"
    assert server.process.stdin is not None
    server.process.stdin.close()

    (ended,) = server.rest()

    assert (ended["id"], ended["result"]["resultType"]) == ("s", "complete")


def test_a_client_that_stops_listening_gets_its_writes_done_and_a_quiet_end(server: Server) -> None:
    assert server.process.stdin is not None and server.process.stdout is not None
    server.initialize()
    server.process.stdout.close()
    server.send(server.remember("Ada", 1))

    assert server.ended_well(names=1)
    assert server.log() == ""


def test_the_input_is_taken_away_from_the_rest_of_the_process(tmp_path: Path) -> None:
    script = (
        "import os\n"
        "from mcp_memory.wire.stdio import _take_standard_streams\n"
        "source, sink = _take_standard_streams()\n"
        "assert os.read(0, 9) == b''\n"
        "os.write(1, b'stray')\n"
        "os.write(sink, os.read(source, 9))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=b"line\n",
        capture_output=True,
        check=True,
        timeout=PATIENCE,
        env=os.environ,
    )

    assert (done.stdout, done.stderr) == (b"line\n", b"stray")
