"""The official profile on the wire: what that server says, and what it does not answer at all.

`tests/official` compares with the real one; here stands what was seen, so that it can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.toy import META, Client

URI = "memory://knowledge-graph"


@pytest.fixture
def client() -> Client:
    return Client(official=True)


def test_its_handshake_promises_what_that_server_promises_and_instructs_nobody() -> None:
    result = Client(official=True, version=None).result("initialize", protocolVersion="2026-07-28")

    assert result["protocolVersion"] == "2025-11-25"
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
    }
    assert "instructions" not in result


def test_every_revision_gets_the_fields_of_the_newest() -> None:
    client = Client(official=True, version="2024-11-05")

    assert "title" in client.result("resources/list")["resources"][0]
    assert client.call("names")["structuredContent"] == {"names": []}
    assert "annotations" in client.result("tools/list")["tools"][0]


@pytest.mark.parametrize(
    "method",
    [
        "prompts/list",
        "logging/setLevel",
        "completion/complete",
        "server/discover",
        "subscriptions/listen",
        "tasks/list",
    ],
)
def test_it_does_not_know_what_that_server_does_not_know(client: Client, method: str) -> None:
    assert client.error(method) == {"code": -32601, "message": "Method not found"}
    assert client.error(method, _meta=META) == {"code": -32601, "message": "Method not found"}


def test_the_envelope_of_the_stateless_revision_means_nothing_to_it(client: Client) -> None:
    assert client.result("tools/call", name="names", _meta=META).keys() == {"content", "structuredContent"}


def test_an_unknown_tool_is_an_error_of_the_tool(client: Client) -> None:
    assert client.call("nope") == {
        "content": [{"type": "text", "text": "MCP error -32602: Tool nope not found"}],
        "isError": True,
    }


def test_an_unknown_resource_is_told_in_its_words_but_may_be_subscribed_to(client: Client) -> None:
    assert client.error("resources/read", uri="memory://nope") == {
        "code": -32602,
        "message": "MCP error -32602: Resource memory://nope not found",
    }
    assert client.result("resources/subscribe", uri="memory://nope") == {}
    assert len(client.send("tools/call", name="remember", arguments={"name": "Ada"})) == 1


@pytest.mark.parametrize(
    ("method", "params", "name", "expected", "received"),
    [
        ("tools/call", {}, "name", "string", "undefined"),
        ("tools/call", {"name": 5}, "name", "string", "number"),
        ("tools/call", {"name": "names", "arguments": None}, "arguments", "record", "null"),
        ("tools/call", {"name": "names", "arguments": []}, "arguments", "record", "array"),
        ("resources/read", {}, "uri", "string", "undefined"),
        ("resources/subscribe", {"uri": {}}, "uri", "string", "object"),
    ],
)
def test_a_parameter_of_the_wrong_type_is_told_as_its_validator_tells_it(
    client: Client, method: str, params: dict[str, Any], name: str, expected: str, received: str
) -> None:
    fault = client.error(method, **params)

    assert fault["code"] == -32603
    assert fault["message"] == json.dumps(
        [
            {
                "expected": expected,
                "code": "invalid_type",
                "path": ["params", name],
                "message": f"Invalid input: expected {expected}, received {received}",
            }
        ],
        indent=2,
    )


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        '{"jsonrpc":"2.0","id":1,"method":"ping"',
        '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        "[]",
        "5",
        '{"id":1,"method":"ping"}',
        '{"jsonrpc":"2.0","id":null,"method":"ping"}',
        '{"jsonrpc":"2.0","id":true,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":5}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":5}}',
    ],
)
def test_what_is_no_request_is_skipped_in_silence(client: Client, line: str) -> None:
    assert client.line(line) == []


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"names","arguments":{"x":"\\ud800"}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"names","arguments":{"x":"\xff"}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    ],
)
def test_a_request_that_javascript_can_read_is_answered_even_if_we_cannot(client: Client, line: bytes) -> None:
    (said,) = client.line(line)

    assert (said["id"], said["error"]["code"]) == (1, -32700)
