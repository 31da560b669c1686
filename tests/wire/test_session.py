"""What a session answers to each line: requests, notifications, nonsense, ids of every kind, batches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_memory.wire.jsonrpc import MOST_BYTES
from mcp_memory.wire.lines import Lines, TooLong
from mcp_memory.wire.methods import HANDLERS
from tests.wire.toy import META, Client


@pytest.fixture
def client() -> Client:
    return Client()


def error_of(said: list[Any]) -> tuple[int, Any]:
    """Code and id of the one error that was said."""
    (only,) = said
    return only["error"]["code"], only["id"]


# ── tools ────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_is_told_twice_as_text_and_as_an_object(client: Client) -> None:
    client.call("remember", name='Ada "the first" \\ ünï')

    result = client.call("names")

    assert result["structuredContent"] == {"names": ['Ada "the first" \\ ünï']}
    assert result["content"] == [
        {"type": "text", "text": json.dumps(result["structuredContent"], ensure_ascii=False, separators=(",", ":"))}
    ]
    assert "isError" not in result


def test_an_answer_with_words_of_its_own_keeps_them(client: Client) -> None:
    result = client.call("sing")

    assert result["content"][0]["text"] == "la la"
    assert result["structuredContent"] == {"notes": 2}


def test_a_refused_call_is_an_error_of_the_tool_and_not_of_the_protocol(client: Client) -> None:
    result = client.call("remember", name="")

    assert result["isError"] is True
    assert json.loads(result["content"][0]["text"])["error"].startswith("The name must have")
    assert "structuredContent" not in result


@pytest.mark.parametrize("arguments", [[], "text", 5, {"name": 5}, {}])
def test_arguments_of_the_wrong_kind_are_an_error_of_the_tool(client: Client, arguments: Any) -> None:
    assert client.result("tools/call", name="remember", arguments=arguments)["isError"] is True
    assert client.names() == []


def test_arguments_may_be_missing_or_null(client: Client) -> None:
    assert client.result("tools/call", name="names")["structuredContent"] == {"names": []}
    assert client.result("tools/call", name="names", arguments=None)["structuredContent"] == {"names": []}


def test_an_unknown_tool_is_an_error_of_the_protocol(client: Client) -> None:
    fault = client.error("tools/call", name="forget_me")

    assert fault["code"] == -32602
    assert "forget_me" in fault["message"]


@pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": None}, {"name": ["names"]}])
def test_a_call_without_a_name_is_an_error_of_the_protocol(client: Client, params: dict[str, Any]) -> None:
    assert client.error("tools/call", **params)["code"] == -32602


def test_tools_are_listed_in_a_fixed_order_with_all_that_is_known_of_them(client: Client) -> None:
    tools = client.result("tools/list")["tools"]

    assert [tool["name"] for tool in tools] == list(client.offer.desk.tools)
    assert tools[0] == {
        "name": "remember",
        "title": "Remember",
        "description": "Keep a name.",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "note": {"type": "string"}},
            "required": ["name"],
        },
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": False,
        },
    }


def test_a_tool_may_describe_itself_and_may_have_a_second_name(client: Client) -> None:
    tool = client.offer.desk.tools["names"]
    special = type(
        "Special", (type(tool),), {"wire": lambda self: {"name": "names", "inputSchema": {"type": "object"}}}
    )
    client.offer.desk.tools = {"names": special(tool.function), "names_tool": tool}

    assert client.result("tools/list")["tools"] == [{"name": "names", "inputSchema": {"type": "object"}}]
    assert client.call("names_tool")["structuredContent"] == {"names": []}


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "ident", ["0", "-7", "1.50", "1e3", "123456789012345678901234567890", '""', '"a\\u0062\\"c"', '"ключ"']
)
def test_an_id_comes_back_as_the_bytes_it_was(client: Client, ident: str) -> None:
    said = client.session.receive(f'{{"jsonrpc":"2.0","id": {ident} ,"method":"ping"}}'.encode())

    assert said == [f'{{"jsonrpc":"2.0","id":{ident},"result":{{}}}}'.encode()]


@pytest.mark.parametrize("ident", ["null", "true", "false", "[1]", '{"a":1}'])
def test_an_id_that_is_no_string_and_no_number_is_refused(client: Client, ident: str) -> None:
    said = client.line(f'{{"jsonrpc":"2.0","id":{ident},"method":"ping"}}')

    assert error_of(said) == (-32600, None)


# ── lines that are no requests ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("line", ["", " ", "\r", "\t \r"])
def test_a_blank_line_is_nothing(client: Client, line: str) -> None:
    assert client.line(line) == []


@pytest.mark.parametrize(
    ("line", "code", "ident"),
    [
        ("nonsense", -32700, None),
        ('{"jsonrpc":"2.0","id":1,"method":"ping"', -32700, None),
        ('{"jsonrpc":"2.0","id":1,"method":"ping"}}', -32700, None),
        ('{"jsonrpc":"2.0","id":"x","method":"ping","params":{"a":"\\ud800"}}', -32700, "x"),
        # The examples of the JSON-RPC specification that are cut off, or are two values.
        ('{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', -32700, None),
        (
            '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"',
            -32700,
            None,
        ),
        ("[1,2", -32700, None),
        ("12 34", -32700, None),
        ('"text', -32700, None),
        ("tru", -32700, None),
        ("[" * 100_000, -32700, None),
        ("5", -32600, None),
        ('"text"', -32600, None),
        ("null", -32600, None),
        ("{}", -32600, None),
        ('{"id":1,"method":"ping"}', -32600, 1),
        ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
        ('{"jsonrpc":"2.0","id":1}', -32600, 1),
        ('{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
        ('{"jsonrpc":"2.0","method":null}', -32600, None),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602, 1),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', -32602, 1),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":5}}', -32602, 1),
        ('{"jsonrpc":"2.0","id":1,"method":"roots/list"}', -32601, 1),
        ('{"jsonrpc":"2.0","id":1,"method":""}', -32601, 1),
    ],
)
def test_what_is_no_request_gets_the_error_of_the_specification(
    client: Client, line: str, code: int, ident: Any
) -> None:
    assert error_of(client.line(line)) == (code, ident)


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        '{"jsonrpc":"2.0","method":"notifications/unheard_of","params":{"x":1}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
        '{"jsonrpc":"2.0","method":"x","params":[]}',
        '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"remember","arguments":{"name":"Ada"}}}',
        '{"jsonrpc":"2.0","id":1,"result":{}}',
        '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
    ],
)
def test_notifications_and_answers_are_not_answered(client: Client, line: str) -> None:
    assert client.line(line) == []
    assert client.names() == []


def test_a_carriage_return_and_a_byte_order_mark_do_no_harm(client: Client) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'

    assert client.line(line + b"\r")[0]["result"] == {}
    assert client.line(b"\xef\xbb\xbf" + line)[0]["result"] == {}


def test_invalid_utf8_is_told_with_the_id(client: Client) -> None:
    said = client.line(
        b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"remember","arguments":{"name":"\xff"}}}'
    )

    assert error_of(said) == (-32700, 4)
    assert client.names() == []


@pytest.mark.parametrize("where", ["arguments", "name", "_meta", "other"])
def test_json_ten_thousand_levels_deep_is_refused_and_the_session_lives(client: Client, where: str) -> None:
    deep = "[" * 10_000 + "]" * 10_000
    said = client.line(f'{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"{where}":{deep}}}}}')

    assert error_of(said) == (-32700, 3)
    assert client.result("ping") == {}


def test_a_line_over_the_limit_is_refused_with_its_id_and_the_session_lives(client: Client) -> None:
    begun = b'{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"x":"'
    splitter = Lines()
    found = splitter.feed(begun)
    while not found:
        found = splitter.feed(b"x" * 1_000_000 + (b'"}}\n' if splitter._size > MOST_BYTES else b""))
    (too_long,) = found
    assert isinstance(too_long, TooLong)

    (said,) = client.session.refuse(too_long)

    assert error_of([json.loads(said)]) == (-32600, "big")
    assert "16 MiB" in json.loads(said)["error"]["message"]
    assert client.result("ping") == {}


def test_a_large_line_under_the_limit_is_served(client: Client) -> None:
    result = client.call("remember", name="big", note="x" * 4_000_000)

    assert result["structuredContent"] == {"remembered": "big"}


def test_a_failure_inside_is_an_error_with_the_id_and_no_trace(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(client.space, "call", lambda *_, **__: 1 / 0)

    fault = client.error("resources/read", uri="memory://knowledge-graph")

    assert fault["code"] == -32603
    assert "division" not in fault["message"]
    assert "ZeroDivisionError" in caplog.text


TOO_LARGE = "1e999"  # a number in JSON, and in no float


@pytest.mark.parametrize("method", sorted(HANDLERS))
def test_a_number_that_no_float_can_hold_is_no_harm(client: Client, method: str) -> None:
    meta = json.dumps(META)[1:-1]
    for params in (f'{{"x":{TOO_LARGE}}}', f'{{"_meta":{{{meta},"io.modelcontextprotocol/clientInfo":{TOO_LARGE}}}}}'):
        for ident in ("1", TOO_LARGE):
            (said,) = client.session.receive(
                f'{{"jsonrpc":"2.0","id":{ident},"method":"{method}","params":{params}}}'.encode()
            )
            assert f'"id":{ident},'.encode() in said
            assert b"-32603" not in said


def test_withdrawing_what_cannot_be_an_id_is_ignored(client: Client) -> None:
    params = f'{{"requestId":{TOO_LARGE}}}'

    assert client.line(f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}') == []


# ── batches ──────────────────────────────────────────────────────────────────────────────────────


def batch(*messages: Any) -> str:
    return json.dumps(list(messages))


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NOTICE = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def remembering(name: str, ident: int) -> dict[str, Any]:
    params = {"name": "remember", "arguments": {"name": name}}
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}


def test_a_batch_is_answered_in_one_where_the_revision_has_batches() -> None:
    client = Client(version="2025-03-26")
    initialize = {"jsonrpc": "2.0", "id": 4, "method": "initialize", "params": {}}

    (said,) = client.line(batch(PING, NOTICE, remembering("Ada", 2), remembering("Bob", 3), 5, initialize, [PING]))

    assert [one["id"] for one in said] == [1, 2, 3, None, 4, None]
    assert [one.get("error", {}).get("code") for one in said] == [None, None, None, -32600, -32600, -32600]
    assert client.names() == ["Ada", "Bob"]


def test_a_batch_that_is_cut_off_or_holds_no_messages_is_told_so_as_the_specification_has_it() -> None:
    client = Client(version="2025-03-26")
    cut = '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"'

    assert error_of(client.line(cut)) == (-32700, None)
    assert error_of(client.line("[]")) == (-32600, None)
    (said,) = client.line("[1,2,3]")
    assert [(each["error"]["code"], each["id"]) for each in said] == [(-32600, None)] * 3


def test_a_batch_of_notifications_is_not_answered_and_an_empty_one_is_refused() -> None:
    client = Client(version="2025-03-26")

    assert client.line(batch(NOTICE, NOTICE)) == []
    assert error_of(client.line("[]")) == (-32600, None)


def test_notices_of_a_batch_come_before_its_answer() -> None:
    client = Client(version="2025-03-26")
    client.result("resources/subscribe", uri="memory://knowledge-graph")

    notice, said = client.line(batch(remembering("Ada", 2), PING))

    assert notice["method"] == "notifications/resources/updated"
    assert [one["id"] for one in said] == [2, 1]


def test_a_long_call_in_a_batch_is_answered_in_it() -> None:
    client = Client(version="2025-03-26")
    toil = {"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "toil"}}

    (said,) = client.line(batch(toil, PING))

    assert said[0]["result"]["content"][0]["text"] == '{"steps":3}'
    assert said[1]["id"] == 1


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_is_refused_as_a_whole_where_the_revision_has_none(version: str | None) -> None:
    client = Client(version=version)

    assert error_of(client.line(batch(PING, remembering("Ada", 2)))) == (-32600, None)
    assert client.names() == []


# ── who asks ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("info", "origin"),
    [
        ({"name": "claude-code", "version": "2.1.317"}, "claude-code/2.1.317 test"),
        ({"name": "x" * 500, "version": "1"}, "x" * 200 + " test"),
        ({"name": "bare"}, "bare test"),
        ({"name": 5}, "test"),
        (None, "test"),
    ],
)
def test_what_changed_is_signed_with_the_client_and_the_transport(info: Any, origin: str) -> None:
    client = Client(version=None)
    client.result("initialize", protocolVersion="2025-11-25", clientInfo=info)
    client.call("remember", name="Ada")

    assert [entry.origin for entry in client.space.store.feed() or ()] == [origin]


def test_a_stateless_request_signs_for_itself() -> None:
    client = Client(version=None)
    other = {**META, "io.modelcontextprotocol/clientInfo": {"name": "other", "version": "2"}}
    for meta, name in ((META, "Ada"), (other, "Bob"), (META, "Cyd")):
        client.result("tools/call", name="remember", arguments={"name": name}, _meta=meta)

    signed = [entry.origin for entry in client.space.store.feed() or ()]
    assert signed == ["modern/9 test", "other/2 test", "modern/9 test"]
