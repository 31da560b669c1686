"""What one process packed for searches serves the next: the same answers as from passages packed anew, or none."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.search.passages import Passages
from mcp_memory.stores import passagemap
from tests.conftest import Caller

WORDS = "tea coffee garden river stone light paper music winter summer train harbour letter window bread salt".split()
PEOPLE = 40


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passagemap, "LARGE", 1)
    monkeypatch.setattr("mcp_memory.stores.sqlite.store.LARGE", 1)  # there is a snapshot, and graphs stand on it


@contextmanager
def opened(database: Path) -> Iterator[Caller]:
    space = open_space(database, model="none")
    space._settler._tidy = lambda: None
    try:
        yield Caller(space)
        space._keep_passages()  # as the settler does it in a quiet moment, which may be cut short by the end
    finally:
        space.close()


def sentence(dice: random.Random) -> str:
    said = " ".join(dice.sample(WORDS, 5))
    return dice.choice((said, f"P{dice.randrange(PEOPLE)}: {said}", f"Do you like {said}?", f"{said} on 3 May 2024"))


def fill(call: Caller, dice: random.Random) -> None:
    entities = [
        {"name": f"P{n}", "entityType": "Person", "observations": [sentence(dice) for _ in range(dice.randrange(4))]}
        for n in range(PEOPLE)
    ]
    call("create_entities", entities=entities)
    call.space.settle()


QUERIES = (
    "tea in the garden",
    "what did P7 say of music",
    "when was the train",
    "winter",
    "P11",
    "bread and sal",
)


def answers(call: Caller) -> list[Any]:
    found = []
    for query in QUERIES:
        told = call("search_semantic", query=query, limit=20)
        found.append([(one["name"], [(m["id"], m["score"]) for m in one["matches"]]) for one in told["results"]])
    return found


def was_packed(call: Caller) -> bool:
    """Did this process pack the passages itself?"""
    return call.space.graph().passages.packed is not None


def anew(database: Path) -> list[Any]:
    """What a process answers that finds nothing kept."""
    database.with_name(database.name + passagemap.SUFFIX).unlink(missing_ok=True)
    with opened(database) as call:
        found = answers(call)
        assert was_packed(call)
        return found


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with opened(path := tmp_path / "memory.db") as call:
        fill(call, random.Random(1))
    with opened(path) as call:
        call.space.settle()
        answers(call)
    assert path.with_name("memory.db-graph").exists()
    assert path.with_name("memory.db-passages").exists()
    return path


def test_the_next_process_answers_the_same_and_packs_nothing(database: Path) -> None:
    with opened(database) as call:
        found = answers(call)
        assert not was_packed(call)
    assert found == anew(database)
    assert any(found)


def test_all_parts_of_passages_come_back(database: Path) -> None:
    with opened(database) as call:
        fresh = Passages(call.space.graph().entities())
        call("search_semantic", query="tea")
        kept = call.space.graph().passages.lots()[0].passages
        for name, value in vars(fresh).items():
            if name not in ("seats", "bare_seats", "names", "_dampening", "_scratch", "joins", "_stem_words"):
                mine = getattr(kept, name)
                assert mine == value if not hasattr(value, "dtype") else (mine == value).all(), name
        assert kept.joins.keys() == fresh.joins.keys()
        assert all((kept.joins[at] == joined).all() for at, joined in fresh.joins.items())
        assert (kept.names.all, kept.names.by_word) == (fresh.names.all, fresh.names.by_word)


def change(call: Caller, dice: random.Random) -> None:
    name, other = (f"P{n}" for n in dice.sample(range(PEOPLE), 2))
    there = name in call.space.graph()
    match dice.randrange(6):
        case 0 if there:
            call("add_observations", name=name, observations=[sentence(dice)])
        case 1:
            call("delete_entities", entityNames=[name])
        case 2 if there:
            seen = call("open_nodes", names=[name])["entities"][0]["observations"]
            if seen:
                call("delete_observations", name=name, observations=seen[:1])
        case 3 if there and other in call.space.graph():
            call("merge_entities", source=name, target=other)
        case 4:
            call("create_entities", entities=[{"name": name, "entityType": "Guest", "observations": [sentence(dice)]}])
        case _:
            call("create_relations", relations=[{"from": name, "to": other, "relationType": "knows"}])


@pytest.mark.parametrize("seed", range(12))
def test_whatever_was_changed_since_is_found_as_it_is_now(seed: int, database: Path) -> None:
    dice, used = random.Random(seed), 0
    for _ in range(3):
        with opened(database) as call:  # what is changed here the next process takes from the tables, or the feed
            for _ in range(dice.randrange(6)):
                change(call, dice)
            found = answers(call)
            used += not was_packed(call)  # when much was changed, all is packed anew
        kept = database.with_name("memory.db-passages").read_bytes()
        assert found == anew(database)
        database.with_name("memory.db-passages").write_bytes(kept)
    assert used


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "rules", "elsewhere"])
def test_what_is_not_whole_or_not_of_this_history_is_passed_over_and_made_anew(
    damage: str, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database.with_name("memory.db-passages")
    content = bytearray(path.read_bytes())
    match damage:
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "bit":
            content[-100] ^= 4
            path.write_bytes(content)
        case "empty":
            path.write_bytes(b"")
        case "rules":
            monkeypatch.setattr("mcp_memory.search.passages.NAME_WEIGHT", 3.0)
        case _:
            database = tmp_path / "another.db"
            with opened(database) as call:
                fill(call, random.Random(2))
            path = path.rename(database.with_name("another.db-passages"))
            path.write_bytes(content)
    with opened(database) as call:
        found = answers(call)
        assert was_packed(call)
    with opened(database) as call:
        assert answers(call) == found
        assert not was_packed(call)
