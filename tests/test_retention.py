"""How much history is kept is a setting: compacting makes the rest a beginning, and every fact stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.changes import EntityCreated, Plan
from mcp_memory.server import main
from mcp_memory.space import CHANGES_PER_ENTRY, Space
from mcp_memory.stores.store import Retention
from tests.conftest import Caller, Refused, link, person
from tests.test_undo import facts


class Clock:
    def __init__(self) -> None:
        self.day = 1

    def __call__(self) -> str:
        return f"2026-03-{self.day:02} 12:00:00"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(database: Path, clock: Clock) -> Iterator[Space]:
    """A memory of ten days, a call a day, that keeps the last three days."""
    space = open_space(database, retention=Retention(days=3))
    space.clock = clock
    call = Caller(space)
    for clock.day in range(1, 11):
        call("create_entities", entities=[person(f"day {clock.day}", "seen", "heard")])
    yield space
    assert [finding.text for finding in space.check()] == []
    space.close()
    fresh = open_space(database)
    assert [finding.text for finding in fresh.check()] == []
    fresh.close()


def numbers(call: Caller) -> list[int]:
    return [one["call"] for one in call("history")["calls"]]


def test_compacting_drops_the_history_that_is_too_old_and_says_so(kept: Space) -> None:
    call = Caller(kept)
    before = facts(kept.graph())

    answer = call("compact")

    assert answer["historyDropped"] == {"calls": 6, "until": "2026-03-06 12:00:00"}
    assert facts(kept.graph()) == before
    assert numbers(call) == [10, 9, 8, 7]
    assert "historyDropped" not in call("compact")


def test_a_clock_that_stands_ahead_makes_no_history_old(kept: Space) -> None:
    kept.clock = lambda: "2046-03-10 12:00:00"

    assert Caller(kept)("compact")["historyDropped"]["calls"] == 6
    assert numbers(Caller(kept)) == [10, 9, 8, 7]


def test_a_person_or_a_timer_compacts_by_a_command(
    database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_MEMORY_SETTINGS", os.devnull)
    space = open_space(database)
    call = Caller(space)
    for number in range(10):
        call("create_entities", entities=[person(f"call {number}", "seen")])
    before = facts(space.graph())
    space.close()

    assert main(["-f", str(database), "compact"]) == 0
    assert "All history is kept" in capsys.readouterr().out
    assert main(["-f", str(database), "compact", "--history-calls", "3"]) == 0
    assert "Let go of the history of 7 calls" in capsys.readouterr().out

    fresh = open_space(database)
    assert facts(fresh.graph()) == before
    assert numbers(Caller(fresh)) == [10, 9, 8]
    assert [finding.text for finding in fresh.check()] == []
    fresh.close()


def test_what_was_dropped_cannot_be_undone_and_what_was_kept_can(kept: Space) -> None:
    call = Caller(kept)
    call("compact")

    assert "older than this history" in call.refusal("undo", call=6)
    assert "begins after call 6" in call.refusal("read_graph", asOf="5")
    assert "begins after call 6" in call.refusal("read_graph", asOf="2026-03-05")
    assert "There is only 4 calls" in call.refusal("undo", last=5)
    assert len(call("read_graph", asOf="6")["entities"]) == 6
    call("undo", last=4)
    assert [one["name"] for one in call("read_graph")["entities"]] == [f"day {day}" for day in range(1, 7)]


def test_writing_and_looking_back_go_on_after_compacting(kept: Space, clock: Clock) -> None:
    call = Caller(kept)
    call("delete_entities", entityNames=["day 1"])
    states = {}
    for clock.day in (14, 15, 16):
        call("compact")
        call("create_relations", relations=[link("day 2", "before", f"day {clock.day - 11}")])
        states[kept.graph().seq] = facts(kept.graph())
        for seq, state in states.items():
            if kept.history is not None and seq >= kept.history.floor:
                assert facts(kept.graph_at(str(seq))) == state
    assert len(states) == 3


def test_other_processes_notice_that_the_beginning_moved(kept: Space, database: Path) -> None:
    other = open_space(database)
    mine, theirs = Caller(kept), Caller(other)
    assert len(theirs("read_graph")["entities"]) == 10
    mine("create_entities", entities=[person("unseen by the other")])
    mine("delete_entities", entityNames=["day 2"])
    kept.retention = Retention(calls=1)

    mine("compact")

    assert facts(other.graph()) == facts(kept.graph())
    assert len(theirs("read_graph")["entities"]) == 10
    assert numbers(theirs) == [12]
    theirs("create_entities", entities=[person("written by the other")])
    assert facts(other.graph_at("11")) == facts(kept.graph_at("11"))
    other.close()


@pytest.mark.parametrize("calls", [1, 2, 7])
def test_a_number_of_calls_can_be_kept(kept: Space, calls: int) -> None:
    kept.retention = Retention(calls=calls)
    call = Caller(kept)

    assert call("compact")["historyDropped"]["calls"] == 10 - calls
    assert len(numbers(call)) == calls


def test_a_beginning_of_many_facts_has_no_more_pieces_than_there_were_entries(database: Path) -> None:
    space = open_space(database, retention=Retention(calls=1))
    many = [
        EntityCreated(i, f"e{i}", "t", first=i * 10, texts=[f"{i} {j}" for j in range(10)])
        for i in range(1, CHANGES_PER_ENTRY)
    ]
    space.commit(lambda graph: Plan(list(many)), "test", "fill")
    call = Caller(space)
    call("create_entities", entities=[person("Ada")])
    before = facts(space.graph())

    call("compact")

    assert facts(space.graph()) == before
    assert [finding.text for finding in space.check()] == []
    space.store.rebuild()
    space.close()
    fresh = open_space(database)
    assert facts(fresh.graph()) == before
    assert [finding.text for finding in fresh.check()] == []
    fresh.close()


def test_a_memory_that_was_emptied_keeps_its_numbers(database: Path) -> None:
    space = open_space(database, retention=Retention(calls=1))
    call = Caller(space)
    call("create_entities", entities=[person("Ada")])
    call("delete_entities", entityNames=["Ada"])
    call("create_entities", entities=[person("Bob")])
    call("undo")
    space.retention = Retention(calls=1)
    call("compact")
    call("create_entities", entities=[person("Cy")])

    assert space.graph()["Cy"].id == 3
    assert numbers(call) == [5, 4]
    assert [finding.text for finding in space.check()] == []
    space.close()


def test_everything_is_kept_unless_somebody_says_otherwise(sqlite_space: Space) -> None:
    call = Caller(sqlite_space)
    for number in range(5):
        call("create_entities", entities=[person(f"{number}")])

    assert "historyDropped" not in call("compact")
    assert len(numbers(call)) == 5


def test_history_of_who_is_gone_is_dropped_with_the_calls_about_them(kept: Space, clock: Clock) -> None:
    call = Caller(kept)
    call("delete_entities", entityNames=["day 3"])
    assert [one["tool"] for one in call("history", name="day 3")["calls"]] == ["delete_entities", "create_entities"]
    clock.day = 20
    call("create_entities", entities=[person("late")])

    call("compact")

    with pytest.raises(Refused, match="No entity is or was named"):
        call("history", name="day 3")
