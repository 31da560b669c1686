"""Each revision of the protocol gets what it knows: as our tables say, and as the official types validate."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from mcp_memory.desk import Desk
from mcp_memory.facts import Limits
from mcp_memory.tools.catalog import PROFILES, catalog
from mcp_memory.wire.eras import ERAS, HANDSHAKE, STATELESS, STATELESS_ERAS, STATELESS_VERSIONS
from mcp_memory.wire.offer import MOST_INSTRUCTIONS, Offer
from tests.wire.toy import INSTRUCTIONS, META, SERVER, TOOLS, Client

URI = "memory://knowledge-graph"
OFFERED = {"tools", "resources", "prompts", "logging"}
LATER = {
    "2025-03-26": {"completions"},
    "2025-06-18": {"completions"},
    "2025-11-25": {"completions", "extensions"},
}
STATELESS_ONLY: list[tuple[str, dict[str, Any]]] = [
    ("server/discover", {}),
    ("subscriptions/listen", {"notifications": {}}),
]


def modern() -> Client:
    return Client(version=None)


def test_the_revisions_are_those_of_the_specification() -> None:
    assert tuple(era.version for era in ERAS) == KNOWN_PROTOCOL_VERSIONS
    assert tuple(STATELESS_VERSIONS) == MODERN_PROTOCOL_VERSIONS


# ── shaking hands ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_hands_are_shaken_on_the_revision_asked_for(version: str) -> None:
    result = Client(version=None).result("initialize", protocolVersion=version)

    assert result["protocolVersion"] == version
    assert result["capabilities"].keys() == OFFERED | LATER.get(version, set())
    assert result["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert result["instructions"] == INSTRUCTIONS


def test_what_came_with_a_revision_is_not_offered_before() -> None:
    assert set(LATER) | {"2024-11-05"} == set(HANDSHAKE_PROTOCOL_VERSIONS)


@pytest.mark.parametrize("version", ["2026-07-28", "1999-01-01", "2099-01-01", "", 5, None, {}])
def test_hands_are_shaken_on_the_newest_when_another_is_asked_for(version: Any) -> None:
    assert Client(version=None).result("initialize", protocolVersion=version)["protocolVersion"] == "2025-11-25"


def test_initialize_shakes_hands_even_with_the_envelope_of_the_stateless_revision() -> None:
    result = Client(version=None).result("initialize", protocolVersion="2025-06-18", _meta=META)

    assert result["protocolVersion"] == "2025-06-18"
    assert "resultType" not in result


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("2024-11-05", {"name", "version"}),
        ("2025-03-26", {"name", "version"}),
        ("2025-06-18", {"name", "version", "title"}),
        ("2025-11-25", {"name", "version", "title", "description"}),
    ],
)
def test_a_server_tells_of_itself_what_the_revision_knows(version: str, fields: set[str]) -> None:
    assert Client(version=None).result("initialize", protocolVersion=version)["serverInfo"].keys() == fields


def test_requests_before_the_handshake_are_answered() -> None:
    client = Client(version=None)

    assert client.result("ping") == {}
    assert client.call("names")["structuredContent"] == {"names": []}
    assert client.result("tools/list")["tools"]


def test_instructions_that_cost_too_much_are_refused() -> None:
    with pytest.raises(ValueError, match="instructions"):
        Offer(Client().offer.desk, SERVER, "x" * (MOST_INSTRUCTIONS + 1))


# ── what each revision knows ─────────────────────────────────────────────────────────────────────

BASIC = {"name", "description", "inputSchema"}
SELF_DESCRIBED = {
    "name": "remember",
    "title": "Remember",
    "description": "Keep a name.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": False},
    "execution": {"taskSupport": "forbidden"},
    "outputSchema": {"type": "object"},
}


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("2024-11-05", BASIC),
        ("2025-03-26", BASIC | {"annotations"}),
        ("2025-06-18", BASIC | {"annotations", "title", "outputSchema"}),
        ("2025-11-25", BASIC | {"annotations", "title", "outputSchema", "execution"}),
        ("2026-07-28", BASIC | {"annotations", "title", "outputSchema"}),
    ],
)
def test_a_tool_is_listed_with_the_fields_of_the_revision(version: str, fields: set[str]) -> None:
    client = Client(version=version if version in HANDSHAKE_PROTOCOL_VERSIONS else None)
    special = type("Special", (type(TOOLS["remember"]),), {"wire": lambda self: SELF_DESCRIBED})
    client.offer.desk.tools = {"remember": special(TOOLS["remember"].function)}

    (tool,) = client.result("tools/list", **({} if client.session.shook_hands else {"_meta": META}))["tools"]

    assert tool.keys() == fields


@pytest.mark.parametrize(
    ("version", "of_object", "of_list"),
    [
        ("2024-11-05", False, False),
        ("2025-03-26", False, False),
        ("2025-06-18", True, False),
        ("2025-11-25", True, False),
        ("2026-07-28", True, True),
    ],
)
def test_structured_content_is_sent_where_the_revision_can_carry_it(
    version: str, of_object: bool, of_list: bool
) -> None:
    client = Client(version=version if version in HANDSHAKE_PROTOCOL_VERSIONS else None)
    meta = {} if client.session.shook_hands else {"_meta": META}

    an_object = client.result("tools/call", name="names", **meta)
    a_list = client.result("tools/call", name="count", **meta)

    assert ("structuredContent" in an_object, "structuredContent" in a_list) == (of_object, of_list)
    assert (an_object["content"][0]["text"], a_list["content"][0]["text"]) == ('{"names":[]}', "[0]")


@pytest.mark.parametrize(("version", "has_title"), [("2025-03-26", False), ("2025-06-18", True)])
def test_a_resource_is_listed_with_the_fields_of_the_revision(version: str, has_title: bool) -> None:
    resources = Client(version=version).result("resources/list")["resources"]

    assert resources[0]["uri"] == URI
    assert {("title" in resource) for resource in resources} == {has_title}


def test_each_method_is_there_in_its_revisions_and_in_no_other() -> None:
    shaken, stateless = Client(), modern()
    params: dict[str, dict[str, Any]] = {
        "tools/call": {"name": "names"},
        "subscriptions/listen": {"notifications": {}},
        **{each: {"uri": URI} for each in ("resources/read", "resources/subscribe", "resources/unsubscribe")},
        "logging/setLevel": {"level": "info"},
    }
    for method in sorted(HANDSHAKE | STATELESS):
        (by_hand,) = shaken.send(method, **params.get(method, {}))
        is_known = method in HANDSHAKE
        assert (by_hand.get("error", {}).get("code") == -32601) is not is_known, method
        if method != "initialize":
            (said,) = stateless.send(method, **params.get(method, {}), _meta=META)
            assert (said.get("error", {}).get("code") == -32601) is not (method in STATELESS), method


# ── the official types agree ─────────────────────────────────────────────────────────────────────


def conversation(client: Client, meta: dict[str, Any]) -> list[tuple[str, Any]]:
    """A request of every kind, and its result."""
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {}),
        ("tools/call", {"name": "remember", "arguments": {"name": "Ada", "note": "likes tea"}}),
        ("tools/call", {"name": "remember", "arguments": {}}),
        ("tools/call", {"name": "names"}),
        ("tools/call", {"name": "count"}),
        ("tools/call", {"name": "sing"}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": URI}),
    ]
    return [(method, client.result(method, **params, **meta)) for method, params in kinds]


@pytest.mark.parametrize("official", [False, True])
@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_every_result_with_a_handshake_is_valid(version: str, official: bool) -> None:
    client = Client(version=None, official=official)
    said = [("initialize", client.result("initialize", protocolVersion=version))]
    said += conversation(client, {})
    said += [(m, client.result(m, uri=URI)) for m in ("resources/subscribe", "resources/unsubscribe")]
    said += [("ping", client.result("ping"))]

    for method, result in said:
        methods.validate_server_result(method, version, result)
        if not official:
            assert not {"resultType", "ttlMs", "cacheScope"} & result.keys()


def test_every_stateless_result_is_valid_and_says_who_speaks() -> None:
    client = modern()
    said = [("server/discover", client.result("server/discover", _meta=META)), *conversation(client, {"_meta": META})]

    for method, result in said:
        methods.validate_server_result(method, "2026-07-28", result)
        assert result["resultType"] == "complete"
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"] == SERVER
        assert ("ttlMs" in result) is (method in methods.CACHEABLE_METHODS), method


@pytest.mark.parametrize("profile", PROFILES)
def test_the_tools_we_really_offer_are_valid_in_every_revision(profile: str) -> None:
    desk = Desk(Client().space, catalog(profile), Limits())
    offer = Offer(desk, SERVER, official=profile == "official")

    for era in [*offer.eras.values(), *STATELESS_ERAS.values()]:
        listed = json.loads(offer.standing("tools/list", era))
        methods.validate_server_result("tools/list", era.version, listed)
        assert [tool["name"] for tool in listed["tools"]] == list(desk.tools)


# ── the stateless revision ───────────────────────────────────────────────────────────────────────


def test_discovery_names_the_versions_and_what_is_offered() -> None:
    result = modern().result("server/discover", _meta=META)

    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "extensions": {"io.modelcontextprotocol/skills": {}, "mcp-memory/requestKey": {}},
    }
    assert result["instructions"] == INSTRUCTIONS


@pytest.mark.parametrize("version", ["2025-11-25", "1900-01-01", ""])
def test_an_unsupported_version_is_refused_with_those_that_are(version: str) -> None:
    client = modern()
    supported = client.result("server/discover", _meta=META)["supportedVersions"]

    fault = client.error("tools/list", _meta={**META, "io.modelcontextprotocol/protocolVersion": version})

    assert fault["code"] == -32022
    assert fault["data"] == {"supported": supported, "requested": version}


@pytest.mark.parametrize("key", ["protocolVersion", "clientCapabilities"])
@pytest.mark.parametrize("value", ["missing", None, 5, []])
def test_a_request_must_carry_its_version_and_capabilities(key: str, value: Any) -> None:
    meta = {**META, f"io.modelcontextprotocol/{key}": value}
    if value == "missing":
        del meta[f"io.modelcontextprotocol/{key}"]

    fault = modern().error("tools/list", _meta=meta)

    assert fault["code"] == -32602
    assert f"io.modelcontextprotocol/{key}" in fault["message"]


@pytest.mark.parametrize(("method", "params"), STATELESS_ONLY)
def test_a_stateless_method_without_the_envelope_is_told_what_is_missing(method: str, params: dict[str, Any]) -> None:
    assert modern().error(method, **params)["code"] == -32602
    assert Client().error(method, **params)["code"] == -32601


def test_after_a_stateless_request_the_next_must_carry_the_envelope_too() -> None:
    client = modern()
    client.result("server/discover", _meta=META)

    assert client.error("tools/list")["code"] == -32602
    assert client.result("ping") == {}


def test_both_families_are_served_on_one_connection() -> None:
    client = modern()
    client.result("server/discover", _meta=META)
    client.result("initialize", protocolVersion="2025-06-18")

    assert "resultType" not in client.result("tools/list")
    assert client.result("tools/list", _meta=META)["resultType"] == "complete"


def test_the_encoded_lists_are_made_once_for_each_revision() -> None:
    client = Client(version="2025-03-26")
    offer = client.offer

    first = offer.standing("tools/list", client.session.era)

    assert offer.standing("tools/list", client.session.era) is first
    assert json.loads(first)["tools"] == client.result("tools/list")["tools"]
