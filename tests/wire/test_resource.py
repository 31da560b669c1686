"""The graph as a resource: reading it, and hearing that it changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import methods

from mcp_memory.changes import EntityCreated, Plan, RelationCreated, RelationEnded
from mcp_memory.facts import PLACEHOLDER
from mcp_memory.graph import Graph
from tests.wire.toy import META, SERVER, Client

URI = "memory://knowledge-graph"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
UPDATE = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": URI}}


def remember(client: Client, name: str, **more: Any) -> list[Any]:
    return client.send("tools/call", name="remember", arguments={"name": name}, **more)


def filled(client: Client) -> Client:
    """Ada knows Bob, whom nobody created, and knew somebody else."""

    def plan(graph: Graph) -> Plan:
        return Plan(
            [
                EntityCreated(1, "Ada", "Person", first=1, texts=["likes \u2028 tea", "has\ttabs"]),
                EntityCreated(2, "Bob", "", PLACEHOLDER),
                RelationCreated(1, 1, 2, "knows"),
                RelationCreated(2, 2, 1, "knew"),
                RelationEnded(2),
            ]
        )

    client.space.commit(plan)
    return client


GRAPH = {
    "entities": [{"name": "Ada", "entityType": "Person", "observations": ["likes \u2028 tea", "has\ttabs"]}],
    "relations": [{"from": "Ada", "to": "Bob", "relationType": "knows"}],
}


def test_the_resource_is_all_that_is_true_now() -> None:
    (contents,) = filled(Client()).result("resources/read", uri=URI)["contents"]

    assert contents["uri"] == URI
    assert contents["mimeType"] == "application/json"
    assert contents["text"] == json.dumps(GRAPH, ensure_ascii=False, separators=(",", ":"))


def test_the_official_profile_writes_it_as_javascript_does() -> None:
    (contents,) = filled(Client(official=True)).result("resources/read", uri=URI)["contents"]

    assert contents["text"] == json.dumps(GRAPH, ensure_ascii=False, indent=2)


@pytest.mark.parametrize(("version", "code"), [("2024-11-05", -32002), ("2025-11-25", -32002), ("2026-07-28", -32602)])
def test_another_resource_is_not_found(version: str, code: int) -> None:
    client = Client(version=None if version == "2026-07-28" else version)
    meta = {"_meta": META} if version == "2026-07-28" else {}

    fault = client.error("resources/read", uri="memory://nope", **meta)

    assert fault["code"] == code
    assert fault["data"] == {"uri": "memory://nope"}


@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe", "resources/unsubscribe"])
@pytest.mark.parametrize("params", [{}, {"uri": 5}])
def test_a_resource_needs_its_name(method: str, params: dict[str, Any]) -> None:
    client = Client()
    client.result("resources/subscribe", uri=URI)

    assert client.error(method, **params)["code"] == -32602


# ── after a handshake ────────────────────────────────────────────────────────────────────────────


def test_a_subscriber_hears_of_a_write_before_its_answer() -> None:
    client = Client()
    client.result("resources/subscribe", uri=URI)

    notice, reply = remember(client, "Ada")

    assert notice == UPDATE
    assert "result" in reply


def test_nobody_hears_of_reads_failures_or_without_subscribing() -> None:
    client = Client()
    assert len(remember(client, "Ada")) == 1
    client.result("resources/subscribe", uri=URI)

    assert len(remember(client, "")) == 1
    assert len(client.send("tools/call", name="names")) == 1
    client.result("resources/unsubscribe", uri="memory://nope")
    assert len(remember(client, "Bob")) == 2
    client.result("resources/unsubscribe", uri=URI)
    assert len(remember(client, "Cyd")) == 1


def test_only_the_graph_can_be_subscribed_to() -> None:
    client = Client()

    assert client.error("resources/subscribe", uri="memory://nope")["code"] == -32002
    assert len(remember(client, "Ada")) == 1


# ── without one ──────────────────────────────────────────────────────────────────────────────────


def listen(client: Client, ident: Any, **asked: Any) -> list[Any]:
    return client.send("subscriptions/listen", ident, notifications=asked, _meta=META)


def test_a_stream_is_acknowledged_with_what_it_will_carry() -> None:
    asked = {"resourceSubscriptions": ["memory://nope", URI], "toolsListChanged": True, "rootsListChanged": True}

    (ack,) = listen(Client(version=None), "s", **asked)

    assert ack == {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {
            "_meta": {SUBSCRIPTION: "s"},
            "notifications": {"toolsListChanged": True, "resourceSubscriptions": [URI]},
        },
    }


def test_each_stream_hears_of_a_write_under_its_own_id_before_the_answer() -> None:
    client = Client(version=None)
    listen(client, "s", resourceSubscriptions=[URI])
    listen(client, 2, resourceSubscriptions=[URI])
    listen(client, 3, toolsListChanged=True)

    *notices, reply = remember(client, "Ada", _meta=META)

    assert notices == [{**UPDATE, "params": {"_meta": {SUBSCRIPTION: ident}, "uri": URI}} for ident in ("s", 2)]
    assert reply["result"]["resultType"] == "complete"


def test_a_withdrawn_stream_is_silent() -> None:
    client = Client(version=None)
    listen(client, "s", resourceSubscriptions=[URI])

    assert client.notify("notifications/cancelled", requestId="s") == []

    assert len(remember(client, "Ada", _meta=META)) == 1
    assert client.session.end() == []


def test_at_the_end_every_stream_gets_its_result() -> None:
    client = Client(version=None)
    listen(client, "s", resourceSubscriptions=[URI])
    listen(client, 4)

    said = [json.loads(line) for line in client.session.end()]

    assert [one["id"] for one in said] == ["s", 4]
    for one in said:
        assert one["result"] == {
            "resultType": "complete",
            "_meta": {SUBSCRIPTION: one["id"], "io.modelcontextprotocol/serverInfo": SERVER},
        }
    assert client.session.end() == []


@pytest.mark.parametrize("asked", [None, 5, []])
def test_a_stream_needs_to_know_what_is_wanted(asked: Any) -> None:
    client = Client(version=None)

    assert client.error("subscriptions/listen", notifications=asked, _meta=META)["code"] == -32602
    assert listen(client, "s", resourceSubscriptions="all")[0]["params"]["notifications"] == {}


def test_an_id_listens_once() -> None:
    client = Client(version=None)
    listen(client, "s", resourceSubscriptions=[URI])

    (said,) = listen(client, "s", resourceSubscriptions=[URI])

    assert said["error"]["code"] == -32600


def test_what_reading_and_listing_answer_is_valid_with_facts_in_it() -> None:
    client = filled(Client(version=None))

    methods.validate_server_result("resources/read", "2026-07-28", client.result("resources/read", uri=URI, _meta=META))
