"""What a client that listens is told beside the answers: what was left out, what was let go of, and that it waits."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.errand import Turns
from mcp_memory.space import Space
from mcp_memory.stores.store import Retention
from mcp_memory.tools import exchange
from mcp_memory.tools.catalog import catalog
from tests.conftest import person
from tests.peers import Peer
from tests.wire.network import SETTINGS, Web, real, running
from tests.wire.toy import META, Client

MESSAGE = "notifications/message"
LEVEL = "io.modelcontextprotocol/logLevel"
ADA = {"type": "entity", "name": "Ada", "entityType": "Person", "observations": ["tea"]}
LOST = {"type": "relation", "from": "Ada", "to": "Nobody", "relationType": "knows"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file with a line that is none, and a relation to nobody."""
    file = tmp_path / "other.jsonl"
    file.write_text(f"{json.dumps(ADA)}\nno record\n{json.dumps(LOST)}\n", encoding="utf-8")
    return file


def logged(messages: list[Any]) -> list[tuple[str, str]]:
    return [(one["params"]["level"], one["params"]["data"]) for one in messages if one.get("method") == MESSAGE]


def check_told_of_what_was_left_out(messages: list[Any], source: Path) -> None:
    *said, reply = messages
    assert reply["result"]["structuredContent"]["skipped"] == 2
    second, third, all_of_them = logged(said)
    assert second[0] == third[0] == all_of_them[0] == "warning"
    assert second[1].startswith("line 2 was not imported: ")
    assert third[1].startswith("line 3 was not imported: ") and "Nobody" in third[1]
    assert all_of_them[1] == f"2 lines were not imported; they are kept in {source}.quarantine"


# ── the real server ──────────────────────────────────────────────────────────────────────────────


def test_over_stdio_a_client_is_told_what_an_import_left_out(tmp_path: Path, source: Path) -> None:
    file, settings = str(tmp_path / "memory.db"), str(SETTINGS)
    command = [sys.executable, "-m", "mcp_memory", "-f", file, "--roots", str(tmp_path), "--settings", settings]
    migrate = {"name": "migrate", "arguments": {"source_path": str(source)}}
    with Peer(command) as peer:
        peer.initialize()
        check_told_of_what_was_left_out(peer.exchange("tools/call", migrate), source)
        peer.request("logging/setLevel", {"level": "error"})
        assert logged(peer.exchange("tools/call", migrate)) == []


def test_over_http_a_client_is_told_if_its_request_wants_it(tmp_path: Path, source: Path) -> None:
    migrate: dict[str, Any] = {"name": "migrate", "arguments": {"source_path": str(source)}}
    with running(real(tmp_path / "memory.db", "http", "--roots", str(tmp_path))) as server, Web(server) as web:
        wanted = web.modern("tools/call", meta={LEVEL: "info"}, **migrate)
        check_told_of_what_was_left_out(wanted.messages(), source)
        assert logged(web.modern("tools/call", **migrate).messages()) == []
        web.shake_hands()
        check_told_of_what_was_left_out(web.call("migrate", source_path=str(source)).messages(), source)


# ── what is said ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def space(tmp_path: Path) -> Iterator[Space]:
    space = open_space(
        tmp_path / "memory.db",
        roots=(str(tmp_path),),
        model="none",
        retention=Retention(calls=1),
        heavy=Turns(1, 0.05),
    )
    yield space
    assert [finding.text for finding in space.check()] == []
    space.close()


def make(client: Client, tool: str, **arguments: Any) -> list[Any]:
    """Everything that a call is answered with, now or when its worker is done."""
    client.sent.clear()
    return client.send("tools/call", name=tool, arguments=arguments) or client.wait()


def test_of_many_lines_the_first_are_told_and_all_are_counted(
    space: Space, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "MOST_TOLD", 1)

    first, *rest = logged(make(Client(tools=catalog(), space=space), "migrate", source_path=str(source)))

    assert first[1].startswith("line 2 ")
    assert [text.split(";")[0] for _, text in rest] == ["2 lines were not imported"]


def test_what_a_stored_text_holds_steers_no_screen(space: Space, source: Path) -> None:
    evil = {**LOST, "to": "\x1b[2J\u202eevil"}
    source.write_text(f"{json.dumps(ADA)}\n{json.dumps(evil)}\n", encoding="utf-8")

    (_, text), _ = logged(make(Client(tools=catalog(), space=space), "migrate", source_path=str(source)))

    assert "evil" in text and "\x1b" not in text and "\u202e" not in text


def test_compacting_tells_what_it_let_go_of(space: Space) -> None:
    client = Client(tools=catalog(), space=space)
    for name in ("Ada", "Bob", "Eve"):
        client.call("create_entities", entities=[person(name, "tea")])
        space.settle()

    *said, reply = make(client, "compact")

    dropped = reply["result"]["structuredContent"]["historyDropped"]
    about_size, about_history = logged(said)
    assert about_size[0] == "info" and about_size[1].startswith("compacted: ")
    until = f"the history of {dropped['calls']} calls, until {dropped['until']}, is kept no longer"
    assert about_history == ("notice", until)


def test_who_waits_for_another_heavy_call_is_told(space: Space) -> None:
    client = Client(tools=catalog(), space=space)
    with space.heavy:
        *said, reply = make(client, "find_split_candidates")

    assert logged(said) == [("info", "waiting for another heavy call to end, for 0.05 s at most")]
    assert reply["result"]["isError"]
    assert logged(make(client, "find_split_candidates")) == []


@pytest.mark.parametrize(("wanted", "count"), [("debug", 1), ("notice", 0)])
def test_a_request_without_a_handshake_says_itself_what_it_wants_to_hear(space: Space, wanted: str, count: int) -> None:
    client = Client(tools=catalog(), space=space, version=None)
    with space.heavy:
        said = client.send("tools/call", name="find_split_candidates", arguments={}, _meta={**META, LEVEL: wanted})

    assert len(logged(said)) == count
