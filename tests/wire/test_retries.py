"""A write that is sent again under the same key happens once, and is answered the same."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_memory.desk import Answer
from mcp_memory.facts import NotNow
from mcp_memory.tools.catalog import catalog
from mcp_memory.wire import retries
from mcp_memory.wire.retries import Retries
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
    now[0] = retries.KEPT_SECONDS + 1
    assert again("a") == b"1"
    monkeypatch.setattr(retries, "MOST_KEPT", 3)
    assert [again(key) for key in "bcd"] == [b"2", b"3", b"4"]
    assert again("a") == b"5"
