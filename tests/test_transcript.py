"""A whole memory with its history goes through a text file and comes out the same, or not at all."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.conversion import export_memory
from mcp_memory.errand import Errand
from mcp_memory.facts import MemoryFault
from mcp_memory.server import main
from mcp_memory.space import Space
from mcp_memory.stores.store import Retention
from tests.conftest import Caller, Refused, link, person
from tests.test_undo import facts


@pytest.fixture
def lived(sqlite_space: Space) -> Space:
    """A memory with a past: every kind of thing that can happen, and an undo."""
    call = Caller(sqlite_space)
    call("create_entities", entities=[person("Ada", "likes tea", "plays chess"), person("Bob", "tall"), person("名前")])
    call("create_relations", relations=[link("Ada", "contiene", "Bob"), link("Bob", "knows", "名前")])
    call("add_observations", name="Ada", observations=["likes coffee"], kind="milestone", supersedes="likes tea")
    call("end_relation", relation_id=3)
    call("add_reflection", target_type="entity", content="good company", target_id=1)
    call("merge_entities", source="Bob", target="Ada")
    call("delete_entities", entityNames=["名前"])
    call("undo")
    return sqlite_space


@pytest.fixture
def transcript(lived: Space, tmp_path: Path) -> Path:
    path = tmp_path / "all.mcphistory"
    export_memory(lived, str(path), Errand())
    return path


def empty(tmp_path: Path, name: str = "other.db") -> tuple[Space, Caller]:
    space = open_space(tmp_path / name, roots=(str(tmp_path),))
    return space, Caller(space)


def told(call: Caller) -> Any:
    return call("history", limit=200)["calls"]


def test_facts_and_history_come_out_as_they_went_in(lived: Space, transcript: Path, tmp_path: Path) -> None:
    other, call = empty(tmp_path)

    answer = call("migrate", source_path=str(transcript))

    assert answer["history_entries"] == 8
    assert facts(other.graph()) == facts(lived.graph())
    assert told(call) == told(Caller(lived))
    assert call("undo", call=8)["undone"][0]["tool"] == "undo"
    assert call("read_graph", asOf="6") == Caller(lived)("read_graph", asOf="6")
    assert [finding.text for finding in other.check()] == []
    other.close()


def test_a_history_that_was_shortened_keeps_its_beginning(lived: Space, tmp_path: Path) -> None:
    lived.retention = Retention(calls=2)
    Caller(lived)("compact")
    export_memory(lived, str(tmp_path / "short.mcphistory"), Errand())
    other, call = empty(tmp_path)
    call("migrate", source_path=str(tmp_path / "short.mcphistory"))

    assert facts(other.graph()) == facts(lived.graph())
    assert [one["call"] for one in told(call)] == [8, 7]
    assert "begins after call 6" in call.refusal("read_graph", asOf="5")
    assert [finding.text for finding in other.check()] == []
    other.close()


def test_a_memory_that_knows_something_takes_the_facts_and_keeps_its_own_history(
    transcript: Path, tmp_path: Path
) -> None:
    other, call = empty(tmp_path)
    call("create_entities", entities=[person("Eve")])

    assert "history_entries" not in call("migrate", source_path=str(transcript))

    assert {one["name"] for one in call("read_graph")["entities"]} == {"Eve", "Ada", "名前"}
    assert [one["tool"] for one in told(call)] == ["migrate", "create_entities"]
    other.close()


def test_a_plain_file_takes_the_facts(transcript: Path, tmp_path: Path) -> None:
    other, call = empty(tmp_path, "other.jsonl")

    assert call("migrate", source_path=str(transcript))["not_held"]["reflections"] == 1
    assert {one["name"] for one in call("read_graph")["entities"]} == {"Ada", "名前"}
    other.close()


def resealed(lines: list[bytes]) -> bytes:
    """Altered lines, with an end that fits them."""
    body = b"".join(lines)
    end = {"entries": len(lines) - 1, "sha256": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(end).encode() + b"\n"


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda lines: b"".join(lines[:-1]), "not complete"),
        (lambda lines: b"".join(lines)[:-40], "not complete"),
        (lambda lines: b"".join(lines).replace(b"chess", b"chexx"), "altered or cut"),
        (lambda lines: resealed([lines[0], *lines[2:-1]]), "cannot be replayed"),
        (lambda lines: resealed([*lines[:2], *lines[3:-1]]), "cannot be replayed"),
        (lambda lines: resealed([*lines[:-1], lines[1].replace(b'"seq":1', b'"seq":9')]), "not in order|replayed"),
        (
            lambda lines: resealed([*lines[:3], lines[3].replace(b"likes tea", b"likes rum"), *lines[4:-1]]),
            "what stood before is told wrongly",
        ),
        (lambda lines: resealed([lines[0], b"[" * 5000 + b"\n"]), "line 2 is no entry"),
        (lambda lines: lines[0].replace(b'"version":1', b'"version":7'), "knows up to 1"),
    ],
)
def test_what_is_not_whole_and_in_order_changes_nothing(
    damage: Any, complaint: str, transcript: Path, tmp_path: Path
) -> None:
    transcript.write_bytes(damage(transcript.read_bytes().splitlines(keepends=True)))
    other, call = empty(tmp_path)

    with pytest.raises(Refused, match=complaint):
        call("migrate", source_path=str(transcript))

    assert other.graph().seq == 0
    other.close()


def test_formats_without_history_and_names_that_are_taken_are_refused(tmp_path: Path) -> None:
    space, call = empty(tmp_path, "plain.jsonl")
    call("create_entities", entities=[person("Ada")])
    with pytest.raises(MemoryFault, match="keeps no history"):
        export_memory(space, str(tmp_path / "plain.mcphistory"), Errand())
    space.close()
    assert not (tmp_path / "plain.mcphistory").exists()


def test_the_commands_take_a_transcript_and_a_server_does_not_serve_one(
    transcript: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "settings.toml").write_text("")
    monkeypatch.setenv("MCP_MEMORY_SETTINGS", str(tmp_path / "settings.toml"))

    assert main(["-f", str(tmp_path / "new.db"), "import", str(transcript)]) == 0
    assert main(["-f", str(tmp_path / "new.db"), "export", str(tmp_path / "again.mcphistory")]) == 0
    assert "history_entries" in capsys.readouterr().out
    assert (tmp_path / "again.mcphistory").read_bytes() == transcript.read_bytes()
    assert main(["-f", str(transcript), "stats"]) == 1
    assert "not a memory to work with" in capsys.readouterr().err
