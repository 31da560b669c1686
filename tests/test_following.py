"""A settings file that chooses other tools while servers run: clients are told, and are offered them at once."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import person
from tests.peers import Peer
from tests.wire.network import Server, Web, request, running
from tests.wire.toy import META

CHANGED = "notifications/tools/list_changed"
RESOURCES, PROMPTS = "notifications/resources/list_changed", "notifications/prompts/list_changed"  # told with it
PATIENCE = 60


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "settings.toml"
    file.write_text('profile = "full"\n', encoding="utf-8")
    return file


@pytest.fixture
def peer(tmp_path: Path, settings: Path) -> Iterator[Peer]:
    command = [sys.executable, "-m", "mcp_memory", "-f", str(tmp_path / "memory.db"), "--settings", str(settings)]
    with Peer(command) as peer:
        peer.initialize()
        assert len(tools(peer)) > 30
        yield peer


def tools(peer: Peer) -> list[str]:
    peer.send(request("tools/list", "tools"))
    return [tool["name"] for tool in peer.receive()["result"]["tools"]]


def write(file: Path, text: str) -> None:
    """In one step, as editors do: a server never reads half a file."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, file)


def test_a_client_over_stdio_hears_of_another_profile_and_gets_it(peer: Peer, settings: Path) -> None:
    write(settings, 'profile = "core"\n')

    assert [peer.receive()["method"] for _ in range(2)] == [CHANGED, RESOURCES]
    assert len(tools(peer)) == 13 and "consolidation_report" not in tools(peer)
    peer.send(request("tools/call", 9, name="consolidation_report", arguments={}))
    assert peer.receive()["error"]["code"] == -32602

    write(settings, 'read_only = true\ntools = ["recall", "remember"]\n')
    assert [peer.receive()["method"] for _ in range(3)] == [CHANGED, PROMPTS, RESOURCES]
    assert "read_graph" in tools(peer) and "create_entities" not in tools(peer)
    peer.send(request("prompts/list", "prompts"))
    assert peer.receive()["result"]["prompts"] == []
    peer.send(request("server/discover", "who", _meta=META))
    assert "Save" not in peer.receive()["result"]["instructions"]

    settings.unlink()
    write(settings, "")
    assert [peer.receive()["method"] for _ in range(3)] == [CHANGED, PROMPTS, RESOURCES]
    assert len(tools(peer)) > 30


def test_a_file_that_chooses_nothing_new_or_nonsense_changes_nothing(peer: Peer, settings: Path) -> None:
    for nonsense in ('profile = "none"\n', "profile =\n", 'tools = ["nothing"]\n', 'profile = "official"\n'):
        write(settings, nonsense)
        time.sleep(1.5)
    write(settings, 'tools = ["recall"]\n')

    # The first that it hears of.
    assert [peer.receive()["method"] for _ in range(3)] == [CHANGED, PROMPTS, RESOURCES]
    assert "read_graph" in tools(peer)


def test_listeners_over_http_hear_of_it(tmp_path: Path, settings: Path) -> None:
    listening = ["-m", "mcp_memory", "-f", str(tmp_path / "memory.db"), "--transport", "http"]
    server = Server(*listening, "--settings", str(settings))
    with running(server), Web(server) as web, Web(server) as other:
        web.modern("tools/call", name="create_entities", arguments={"entities": [person("Ada")]})
        stream = other.modern("subscriptions/listen", "s", notifications={"toolsListChanged": True})
        assert stream.event()["method"] == "notifications/subscriptions/acknowledged"
        write(settings, 'profile = "core"\n')

        assert stream.event()["method"] == CHANGED
        listed: list[Any] = web.modern("tools/list").message["result"]["tools"]
        assert len(listed) == 13
