"""A write that is sent again under the same key happens once, and is answered the same."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_memory import repeats
from mcp_memory.assembly import open_space
from mcp_memory.desk import Answer
from mcp_memory.facts import NotNow
from mcp_memory.tools.catalog import catalog
from mcp_memory.wire import Session, retries
from mcp_memory.wire.retries import Retries
from tests.peers import Peer, PeerFault
from tests.wire.network import SETTINGS
from tests.wire.toy import META, Client

KEY = "mcp-memory/requestKey"
GIVEN = {"entities": [{"name": "Ada", "observations": ["tea"]}]}


def create(client: Client, key: Any, arguments: Any = GIVEN, tool: str = "create_entities", **meta: Any) -> Any:
    (reply,) = client.send("tools/call", name=tool, arguments=arguments, _meta={**meta, KEY: key})
    return {name: value for name, value in reply.items() if name != "id"}


@pytest.mark.parametrize(("version", "meta"), [(None, META), ("2025-11-25", {})])
def test_a_write_with_a_key_happens_once(version: str | None, meta: dict[str, Any]) -> None:
    client = Client(version=version, tools=catalog())

    first = create(client, "k", **meta)
    seq = client.space.graph().seq
    client.space.commit(lambda graph: catalog()["delete_entities"].function(graph, ["Ada"]))

    assert create(client, "k", **meta) == first
    assert client.names() == []
    assert client.space.graph().seq == seq + 1
    assert "result" in create(client, "another", **meta)
    assert client.names() == ["Ada"]


def test_a_relation_that_is_sent_again_is_no_error() -> None:
    client = Client(tools=catalog())
    client.call("create_entities", entities=[{"name": "Ada"}, {"name": "Bob"}])
    given = {"relations": [{"from": "Ada", "to": "Bob", "relationType": "knows"}]}

    first = create(client, "k", given, "create_relations")

    assert create(client, "k", given, "create_relations") == first
    assert "errors" not in first["result"]["structuredContent"]


def test_a_key_is_for_one_call() -> None:
    client = Client(tools=catalog())
    create(client, "k")

    assert create(client, "k", {"entities": [{"name": "Bob"}]})["error"]["code"] == -32602
    assert client.names() == ["Ada"]


def test_what_failed_may_be_tried_again_with_its_key() -> None:
    client = Client(tools=catalog())
    given = {"name": "Ada", "observations": ["tea"]}
    assert create(client, "k", given, "add_observations")["result"]["isError"]
    client.call("create_entities", entities=[{"name": "Ada"}])

    assert "isError" not in create(client, "k", given, "add_observations")["result"]


@pytest.mark.parametrize("key", [5, None, {}, "x" * 300])
def test_a_key_is_a_short_text(key: Any) -> None:
    client = Client(tools=catalog())

    assert create(client, key)["error"]["code"] == -32602
    assert client.names() == []


def test_a_reader_needs_no_key() -> None:
    client = Client(tools=catalog())
    create(client, "k", {}, "graph_stats")
    client.call("create_entities", entities=[{"name": "Ada"}])

    assert create(client, "k", {}, "graph_stats")["result"]["structuredContent"]["entities"] == 1


def test_a_batch_honours_keys_too() -> None:
    client = Client(version="2025-03-26", tools=catalog())
    client.call("create_entities", entities=[{"name": "Ada"}])
    given = {"target_type": "global", "content": "short answers", "author": "nolan"}
    params = {"name": "add_reflection", "arguments": given, "_meta": {KEY: "k"}}
    batch = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params} for n in (1, 2)]

    ((first, second),) = client.line(json.dumps(batch))
    ((third, _),) = client.line(json.dumps(batch))

    assert first["result"] == second["result"] == third["result"]
    assert len(client.space.graph().reflections) == 1


# ── after a restart, and in another process ──────────────────────────────────────────────────────

REFLECTION = {"target_type": "global", "content": "short answers", "author": "nolan"}
# A server that dies when it has committed and before it has answered.
DYING = "import os, sys; from mcp_memory.wire import methods; from mcp_memory.server import main\n"
DYING += "methods.told = lambda *_: os._exit(9)\nmain(sys.argv[1:])"


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "memory.db"
    space = open_space(tmp_path / "memory.db", model="none")
    assert [finding.text for finding in space.check()] == []
    space.close()


def opened(file: Path) -> Client:
    return Client(tools=catalog(), space=open_space(file, model="none"))


def test_a_write_whose_server_died_before_it_answered_is_not_made_again(file: Path) -> None:
    request = {"name": "add_reflection", "arguments": REFLECTION, "_meta": {KEY: "k"}}
    arguments = ["-f", str(file), "--settings", str(SETTINGS), "--model", "none"]
    with Peer([sys.executable, "-c", DYING, *arguments]) as peer:
        peer.initialize()
        with pytest.raises(PeerFault):
            peer.request("tools/call", request)
    with Peer([sys.executable, "-m", "mcp_memory", *arguments]) as peer:
        peer.initialize()
        said = peer.request("tools/call", request)
        found = peer.request("tools/call", {"name": "search_reflections", "arguments": {"query": "answers"}})

    assert said["structuredContent"]["repeated"]["call"] == 1
    assert "history" in said["structuredContent"]["note"] and "isError" not in said
    assert len(found["structuredContent"]["results"]) == 1


def test_another_process_knows_what_was_made(file: Path) -> None:
    one, other = opened(file), opened(file)
    create(one, "k", REFLECTION, "add_reflection")
    create(other, "another", REFLECTION, "add_reflection")

    assert create(other, "k", REFLECTION, "add_reflection")["result"]["structuredContent"]["repeated"]["call"] == 1
    repeated = create(one, "another", REFLECTION, "add_reflection")["result"]["structuredContent"]
    assert repeated["repeated"]["call"] == 2
    assert len(one.space.graph().reflections) == len(other.space.graph().reflections) == 2
    changed = create(other, "k", {**REFLECTION, "content": "long answers"}, "add_reflection")
    assert changed["error"]["code"] == -32602
    for client in (one, other):
        client.space.close()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("undo", {}),
        ("migrate", {"source_path": "other.jsonl"}),
        ("delete_entities", {"entityNames": ["Ada"]}),
        ("create_entities", {"entities": [{"name": f"n{n}"} for n in range(20)]}),
    ],
)
def test_writers_of_every_kind_are_made_once(file: Path, tool: str, arguments: dict[str, Any]) -> None:
    """Those that plan, those that look back, those that take long, those that may ask first."""
    source = file.with_name("other.jsonl")
    source.write_text('{"type":"entity","name":"Eve","entityType":"P","observations":["x"]}\n', encoding="utf-8")
    if tool == "migrate":
        arguments = {"source_path": str(source)}
    client = Client(tools=catalog(), space=open_space(file, model="none", roots=(str(file.parent),)))
    for name in ("Ada", "Bob"):
        client.call("create_entities", entities=[{"name": name}])
    first = sent(client, tool, arguments)
    assert "repeated" not in first
    state, names = client.space.graph().seq, client.names()
    client.space.close()

    again = Client(tools=catalog(), space=open_space(file, model="none", roots=(str(file.parent),)))
    assert sent(again, tool, arguments)["repeated"]["call"] == 3
    assert (again.space.graph().seq, again.names()) == (state, names)
    again.space.close()


def sent(client: Client, tool: str, arguments: dict[str, Any]) -> Any:
    client.sent.clear()
    (reply,) = client.send("tools/call", name=tool, arguments=arguments, _meta={KEY: "k"}) or client.wait()
    return reply["result"]["structuredContent"]


def test_a_key_is_kept_for_an_hour_and_for_so_many_writes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client, now = opened(file), ["2030-01-01 10:00:00"]

    def made(key: str, at: str) -> bool:
        """By a server that has just started."""
        client.space.close()
        client.space = open_space(file, model="none")
        client.space.clock = lambda: at
        client.offer = Client(tools=catalog(), space=client.space).offer
        client.session = Session(client.offer, "test")
        said = create(client, key, REFLECTION, "add_reflection")
        return "repeated" not in said["result"]["structuredContent"]

    assert made("k", now[0])
    assert not made("k", "2030-01-01 10:59:59")
    assert made("k", "2030-01-01 11:00:01")
    monkeypatch.setattr(repeats, "MOST_ENTRIES", 2)
    assert made("a", "2030-01-01 11:00:02")
    assert not made("k", "2030-01-01 11:00:02")
    assert made("b", "2030-01-01 11:00:02")
    assert made("k", "2030-01-01 11:00:02")
    client.space.close()


@pytest.mark.parametrize("suffix", [".jsonl", ".mcpmem"])
def test_a_format_without_a_feed_knows_keys_as_long_as_its_server_runs(tmp_path: Path, suffix: str) -> None:
    client = opened(tmp_path / f"memory{suffix}")

    first = create(client, "k")

    assert create(client, "k") == first
    assert client.names() == ["Ada"]
    assert client.space.check() == []
    client.space.close()


def test_the_history_speaks_of_what_happened_and_not_of_keys(file: Path) -> None:
    client = opened(file)
    create(client, "k")

    (told,) = client.call("history")["structuredContent"]["calls"]

    assert "request" not in json.dumps(told) and "more" not in told
    client.space.close()


# ── the book of keys ─────────────────────────────────────────────────────────────────────────────


def call(key: str = "k") -> Any:
    return SimpleNamespace(
        dialogue=SimpleNamespace(request_key=f'"{key}"'.encode()),
        origin="test",
        tool=SimpleNamespace(name="t"),
        arguments=b"{}",
    )


def test_the_same_call_under_way_is_waited_for() -> None:
    kept, gate, begun = Retries(), threading.Event(), threading.Event()

    def slow() -> Answer:
        begun.set()
        gate.wait(10)
        return Answer([b"1"], changed=True)

    def never() -> Answer:
        raise AssertionError("it happened twice")

    said: list[Any] = []
    threads = [threading.Thread(target=lambda: said.append(kept.once(call(), slow, wait=True)))]
    threads[0].start()
    begun.wait(10)
    with pytest.raises(NotNow):
        kept.once(call(), never, wait=False)
    threads.append(threading.Thread(target=lambda: said.append(kept.once(call(), never, wait=True))))
    threads[1].start()
    gate.set()
    for thread in threads:
        thread.join(10)

    assert [one.structured for one in said] == [b"1", b"1"]
    assert sorted(one.changed for one in said) == [False, True]  # it is told of once


def test_keys_are_forgotten_in_time_and_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    kept = Retries(clock=lambda: now[0])
    count = iter(range(100))

    def do() -> Answer:
        return Answer([str(next(count)).encode()])

    def again(key: str) -> bytes | None:
        answer = kept.once(call(key), do, wait=True)
        return None if answer is None else answer.structured

    assert again("a") == again("a") == b"0"
    now[0] = repeats.KEPT_SECONDS + 1
    assert again("a") == b"1"
    monkeypatch.setattr(retries, "MOST_KEPT", 3)
    assert [again(key) for key in "bcd"] == [b"2", b"3", b"4"]
    assert again("a") == b"5"
