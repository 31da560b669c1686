"""Memories that earlier versions left, closed or killed, open today: every fact is there, the history begins where
theirs did, searches go on from their usage, and the doctor finds nothing (how they were made: `make.py`)."""

from __future__ import annotations

import json
import shutil
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.server import main
from mcp_memory.space import Space
from tests.conftest import Caller, person
from tests.test_undo import facts

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.gz"))


@cache
def told(archive: Path) -> dict[str, Any]:
    """What that version said about its files in the end."""
    with tarfile.open(archive) as tar:
        member = tar.extractfile("told.json")
        assert member is not None
        found: dict[str, Any] = json.load(member)
        return found


FILES = [(archive, name) for archive in ARCHIVES for name in told(archive)]
# Flags come behind the reply: what was told then may have been without them yet.
LATER = {"similarity_flag", "flags_pending"}
DATABASES = [(archive, name) for archive, name in FILES if name.endswith(".db")]


def ids(files: list[tuple[Path, str]]) -> list[str]:
    return [f"{archive.name.removesuffix('.tar.gz')}-{name}" for archive, name in files]


def unpacked(archive: Path, name: str, folder: Path) -> Path:
    """A memory as it was left, with everything that lay beside it."""
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.name.startswith(name):
                with open(folder / member.name, "wb") as file:
                    source = tar.extractfile(member)
                    assert source is not None
                    shutil.copyfileobj(source, file)
    return folder / name


def opened(path: Path) -> Space:
    return open_space(path, roots=(str(path.parent),))


def by_name(graph: Any) -> Any:
    entities = {one["name"]: (one["entityType"], one["observations"]) for one in graph["entities"]}
    return entities, sorted((one["from"], one["relationType"], one["to"]) for one in graph["relations"])


def is_still_told(then: Any, now: Any) -> bool:
    """Is everything that was said then said now, perhaps among more?"""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(
            key in now and is_still_told(then[key], now[key]) for key in then.keys() - LATER
        )
    if isinstance(then, list):
        return isinstance(now, list) and len(then) == len(now) and all(map(is_still_told, then, now))
    return bool(then == now)


def test_there_are_memories_of_every_schema_and_format() -> None:
    assert {path.name[0] for path in ARCHIVES} == {"1", "2"}
    assert {name for _, name in FILES} == {
        f"{way}.{form}" for way in ("memory", "killed") for form in ("db", "jsonl", "mcpmem")
    }


@pytest.mark.parametrize(("archive", "name"), FILES, ids=ids(FILES))
def test_nothing_is_lost(archive: Path, name: str, tmp_path: Path) -> None:
    path = unpacked(archive, name, tmp_path)
    then = told(archive)[name]

    space = opened(path)
    call = Caller(space)
    assert by_name(call("read_graph")) == by_name(then["graph"])
    # A plain file has no times and no ids: a database tells every one of them again.
    for entity, described in then["described"].items() if path.suffix == ".db" else ():
        assert is_still_told(described, call("describe_entity", name=entity)), entity
    assert [finding.text for finding in space.check()] == []
    call("create_entities", entities=[person("today", "opened by another version")])
    space.close()

    fresh = opened(path)
    now = Caller(fresh)("read_graph")
    assert by_name(now)[0].keys() == by_name(then["graph"])[0].keys() | {"today"}
    assert [finding.text for finding in fresh.check()] == []
    fresh.close()


@pytest.mark.parametrize(("archive", "name"), FILES, ids=ids(FILES))
def test_searching_goes_on_with_what_was_noted_then(
    archive: Path,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = unpacked(archive, name, tmp_path)
    space = opened(path)
    call = Caller(space)
    for query in ("tea", "who drinks tea"):
        assert call("search_semantic", query=query)["results"]
        call("open_nodes", names=["Ada"])
    space.settle()
    assert [finding.text for finding in space.check()] == []
    space.close()

    (tmp_path / "settings.toml").write_text("")
    monkeypatch.setenv("MCP_MEMORY_SETTINGS", str(tmp_path / "settings.toml"))
    assert main(["-f", str(path), "--model", "none", "metrics", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert main(["-f", str(path), "doctor"]) == 0
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


@pytest.mark.parametrize(("archive", "name"), DATABASES, ids=ids(DATABASES))
def test_the_history_goes_back_to_the_first_call(archive: Path, name: str, tmp_path: Path) -> None:
    path = unpacked(archive, name, tmp_path)
    space = opened(path)
    call = Caller(space)
    calls = call("history", limit=200)["calls"]
    wrote = [tool for tool in told(archive)[name]["calls"] if not tool.startswith(("search", "open", "get"))]

    assert len(calls) >= len(wrote) - 2  # some of them had nothing to change
    assert all("upgrades" in one["by"] for one in calls if one["tool"] != "flag_duplicates")
    assert calls[-1]["tool"] == "create_entities" and "created Ada" in calls[-1]["did"][0]

    before = facts(space.graph())
    call("undo", call=calls[0]["call"])
    assert facts(space.graph()) != before
    call("undo")
    assert facts(space.graph()) == before
    assert [one["name"] for one in call("read_graph", as_of="1")["entities"]] == ["Ada", "Bob"]
    assert [finding.text for finding in space.check()] == []
    space.close()
