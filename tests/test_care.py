"""What is written twice is flagged behind the reply: each new observation compared once, with all before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mcp_memory import caretaker
from mcp_memory.assembly import open_space
from mcp_memory.embedding.engine import Engine
from mcp_memory.space import Space
from mcp_memory.stores.examined import examined_of
from tests.conftest import Caller, link, person

TESTS = ("The tests run on every push", "Every push runs the tests")
TEAM = ("Marta dirige el equipo de diseño", "El equipo de diseño lo dirige Marta")
LONG, SHORT = "Lives in Lisbon since 2021, with her two cats, her brother and a parrot", "lives in Lisbon"
PATIENCE = 30

Open = Callable[..., Caller]


@pytest.fixture
def opened(database: Path) -> Iterator[Open]:
    """Opens the same memory as often as one likes; nothing may be wrong with it at the end."""
    spaces: list[Space] = []

    def open_again(file: Path = database, **options: Any) -> Caller:
        chosen: dict[str, Any] = {"flags": True, "roots": (str(file.parent),)} | options
        spaces.append(open_space(file, **chosen))
        return Caller(spaces[-1])

    yield open_again
    for space in spaces:
        space.close()
    space = open_space(database)
    assert [finding.text for finding in space.check()] == []
    space.close()


def flagged(call: Caller) -> set[str]:
    """What bears a flag once everything was compared."""
    assert call.space.graph()
    if call.space.caretaker is not None:
        call.space.caretaker.hurry(PATIENCE)
    return {seen.text for one in call.space.graph().entities() for seen in one.observations if seen.similarity_flag}


def add(call: Caller, name: str, *observations: str, **more: Any) -> None:
    call("add_observations", name=name, observations=list(observations), **more)


def test_a_new_observation_is_compared_with_what_is_known(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", TESTS[0], TEAM[0], LONG), person("Bob", "Likes hiking")])

    add(call, "Ada", TESTS[1], "The invoice is late")
    add(call, "Ada", SHORT, TEAM[1], kind="home")
    add(call, "Bob", TESTS[1])

    assert flagged(call) == {TESTS[1], SHORT, TEAM[1]}
    assert call("consolidation_report")["summary"]["flagged_observations_count"] == 3
    seen = call("describe_entity", name="Ada")["entity"]["observations"]
    assert [one["content"] for one in seen if one.get("similarity_flag")] == [TESTS[1], SHORT, TEAM[1]]


def test_the_first_observations_of_an_entity_are_compared_with_each_other(opened: Open) -> None:
    call = opened()

    call("create_entities", entities=[person("Ada", *TESTS, LONG, SHORT)])

    assert flagged(call) == {TESTS[1], SHORT}


def test_what_was_superseded_is_no_duplicate_and_has_none(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", TESTS[0])])

    add(call, "Ada", TESTS[1], supersedes=TESTS[0])

    assert flagged(call) == set()


def test_a_file_that_is_imported_is_compared_too(opened: Open, tmp_path: Path) -> None:
    call = opened()
    source = tmp_path / "source.jsonl"
    source.write_text(f'{{"type":"entity","name":"A","entityType":"T","observations":["{TESTS[0]}","{TESTS[1]}"]}}\n')

    call("migrate", source_path=str(source))

    assert flagged(call) == {TESTS[1]}


def test_what_another_process_wrote_is_compared(opened: Open) -> None:
    ours, theirs = opened(), opened(flags=False)
    ours("create_entities", entities=[person("Ada", TESTS[0])])
    assert flagged(ours) == set()

    add(theirs, "Ada", TESTS[1])

    assert flagged(ours) == {TESTS[1]}
    assert flagged(theirs) == {TESTS[1]}


def test_what_a_process_did_not_finish_the_next_one_does(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", TESTS[0])])
    add(call, "Ada", TESTS[1])
    assert call.space.caretaker is not None and call.space.caretaker.last == 0
    call.space.close()

    assert flagged(opened()) == {TESTS[1]}


def test_everything_is_compared_only_once(opened: Open, encoded: list[str]) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *(f"fact number {n} of many" for n in range(40)))])
    flagged(call)
    assert len(encoded) == 40
    encoded.clear()

    add(call, "Ada", TESTS[1])
    flagged(call)

    assert encoded == [TESTS[1]]
    call.space.close()
    encoded.clear()
    flagged(opened())
    assert encoded == []


def test_what_a_search_has_read_is_not_read_again(opened: Open, encoded: list[str]) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS)])
    call("search_semantic", query="tests")
    call.space.vectors.wait(PATIENCE)  # type: ignore[union-attr]
    encoded.clear()

    assert flagged(call) == {TESTS[1]}
    assert encoded == []


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every observation that is given to the model."""
    seen: list[str] = []
    encode = Engine.encode

    def listening(self: Engine, texts: Sequence[str], *more: Any, **most: Any) -> Any:
        seen.extend(texts)
        return encode(self, texts, *more, **most)

    monkeypatch.setattr(Engine, "encode", listening)
    return seen


# ── flags come off again ─────────────────────────────────────────────────────────────────────────


def reported(call: Caller) -> list[str]:
    return [one["observation_text"] for one in call("consolidation_report")["flagged_observations"]]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("delete_observations", {"name": "Ada", "observations": [TESTS[0]]}),
        ("add_observations", {"name": "Ada", "observations": [TESTS[1]], "supersedes": TESTS[0]}),
        (
            "execute_entity_split",
            {"entity_name": "Ada", "approved_splits": [{"name": "B", "observations": [TESTS[0]]}]},
        ),
        (
            "execute_entity_split",
            {"entity_name": "Ada", "approved_splits": [{"name": "B", "observations": [TESTS[1]]}]},
        ),
    ],
)
def test_what_no_longer_repeats_anything_loses_its_flag(opened: Open, tool: str, arguments: Any) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS, *TEAM)])
    assert flagged(call) == {TESTS[1], TEAM[1]}

    call(tool, **arguments)

    assert flagged(call) == {TEAM[1]}


def test_who_repeats_another_still_keeps_the_flag(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS, TESTS[1] + "!")])
    assert flagged(call) == {TESTS[1], TESTS[1] + "!"}

    call("delete_observations", name="Ada", observations=[TESTS[0]])

    assert flagged(call) == {TESTS[1] + "!"}


def test_a_flag_comes_off_although_the_process_ended_in_between(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS)])
    assert flagged(call) == {TESTS[1]}
    call("delete_observations", name="Ada", observations=[TESTS[0]])
    call.space.close()

    assert flagged(opened()) == set()


def test_what_was_looked_through_once_is_not_looked_through_at_every_start(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS), person("Bob")])
    assert flagged(call) == {TESTS[1]}
    call("create_relations", relations=[link("Ada", "knows", "Bob")])
    call.space.close()

    again = opened()
    assert flagged(again) == {TESTS[1]}

    kept = examined_of(again.space.store)
    assert kept is not None and kept.load().seq == again.space.graph().seq


def test_without_a_model_a_flag_that_a_model_gave_stays_while_there_is_something_before_it(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", "Likes hiking", *TESTS)])
    assert flagged(call) == {TESTS[1]}
    call.space.close()

    blind = opened(model="none")
    blind("delete_observations", name="Ada", observations=["Likes hiking"])
    assert flagged(blind) == {TESTS[1]}
    blind("delete_observations", name="Ada", observations=[TESTS[0]])
    assert flagged(blind) == set()


def test_a_flag_that_was_looked_at_can_be_settled_and_stays_so(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS, *TEAM)])
    assert flagged(call) == {TESTS[1], TEAM[1]}

    assert call("settle_flags", name="Ada", observations=[TESTS[1]]) == {
        "entity_name": "Ada",
        "settled": [{"observation_id": 2, "content": TESTS[1]}],
        "still_flagged": 1,
    }
    assert "describe_entity" in call.refusal("settle_flags", name="Ada", observations=["what?"])
    assert call("settle_flags", name="Ada", observations=[2])["settled"] == []
    assert [one["observation_id"] for one in call("settle_flags", name="Ada")["settled"]] == [4]

    assert flagged(call) == set() and reported(call) == []
    add(call, "Ada", "Likes hiking")
    call("delete_observations", name="Ada", observations=["Likes hiking"])
    split = [{"name": "Tests", "observations": list(TESTS)}]
    call("execute_entity_split", entity_name="Ada", approved_splits=split)
    assert flagged(call) == set()
    call.space.close()
    again = opened()
    add(again, "Tests", "Likes hiking")
    assert flagged(again) == set() and reported(again) == []
    again("undo", call=next(one["call"] for one in again("history", tool="settle_flags")["calls"]))
    assert flagged(again) == {TEAM[1]}


def test_by_words_too_what_was_settled_stays_so_after_a_restart(opened: Open) -> None:
    call = opened(model="none")
    call("create_entities", entities=[person("Ada", LONG, SHORT)])
    assert flagged(call) == {SHORT}
    call("settle_flags", name="Ada")
    flagged(call)
    call.space.close()

    assert flagged(opened(model="none")) == set()


@pytest.mark.parametrize("order", [("Ada", "Bob"), ("Bob", "Ada")])
def test_what_comes_together_is_compared(opened: Open, order: tuple[str, str]) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", TESTS[0], *TEAM), person("Bob", TESTS[1])])
    assert flagged(call) == {TEAM[1]}
    call("settle_flags", name="Ada")

    call("merge_entities", source=order[0], target=order[1])

    assert flagged(call) == {TESTS[1]}  # what came together was compared before, and settled


def test_what_a_split_puts_to_something_is_compared(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", TESTS[0], "Likes hiking"), person("Bob", TESTS[1])])
    assert flagged(call) == set()

    call("execute_entity_split", entity_name="Ada", approved_splits=[{"name": "Bob", "observations": [TESTS[0]]}])

    assert flagged(call) == {TESTS[1]}


def test_what_comes_back_is_compared(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS)])
    assert flagged(call) == {TESTS[1]}
    call("delete_observations", name="Ada", observations=[TESTS[0]])
    assert flagged(call) == set()

    call("undo")

    assert call("get_entity", name="Ada")["observations"] == list(TESTS)
    assert flagged(call) == {TESTS[1]}


# ── much at a time ───────────────────────────────────────────────────────────────────────────────


def test_many_flags_are_committed_in_lots(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caretaker, "FLAGS_AT_ONCE", 16)
    call = opened(model="none")
    long = [f"The nightly backup of disk {number} finished without an error" for number in range(50)]
    call("create_entities", entities=[person("Ada", "nightly backup", *long)])

    assert flagged(call) == set(long)

    lots = call("history", tool="flag_duplicates")["calls"]
    assert [len(one["did"]) + one.get("more", 0) for one in lots] == [2, 16, 16, 16]
    call("undo")
    assert "Ada" not in call.space.graph()


def test_a_backlog_grows_less_step_by_step(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caretaker, "QUIET_SECONDS", 1000)
    monkeypatch.setattr(caretaker, "AT_ONCE", 4)
    call = opened()
    call("create_entities", entities=[person(f"E{n}", "a cat", f"{n} dogs") for n in range(12)])
    looker = call.space.caretaker
    assert looker is not None
    pending = []

    while looker.step():
        pending.append(pending_now(call))

    assert pending == [16, 8, 0]


def pending_now(call: Caller) -> int:
    graph = call.space.graph()
    return sum(seen.id > graph.examined for one in graph.entities() for seen in one.observations)


def test_a_report_waits_for_no_backlog(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS)])
    assert flagged(call) == {TESTS[1]}  # the model is there
    call("create_entities", entities=[person(f"E{n}", "a cat", f"{n} dogs") for n in range(40)])
    hurried = []
    monkeypatch.setattr(call.space.caretaker, "nudge", lambda: hurried.append(True))

    assert call("consolidation_report")["summary"]["flags_pending"] == 80
    assert not hurried


def test_without_a_model_words_are_compared_and_the_rest_waits_and_says_so(opened: Open) -> None:
    blind = opened(model="none")
    blind("create_entities", entities=[person("Ada", TESTS[0], LONG), person("Bob", "Likes hiking")])
    add(blind, "Ada", TESTS[1], SHORT)

    assert flagged(blind) == {SHORT}
    assert blind("consolidation_report")["summary"]["flags_pending"] == 4
    assert blind("describe_entity", name="Ada")["flags_pending"] == 4
    assert "flags_pending" not in blind("describe_entity", name="Bob")
    blind.space.close()

    seeing = opened()
    assert flagged(seeing) == {SHORT, TESTS[1]}
    assert "flags_pending" not in seeing("consolidation_report")["summary"]
    assert "flags_pending" not in seeing("describe_entity", name="Ada")


def test_a_flag_is_a_marker_and_nothing_else(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS)])
    before = call("describe_entity", name="Ada")

    assert flagged(call) == {TESTS[1]}
    after = call("describe_entity", name="Ada")
    assert [one.pop("similarity_flag", 0) for one in after["entity"]["observations"]] == [0, 1]
    for one in before["entity"]["observations"]:
        one.pop("similarity_flag", None)
    before.pop("flags_pending", None)
    assert after == before
    assert call("get_entity", name="Ada")["observations"] == list(TESTS)


def test_nobody_looks_until_it_is_quiet(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caretaker, "QUIET_SECONDS", 0.3)
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS)])
    looker = call.space.caretaker
    assert looker is not None
    for number in range(4):
        time.sleep(0.1)
        add(call, "Ada", f"{number} times something else")
        assert looker.last == 0

    until = time.monotonic() + PATIENCE
    while looker.last < 6 and time.monotonic() < until:
        time.sleep(0.02)

    assert call.space.graph()["Ada"].observations[1].similarity_flag == 1


def test_who_adds_is_told_that_it_will_be_compared(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caretaker, "QUIET_SECONDS", 1000)
    call = opened()
    call("create_entities", entities=[person("Ada")])
    assert "flags_pending" not in call("add_observations", name="Ada", observations=[TESTS[0]])
    assert flagged(call) == set()

    assert call("add_observations", name="Ada", observations=[TESTS[1]])["flags_pending"] == 1
    assert flagged(call) == {TESTS[1]}
    assert "flags_pending" not in call("add_observations", name="Ada", observations=[TESTS[1]])


def test_who_may_only_read_is_told_what_nobody_has_compared(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS)])
    call.space.close()

    reader = opened(flags=False, keeps_usage=False)
    assert reader("consolidation_report")["summary"]["flags_pending"] == 2
    assert reader("describe_entity", name="Ada")["flags_pending"] == 2
    reader.space.close()

    assert flagged(opened()) == {TESTS[1]}


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.mcpmem"])
def test_a_format_without_a_place_for_flags_gets_none(opened: Open, tmp_path: Path, name: str) -> None:
    call = opened(tmp_path / name)
    call("create_entities", entities=[person("Ada", *TESTS)])

    assert flagged(call) == set()
    assert call("find_duplicate_observations", entity_name="Ada")["duplicates_found"] == 1
    assert "no place for flags" in call("consolidation_report")["note"]


def test_a_failure_is_made_up_for(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", *TESTS)])
    looker = call.space.caretaker
    assert looker is not None
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "encode", lambda *_: 1 / 0)
        assert not looker.hurry(0.3)

    assert flagged(call) == {TESTS[1]}


def test_a_flag_stands_in_nobodys_way_when_something_is_taken_back(opened: Open) -> None:
    call = opened()
    call("create_entities", entities=[person("Ada", TESTS[0])])
    add(call, "Ada", TESTS[1], TEAM[0])
    assert flagged(call) == {TESTS[1]}
    add(call, "Ada", TEAM[1])
    assert flagged(call) == {TESTS[1], TEAM[1]}

    assert [one["tool"] for one in call("history")["calls"]] == [
        "flag_duplicates",
        "add_observations",
        "flag_duplicates",
        "add_observations",
        "create_entities",
    ]
    assert call("history", tool="flag_duplicates")["calls"][0]["by"] == "mcp-memory"
    assert [one["tool"] for one in call("undo")["undone"]] == ["add_observations"]
    assert call("get_entity", name="Ada")["observations"] == [*TESTS, TEAM[0]]
    assert flagged(call) == {TESTS[1]}
    call("undo", call=2)
    assert call("get_entity", name="Ada")["observations"] == [TESTS[0]]
