"""Every change knows who made it: the client's name and version, and how it came in."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mcp_memory import __version__
from mcp_memory.assembly import open_space
from mcp_memory.server import main, user
from mcp_memory.space import Space
from tests.conftest import Caller
from tests.crash.harness import Refused, Server
from tests.wire.network import Line, Web, call, real, running


def authors(path: Path) -> list[str]:
    space = open_space(path)
    try:
        return [call["by"] for call in Caller(space)("history")["calls"]]
    finally:
        space.close()


def test_a_client_over_stdio_is_named_with_its_version_its_user_and_its_process(tmp_path: Path) -> None:
    with Server(tmp_path / "memory.db") as server:
        server.call("create_entities", entities=[{"name": "Ada"}])
        server.close()

    (author,) = authors(tmp_path / "memory.db")
    name, transport, _, who, process = author.split(" ")
    assert "/" in name and (transport, who) == ("stdio", user()) and len(process) == 6


def test_one_window_does_not_take_back_the_call_of_another_unasked(tmp_path: Path) -> None:
    with Server(tmp_path / "memory.db") as one, Server(tmp_path / "memory.db") as other:
        one.call("create_entities", entities=[{"name": "Ada"}])
        with pytest.raises(Refused, match=r"not by you. .* call: 1"):
            other.call("undo")
        assert other.call("undo", call=1)["undone"][0]["did"] == ["created Ada (Generic)"]
        assert other.call("undo")["undone"][0]["tool"] == "undo"
        one.close()
        other.close()

    assert len(set(authors(tmp_path / "memory.db"))) == 2


def test_an_import_by_the_command_is_told_with_its_version_and_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_MEMORY_SETTINGS", os.devnull)
    (tmp_path / "one.jsonl").write_text('{"type":"entity","name":"Ada","entityType":"t","observations":[]}')

    assert main(["-f", str(tmp_path / "memory.db"), "import", str(tmp_path / "one.jsonl")]) == 0

    assert authors(tmp_path / "memory.db") == [f"mcp-memory/{__version__} import as {user()}"]


def test_a_client_over_tcp_is_told_by_its_address(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with running(real(path, "tcp")) as server, Line(server) as line:
        assert "error" not in line.ask(call("one", "create_entities", entities=[{"name": "Ada"}]))

    assert authors(path) == ["tcp 127.0.0.1"]


def test_a_client_over_http_is_told_by_its_name_and_address(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with running(real(path, "http")) as server, Web(server) as web:
        web.shake_hands()
        assert web.call("create_entities", entities=[{"name": "Ada"}]).status == 200
        assert web.modern("tools/call", name="create_entities", arguments={"entities": [{"name": "Bob"}]}).status == 200

    second, first = authors(path)
    assert first == "raw/1 http 127.0.0.1"
    assert second.endswith("http 127.0.0.1")


def test_who_made_a_call_can_be_searched_for(sqlite_space: Space) -> None:
    caller = Caller(sqlite_space)
    create = caller.desk.tools["create_entities"]
    for origin, name in (("claude/1.0 stdio", "Ada"), ("cursor/2.1 http as team", "Bob")):
        body = json.dumps({"entities": [{"name": name}]}).encode()
        assert not caller.desk.call(create, body, origin=origin).is_error

    found = caller("history", by="CURSOR")["calls"]

    assert [(one["by"], one["did"]) for one in found] == [("cursor/2.1 http as team", ["created Bob (Generic)"])]
    assert len(caller("history", by="team")["calls"]) == 1
    assert caller("history", by="nobody")["calls"] == []
