"""MCP over HTTP, header by header: who may ask, how it must be asked, and in which way it is answered."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import methods

from mcp_memory.wire.jsonrpc import MOST_BYTES
from tests.wire.network import HELLO, PATIENCE, SIGNALS, Answer, Toy, Web, call, remember, request, running
from tests.wire.toy import META

URI = "memory://knowledge-graph"
TOKEN = "a-token-of-some-length"
MODERN = "2026-07-28"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toy]:
    """A server for tests that do not mind what it keeps."""
    toy = Toy(tmp_path_factory.mktemp("toy"), "http")
    with running(toy):
        yield toy


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Toy]:
    toy = Toy(tmp_path, "http")
    with running(toy):
        yield toy


@pytest.fixture
def web(shared: Toy) -> Iterator[Web]:
    with Web(shared) as web:
        yield web


@pytest.fixture
def session(web: Web) -> Web:
    web.shake_hands()
    return web


def code(answer: Answer) -> int:
    error: int = answer.message["error"]["code"]
    return error


def structured(answer: Answer) -> Any:
    return answer.message["result"]["structuredContent"]


# ── who may ask, and how ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9", "LocalHost", "[::1]:8080"])
def test_this_computer_may_be_called_by_any_of_its_names(web: Web, host: str) -> None:
    assert web.modern("server/discover").status == 200
    assert web.post(request("initialize", **HELLO), Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8080"},
        {"Host": "localhost.evil.example"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "null"},
        {"Origin": "file://localhost"},
        {"Origin": "localhost"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_browser_that_was_led_astray_is_refused(web: Web, method: str, headers: dict[str, str]) -> None:
    assert web.ask(method, request("initialize", **HELLO), **headers).status == 403


@pytest.mark.parametrize("origin", ["http://localhost:5173", "https://127.0.0.1", "http://[::1]:80"])
def test_pages_of_this_computer_may_ask(web: Web, origin: str) -> None:
    assert web.post(request("initialize", **HELLO), Origin=origin).status == 200


def test_other_names_and_pages_can_be_allowed(tmp_path: Path) -> None:
    allowed = ("--allowed-hosts", "memory.example, other.example:81", "--allowed-origins", "https://app.example")
    with running(Toy(tmp_path, "http", *allowed)) as server, Web(server) as web:
        hello = request("initialize", **HELLO)
        assert web.post(hello, Host="memory.example:8080", Origin="https://app.example").status == 200
        assert web.post(hello, Host="other.example:81").status == 200
        assert web.post(hello, Host="other.example:82").status == 403
        assert web.post(hello, Origin="http://app.example").status == 403


@pytest.mark.parametrize("given", [None, "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x"])
def test_without_the_token_nothing_is_answered(tmp_path: Path, given: str | None) -> None:
    with running(Toy(tmp_path, "http", MCP_MEMORY_AUTH_TOKEN=TOKEN)) as server, Web(server) as web:
        refused = web.post(request("initialize", **HELLO), Authorization=given)
        assert refused.status == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert web.post(request("initialize", **HELLO), Authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize("path", ["/", "/mcpx", "/mcp/x", "//mcp"])
def test_there_is_nothing_elsewhere(web: Web, path: str) -> None:
    assert web.ask("POST", request("initialize", **HELLO), path).status == 404


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp?a=b"])
def test_the_address_may_be_written_a_little_differently(web: Web, path: str) -> None:
    assert web.ask("POST", request("initialize", **HELLO), path).status == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
def test_other_methods_are_not_allowed(web: Web, method: str) -> None:
    refused = web.ask(method)

    assert refused.status == 405
    assert refused.headers["allow"] == "POST, GET, DELETE"


@pytest.mark.parametrize(
    "headers",
    [
        {"Content_Type": "text/plain"},
        {"Content_Type": None},
        {"Content_Type": "application/jsonp"},
        {"Content_Encoding": "gzip"},
    ],
)
def test_a_body_must_be_json(web: Web, headers: dict[str, str | None]) -> None:
    assert web.post(request("initialize", **HELLO), **headers).status == 415


def test_json_may_say_its_encoding(web: Web) -> None:
    assert web.post(request("initialize", **HELLO), Content_Type="Application/JSON; charset=utf-8").status == 200


@pytest.mark.parametrize("accept", ["text/html", "image/*"])
def test_an_answer_that_the_client_would_not_take_is_not_given(web: Web, accept: str) -> None:
    assert web.post(request("initialize", **HELLO), Accept=accept).status == 406
    assert web.ask("GET", Accept="application/json").status == 406


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "application/*;q=0.9"])
def test_an_answer_is_json_where_it_can_be(session: Web, accept: str | None) -> None:
    answer = session.post(request("ping"), Accept=accept)

    assert (answer.status, answer.kind) == (200, "application/json")


def test_an_answer_is_an_event_where_the_client_takes_nothing_else(session: Web) -> None:
    answer = session.post(request("ping", 7), Accept="text/event-stream")

    assert answer.is_stream
    assert answer.messages() == [{"jsonrpc": "2.0", "id": 7, "result": {}}]
    assert answer.headers["x-accel-buffering"] == "no"
    assert session.post(request("ping")).status == 200  # on the same connection


def test_a_body_of_the_largest_size_is_served_and_a_larger_one_is_refused(shared: Toy) -> None:
    empty = call("big", "remember", name="n", note="")
    largest = call("big", "remember", name="n", note="x" * (MOST_BYTES - len(empty)))
    assert len(largest) == MOST_BYTES
    with Web(shared) as web:
        web.shake_hands()
        assert structured(web.post(largest)) == {"remembered": "n"}
        assert web.post(largest + b" ").status == 413
    with Web(shared) as web:
        chunks = (b"x" * 65_536 for _ in range(MOST_BYTES // 65_536 + 2))
        web.connection.request("POST", "/mcp", chunks, web.headers, encode_chunked=True)
        assert Answer(web.connection.getresponse()).status == 413


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"jsonrpc":"2.0"}', b"7", b"[]", b'[{"jsonrpc":"2.0"}]'])
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
def test_a_body_that_is_no_message_is_a_bad_request(session: Web, body: bytes, version: str) -> None:
    refused = session.post(body, MCP_Protocol_Version=version)

    assert refused.status == 400
    assert code(refused) in (-32700, -32600)


# ── clients that shake hands ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_client_of_any_revision_gets_a_session(web: Web, version: str) -> None:
    key = web.shake_hands(version)

    assert key.isalnum() and len(key) >= 32
    assert web.headers["MCP-Protocol-Version"] == version
    tools = web.post(request("tools/list")).message["result"]["tools"]
    assert ("title" in tools[0]) == (version >= "2025-06-18")


def test_without_a_version_the_agreed_one_holds(session: Web) -> None:
    assert session.post(request("ping"), MCP_Protocol_Version=None).status == 200


def test_a_version_that_nobody_knows_is_refused(session: Web) -> None:
    for refused in (
        session.post(request("ping"), MCP_Protocol_Version="1999-01-01"),
        session.ask("GET", MCP_Protocol_Version="x", Accept="text/event-stream"),
        session.ask("DELETE", MCP_Protocol_Version="x"),
    ):
        assert refused.status == 400
    assert session.post(request("ping")).status == 200


def test_without_a_session_only_initialize_is_answered(web: Web) -> None:
    for refused in (
        web.post(request("tools/list")),
        web.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'),
        web.ask("GET", Accept="text/event-stream"),
        web.ask("DELETE"),
    ):
        assert refused.status == 400
        assert "Mcp-Session-Id" in refused.message["error"]["message"]


def test_a_session_that_is_not_there_is_not_found(session: Web) -> None:
    for refused in (
        session.post(request("tools/list", 3), Mcp_Session_Id="gone"),
        session.ask("GET", Accept="text/event-stream", Mcp_Session_Id="gone"),
        session.ask("DELETE", Mcp_Session_Id="gone"),
    ):
        assert refused.status == 404


def test_a_session_can_be_ended(session: Web) -> None:
    assert session.ask("DELETE").status == 204

    assert session.post(request("ping")).status == 404
    assert session.ask("DELETE").status == 404


def test_a_handshake_that_failed_begins_nothing(web: Web) -> None:
    answer = web.post(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":7}')

    assert "mcp-session-id" not in answer.headers
    assert code(answer) in (-32600, -32602)


def test_shaking_hands_again_keeps_the_session(session: Web) -> None:
    again = session.post(request("initialize", 9, **{**HELLO, "protocolVersion": "2025-06-18"}))

    assert again.message["result"]["protocolVersion"] == "2025-06-18"
    assert session.post(request("ping")).status == 200


@pytest.mark.parametrize("body", [b'{"jsonrpc":"2.0","method":"x"}', b'{"jsonrpc":"2.0","id":1,"result":{}}'])
def test_what_needs_no_reply_is_accepted(session: Web, body: bytes) -> None:
    answer = session.post(body)

    assert (answer.status, answer.body) == (202, b"")


def test_errors_of_the_protocol_come_with_status_200(session: Web) -> None:
    for method, params, expected in (("nope", {}, -32601), ("tools/call", {"name": "nope"}, -32602)):
        answer = session.post(request(method, **params))
        assert (answer.status, code(answer)) == (200, expected)


def test_batches_are_answered_where_the_revision_has_them(web: Web) -> None:
    web.shake_hands("2025-03-26")
    (count,) = json.loads(web.call("count").message["result"]["content"][0]["text"])
    batch = b"[" + b",".join((remember(1, "batched"), request("ping", 2), call(3, "count"))) + b"]"

    one, two, three = web.post(batch).message

    assert [one["id"], two["id"], three["id"]] == [1, 2, 3]
    assert json.loads(three["result"]["content"][0]["text"]) == [count + 1]
    assert web.post(b'[{"jsonrpc":"2.0","method":"x"}]').status == 202
    assert web.post(b"[" + request("initialize", 1, **HELLO) + b"]").message[0]["error"]["code"] == -32600
    assert web.post(batch, Mcp_Session_Id=None).status == 400


def test_batches_are_refused_where_it_has_none(session: Web) -> None:
    refused = session.post(b"[" + request("ping") + b"]")

    assert (refused.status, code(refused)) == (400, -32600)


def test_the_first_word_of_a_session_may_be_asked_again_while_another_is_open(shared: Toy, session: Web) -> None:
    with Web(shared) as other:
        assert other.shake_hands() != session.headers["Mcp-Session-Id"]


# ── clients that do not ──────────────────────────────────────────────────────────────────────────


def test_a_stateless_request_needs_no_session_and_gets_none(web: Web) -> None:
    answer = web.modern("tools/call", name="count", arguments={})

    assert (answer.status, answer.kind) == (200, "application/json")
    assert "mcp-session-id" not in answer.headers
    methods.validate_server_result("tools/call", MODERN, answer.message["result"])


def test_discovery_tells_the_stateless_revisions(web: Web) -> None:
    result = web.modern("server/discover").message["result"]

    assert result["supportedVersions"] == [MODERN]
    methods.validate_server_result("server/discover", MODERN, result)


def modern(web: Web, body: bytes, **headers: str | None) -> Answer:
    named = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/call", "Mcp_Name": "names"}
    return web.post(body, **{**named, **headers})


NAMES = request("tools/call", 5, name="names", arguments={}, _meta=META)


@pytest.mark.parametrize(
    "headers",
    [
        {"Mcp_Method": None},
        {"Mcp_Method": "tools/list"},
        {"Mcp_Method": "TOOLS/CALL"},
        {"Mcp_Name": None},
        {"Mcp_Name": "other"},
        {"Mcp_Name": "Names"},
        {"Mcp_Name": "=?base64?bmFtZQ==?="},
        {"Mcp_Name": "=?base64?bmFtZXM?="},
        {"Mcp_Name": "=?base64?bmFtZXN?="},
        {"Mcp_Name": "=?BASE64?bmFtZXM=?="},
        {"MCP_Protocol_Version": None},
        {"MCP_Protocol_Version": "2025-11-25"},
        {"MCP_Protocol_Version": "2027-01-01"},
    ],
)
def test_headers_that_say_otherwise_than_the_body_are_refused(web: Web, headers: dict[str, str | None]) -> None:
    refused = modern(web, NAMES, **headers)

    assert (refused.status, code(refused), refused.message["id"]) == (400, -32020, 5)


@pytest.mark.parametrize(
    "headers",
    [
        {"Mcp_Name": "  names\t"},
        {"mcp_name": "names", "Mcp_Name": None},
        {"Mcp_Name": "=?base64?bmFtZXM=?="},
        {"Mcp_Session_Id": "whatever"},
        {"Last_Event_ID": "7"},
    ],
)
def test_headers_may_be_padded_wrapped_or_of_no_meaning(web: Web, headers: dict[str, str | None]) -> None:
    assert modern(web, NAMES, **headers).status == 200


def test_a_resource_is_named_by_its_address(web: Web) -> None:
    assert web.modern("resources/read", uri=URI).status == 200
    body = request("resources/read", uri=URI, _meta=META)
    assert code(modern(web, body, Mcp_Method="resources/read", Mcp_Name="other")) == -32020


def routed(web: Web, arguments: dict[str, Any], **headers: str) -> Answer:
    body = request("tools/call", 6, name="route", arguments=arguments, _meta=META)
    return modern(web, body, Mcp_Method="tools/call", Mcp_Name="route", **headers)


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": "eu"}, {"Mcp_Param_Region": "eu"}),
        ({"region": "eu"}, {"mcp_param_region": " =?base64?ZXU=?= "}),
        ({"region": "=?base64?ZXU="}, {"Mcp_Param_Region": "=?base64?ZXU="}),
        ({"region": "é"}, {"Mcp_Param_Region": "=?base64?w6k=?="}),
        ({"region": ""}, {"Mcp_Param_Region": ""}),
        ({"floor": 42}, {"Mcp_Param_Floor": "42"}),
        ({"floor": 42}, {"Mcp_Param_Floor": "42.0"}),
        ({"open": True}, {"Mcp_Param_Open": "true"}),
        ({"region": "eu", "floor": 0}, {"Mcp_Param_Region": "eu", "Mcp_Param_Floor": "0"}),
    ],
)
def test_a_header_may_say_an_argument_again(web: Web, arguments: dict[str, Any], headers: dict[str, str]) -> None:
    answer = routed(web, arguments, **headers)

    assert answer.status == 200, answer.body
    assert answer.message["result"]["structuredContent"].items() >= arguments.items()


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {}),
        ({}, {"Mcp_Param_Region": "eu"}),
        ({"region": "eu"}, {"Mcp_Param_Region": "us"}),
        ({"region": "eu"}, {"Mcp_Param_Region": "EU"}),
        ({"region": "eu"}, {"Mcp_Param_Region": "=?base64?ZXU?="}),
        ({"region": "eu"}, {"Mcp_Param_Region": "=?base64?ZX!U=?="}),
        ({"floor": 1}, {"Mcp_Param_Floor": "true"}),
        ({"floor": 1}, {"Mcp_Param_Floor": "one"}),
        ({"open": True}, {"Mcp_Param_Open": "1"}),
        ({"region": ["eu"]}, {"Mcp_Param_Region": "eu"}),
    ],
)
def test_a_header_that_says_otherwise_than_its_argument_is_refused(
    web: Web, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    refused = routed(web, arguments, **headers)

    assert (refused.status, code(refused), refused.message["id"]) == (400, -32020, 6)


def test_a_header_sent_twice_is_refused(shared: Toy) -> None:
    with Web(shared) as web:
        web.connection.putrequest("POST", "/mcp")
        headers = {**web.headers, "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "names"}
        for name, value in [*headers.items(), ("Mcp-Name", "names"), ("Content-Length", str(len(NAMES)))]:
            web.connection.putheader(name, value)
        web.connection.endheaders(NAMES)
        assert code(Answer(web.connection.getresponse())) == -32020


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, -32602),
        ({"io.modelcontextprotocol/protocolVersion": MODERN}, -32602),
        ({"io.modelcontextprotocol/clientCapabilities": {}}, -32602),
        ({**META, "io.modelcontextprotocol/protocolVersion": 7}, -32020),
        ({**META, "io.modelcontextprotocol/clientCapabilities": 7}, -32602),
    ],
)
def test_a_stateless_request_must_say_its_version_and_capabilities(
    web: Web, meta: dict[str, Any], expected: int
) -> None:
    refused = modern(web, request("tools/call", 5, name="names", arguments={}, _meta=meta))

    assert (refused.status, code(refused), refused.message["id"]) == (400, expected, 5)


def test_a_version_to_come_is_answered_with_those_there_are(web: Web) -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    refused = modern(
        web, request("server/discover", 5, _meta=meta), MCP_Protocol_Version="2099-01-01", Mcp_Method="server/discover"
    )

    assert (refused.status, code(refused)) == (400, -32022)
    assert refused.message["error"]["data"] == {"supported": [MODERN], "requested": "2099-01-01"}


@pytest.mark.parametrize("method", ["nope", "ping", "initialize", "logging/setLevel", "resources/subscribe"])
def test_a_method_that_the_revision_does_not_have_is_not_found(web: Web, method: str) -> None:
    refused = web.modern(method)

    assert (refused.status, code(refused)) == (404, -32601)


def test_a_tool_or_resource_that_is_not_there_is_a_bad_request(web: Web) -> None:
    assert code(web.modern("tools/call", name="nope", arguments={})) == -32602
    refused = web.modern("resources/read", uri="memory://nope")
    assert (refused.status, code(refused)) == (400, -32602)


def test_what_a_tool_refuses_is_a_result(web: Web) -> None:
    answer = web.modern("tools/call", name="remember", arguments={"name": 7})

    assert answer.status == 200
    assert answer.message["result"]["isError"] is True


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_stateless_revision_has_only_post(web: Web, method: str) -> None:
    refused = web.ask(method, MCP_Protocol_Version=MODERN)

    assert refused.status == 405
    assert refused.headers["allow"] == "POST"


def test_notifications_of_the_stateless_revision_are_accepted(web: Web) -> None:
    assert modern(web, b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}').status == 202


# ── large answers ────────────────────────────────────────────────────────────────────────────────


def test_a_large_answer_goes_out_in_pieces_whole_and_before_what_was_asked_after_it(shared: Toy) -> None:
    with Web(shared) as web:
        web.shake_hands()
        asking = web.connection
        body = call("large", "swell", size=4_000_000)
        head = "".join(f"{name}: {value}\r\n" for name, value in web.headers.items())
        posts = [
            f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}Content-Length: {len(one)}\r\n\r\n".encode() + one
            for one in (body, request("ping", "after"))
        ]
        assert asking.sock is not None
        asking.sock.sendall(b"".join(posts))
        time.sleep(0.2)  # nobody reads meanwhile
        answers = asking.sock.makefile("rb")
        said = []
        for _ in posts:
            while (line := answers.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length: "):
                    size = int(line.split()[1])
            said.append(json.loads(answers.read(size)))

    assert [one["id"] for one in said] == ["large", "after"]
    assert len(said[0]["result"]["structuredContent"]["text"]) == 4_000_000


@pytest.mark.parametrize("size", [20_000, 2_000_000])
def test_a_large_answer_is_packed_for_a_client_that_takes_it(web: Web, size: int) -> None:
    body = request("tools/call", name="swell", arguments={"size": size}, _meta=META)
    named = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/call", "Mcp_Name": "swell"}
    plain = web.post(body, **named)
    answer = web.post(body, **named, Accept_Encoding="br, gzip;q=0.5")

    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "accept-encoding"
    assert gzip.decompress(answer.body) == plain.body
    assert len(answer.body) < len(plain.body) / 10
    assert web.modern("server/discover").status == 200


@pytest.mark.parametrize("accepts", [None, "br", "gzip;q=0", "br, gzip; q=0.0, deflate"])
def test_nothing_is_packed_for_a_client_that_does_not_take_it(web: Web, accepts: str | None) -> None:
    body = request("tools/call", name="swell", arguments={"size": 20_000}, _meta=META)
    answer = web.post(
        body, MCP_Protocol_Version=MODERN, Mcp_Method="tools/call", Mcp_Name="swell", Accept_Encoding=accepts
    )

    assert "content-encoding" not in answer.headers
    assert len(answer.message["result"]["structuredContent"]["text"]) == 20_000


def test_small_answers_are_not_worth_packing(web: Web) -> None:
    web.headers["Accept-Encoding"] = "gzip"

    assert "content-encoding" not in web.modern("server/discover").headers


# ── news ─────────────────────────────────────────────────────────────────────────────────────────


def listening(web: Web, ident: Any, *uris: str) -> Answer:
    answer = web.modern("subscriptions/listen", ident, notifications={"resourceSubscriptions": [*uris]})
    assert answer.is_stream
    return answer


def test_a_listener_is_acknowledged_and_hears_of_every_write(server: Toy) -> None:
    with Web(server) as listener, Web(server) as deaf, Web(server) as writer:
        stream, silent = listening(listener, "s", URI), listening(deaf, 8)
        for heard, ident, honoured in ((stream, "s", {"resourceSubscriptions": [URI]}), (silent, 8, {})):
            ack = heard.event()
            assert ack["method"] == "notifications/subscriptions/acknowledged"
            assert ack["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": ident}
            assert ack["params"]["notifications"] == honoured
        answer = writer.modern("tools/call", name="remember", arguments={"name": "Ada"})
        assert answer.kind == "application/json"

        assert stream.event()["params"] == {"_meta": {"io.modelcontextprotocol/subscriptionId": "s"}, "uri": URI}
        if SIGNALS:
            server.process.send_signal(SIGNALS[0])
            for heard, ident in ((stream, "s"), (silent, 8)):
                (ended,) = heard.messages()
                assert (ended["id"], ended["result"]["resultType"]) == (ident, "complete")
            assert server.ended() == (0, "")


def test_a_listener_that_takes_no_events_is_refused(web: Web) -> None:
    web.headers["Accept"] = "application/json"

    assert web.modern("subscriptions/listen", notifications={}).status == 406


def test_a_session_hears_of_writes_on_its_stream_and_once_of_its_own(server: Toy) -> None:
    update = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": URI}}
    with Web(server) as web, Web(server) as stream, Web(server) as other:
        web.shake_hands()
        other.shake_hands()
        web.post(request("resources/subscribe", uri=URI))
        news = stream.ask("GET", **{n.replace("-", "_"): v for n, v in web.headers.items()})
        assert (news.status, news.is_stream) == (200, True)
        other.call("remember", name="Ada")
        assert news.event() == update
        assert web.call("remember", name="Bob").kind == "application/json"
        assert news.event() == update
        web.post(request("resources/unsubscribe", uri=URI))
        other.call("remember", name="Eve")
        web.ask("DELETE")

        assert news.messages() == []


def test_without_a_stream_news_of_its_own_write_come_before_the_answer(session: Web) -> None:
    session.post(request("resources/subscribe", uri=URI))

    update, reply = session.call("remember", 5, name="Ada").messages()

    assert update["method"] == "notifications/resources/updated"
    assert reply["id"] == 5
    only_json = session.post(remember(6, "Bob"), Accept="application/json")
    assert (only_json.kind, only_json.message["id"]) == ("application/json", 6)


# ── calls that take time ─────────────────────────────────────────────────────────────────────────


def test_progress_comes_as_events_before_the_answer(session: Web) -> None:
    arguments = {"name": "toil", "arguments": {"steps": 2}, "_meta": {"progressToken": "p"}}

    *progress, reply = session.post(request("tools/call", 5, **arguments)).messages()

    assert [note["params"]["progress"] for note in progress] == [1, 2]
    assert reply["result"]["structuredContent"] == {"steps": 2}


def test_without_a_token_for_progress_a_long_call_is_answered_in_json(session: Web) -> None:
    answer = session.call("toil", steps=2)

    assert answer.kind == "application/json"
    assert structured(answer) == {"steps": 2}


def toiling(server: Toy, web: Web) -> Answer:
    """A long call that has begun."""
    answer = web.post(server.toil("long"))
    assert answer.event()["method"] == "notifications/progress"
    return answer


def test_a_long_call_keeps_nobody_waiting_and_can_be_withdrawn(server: Toy) -> None:
    with Web(server) as web, Web(server) as other, Web(server) as stranger:
        web.shake_hands()
        answer = toiling(server, web)
        stranger.shake_hands()
        cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long"}}'
        assert stranger.post(cancel).status == 202  # it has no such request
        assert structured(other.modern("tools/call", name="names", arguments={})) == {"names": []}

        assert other.post(cancel, **{n.replace("-", "_"): v for n, v in web.headers.items()}).status == 202

        assert answer.messages() == []
        assert structured(web.call("names")) == {"names": []}


def test_a_stateless_client_withdraws_a_call_by_going_away(server: Toy) -> None:
    arguments = {"name": "Toil", "steps": 1, "gate": str(server.gate)}
    web = Web(server)
    answer = web.modern("tools/call", "long", meta={"progressToken": 1}, name="toil", arguments=arguments)
    assert answer.event()["method"] == "notifications/progress"

    answer.response.close()
    web.connection.close()

    with Web(server) as other:
        # A call that is withdrawn looks at its gate no more, so opening it late changes nothing.
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            other.modern("server/discover")
        server.gate.touch()
        time.sleep(0.1)
        assert structured(other.modern("tools/call", name="names", arguments={})) == {"names": []}


def test_a_client_with_a_session_may_go_away_and_its_call_is_done(server: Toy) -> None:
    web = Web(server)
    web.shake_hands()
    answer = toiling(server, web)
    answer.response.close()
    web.connection.close()
    server.gate.touch()

    with Web(server) as other:
        until = time.monotonic() + PATIENCE
        while structured(other.modern("tools/call", name="names", arguments={})) != {"names": ["Toil"]}:
            assert time.monotonic() < until
            time.sleep(0.01)


# ── the end ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_a_clean_end(server: Toy, number: int) -> None:
    with Web(server) as web, Web(server) as other, Web(server) as stream:
        web.shake_hands()
        web.call("remember", name="Ada")
        other.shake_hands()
        news = stream.ask("GET", **{n.replace("-", "_"): v for n, v in web.headers.items()})
        long = toiling(server, other)
        server.process.send_signal(number)

        (broken_off,) = long.messages()

        assert "nothing was changed" in broken_off["result"]["content"][0]["text"]
        assert news.messages() == []
        assert server.ended() == (0, "")
        assert server.names() == 1
