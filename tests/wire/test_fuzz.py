"""Whatever bytes come in: no exception, no answer that is no message, at most one answer to a request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.wire import Session
from tests.wire.toy import META, Client

METHODS = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "logging/setLevel",
    "server/discover",
    "subscriptions/listen",
    "notifications/cancelled",
    "notifications/initialized",
    "nope",
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6)
IDENTS = st.integers() | st.text() | st.none() | st.booleans() | st.lists(st.integers())


def sometimes(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return value | ANYTHING


PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": sometimes(st.sampled_from(["remember", "names", "count", "sing", "nope"])),
        "arguments": sometimes(st.fixed_dictionaries({}, optional={"name": ANYTHING, "note": ANYTHING})),
        "uri": sometimes(st.just("memory://knowledge-graph")),
        "protocolVersion": sometimes(st.sampled_from(["2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"])),
        "clientInfo": sometimes(st.just({"name": "fuzz", "version": "1"})),
        "notifications": sometimes(st.just({"resourceSubscriptions": ["memory://knowledge-graph"]})),
        "requestId": ANYTHING,
        "_meta": sometimes(st.just(META) | st.dictionaries(st.sampled_from([*META, "progressToken"]), ANYTHING)),
    },
)
MESSAGES = st.fixed_dictionaries(
    {"method": sometimes(st.sampled_from(METHODS))},
    optional={"jsonrpc": st.just("2.0") | ANYTHING, "id": IDENTS, "params": sometimes(PARAMS)},
)
WELL_FORMED = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.integers() | st.text(), "method": st.sampled_from(METHODS), "params": PARAMS}
)


def text_of(message: Any) -> bytes:
    return json.dumps(message).encode()


LINES = (
    st.binary()
    | st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))
    | (MESSAGES | WELL_FORMED | ANYTHING | st.lists(MESSAGES, max_size=4)).map(text_of)
    | WELL_FORMED.map(text_of).flatmap(
        lambda line: st.integers(0, len(line)).map(lambda at: line[:at] + b"\xff\\" + line[at:])
    )
)


def fresh(official: bool) -> Session:
    return Client(official=official, version=None).session


@pytest.mark.parametrize("official", [False, True])
@settings(max_examples=300, deadline=None)
@given(lines=st.lists(LINES, max_size=8))
def test_no_line_breaks_a_session(official: bool, lines: list[bytes]) -> None:
    session = fresh(official)

    for line in lines:
        said = [json.loads(one) for one in session.receive(line.replace(b"\n", b""))]
        replies = [one for one in said if isinstance(one, list) or "method" not in one]

        assert len(replies) <= 1
        for reply in replies:
            for one in reply if isinstance(reply, list) else [reply]:
                assert one["jsonrpc"] == "2.0"
                assert ("result" in one) != ("error" in one)
    assert all("result" in json.loads(one) for one in session.end())


@settings(max_examples=300, deadline=None)
@given(messages=st.lists(WELL_FORMED, min_size=1, max_size=6))
def test_every_well_formed_request_is_answered_once_under_its_id(messages: list[Any]) -> None:
    session = fresh(official=False)

    for message in messages:
        said = [json.loads(one) for one in session.receive(text_of(message))]
        replies = [one for one in said if "method" not in one]
        acknowledged = [one for one in said if one.get("method") == "notifications/subscriptions/acknowledged"]

        (answer,) = replies + acknowledged
        if replies:
            assert answer["id"] == message["id"]
