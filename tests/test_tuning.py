"""`metrics` and `tune` on memories that were really searched: what they tell, change and refuse."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.search.limbic import Constants
from mcp_memory.server import main
from mcp_memory.settings import FIELDS
from mcp_memory.space import Space
from mcp_memory.stores.usage import usage_of
from tests.conftest import STORES, Caller, person

Run = Callable[..., tuple[int, str, str]]
PLAYERS = ["Ada", "Bea", "Cleo", "Dora", "Edna", "Fay", "Gwen", "Hana"]


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("", encoding="utf-8")
    for field in FIELDS.values():
        monkeypatch.delenv(field.env, raising=False)
    monkeypatch.setenv("MCP_MEMORY_SETTINGS", str(settings))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], memory_file: Path) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["-f", str(memory_file), *arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def space(memory_file: Path) -> Iterator[Space]:
    space = open_space(memory_file)
    yield space
    assert [finding.text for finding in space.check()] == []
    space.close()


@pytest.fixture
def call(space: Space) -> Caller:
    call = Caller(space)
    call("create_entities", entities=[person(name, "plays the violin") for name in PLAYERS])
    return call


def search(call: Caller, count: int, opens: Callable[[list[str]], list[str]]) -> None:
    """So many searches, and after each what somebody opens of the answer."""
    for number in range(count):
        found = call("search_semantic", query=f"violin {'again ' * (number % 3)}", limit=5)["results"]
        for name in opens([row["name"] for row in found]):
            call("get_entity", name=name)
    call.space.settle()


def weights(space: Space) -> tuple[float, float]:
    constants = space.usage.constants()
    return constants.gamma, constants.beta_sal


# ── metrics ──────────────────────────────────────────────────────────────────────────────────────


def test_metrics_of_a_memory_that_nobody_searched_say_so(run: Run, call: Caller) -> None:
    call.space.settle()
    code, printed, _ = run("metrics")

    assert code == 0
    assert "Searches logged: 0" in printed and "nothing to compare yet" in printed
    assert json.loads(run("metrics", "--json")[1])["events_with_feedback"] == 0


def test_metrics_judge_both_orders_by_what_was_used(run: Run, call: Caller) -> None:
    search(call, 30, lambda found: ["Cleo"] if "Cleo" in found else [])
    code, printed, _ = run("metrics")
    said = json.loads(run("metrics", "--json", "--cuts", "1,4")[1])

    assert code == 0
    assert {"ndcg@1", "ndcg@10", "lift@5", "precision@3", "mrr"} <= set(printed.split())
    assert (said["events"], said["events_with_feedback"]) == (30, 30)
    assert sum(said["events_by_arm"].values()) == 30
    row = said["metrics"]["mrr"]
    assert row["baseline"] == pytest.approx(1 / 3, abs=1e-4)  # alone by relevance it always is the third
    assert row["limbic"] > 0.9 and 0 < row["low"] <= row["difference"] <= row["high"]
    assert "ndcg@4" in said["metrics"] and "ndcg@10" not in said["metrics"]


# ── tune ─────────────────────────────────────────────────────────────────────────────────────────


def test_without_feedback_tune_says_what_is_missing_and_moves_nothing(run: Run, call: Caller) -> None:
    search(call, 60, lambda found: [])
    for arguments in (["tune"], ["tune", "--analyze"], ["tune", "--tune"]):
        code, printed, _ = run(*arguments)
        assert code == 0
        assert "Nothing is moved: 0 of 60 logged searches" in printed

    assert json.loads(run("tune", "--tune", "--json")[1])["status"] == "skipped"
    assert usage_of(call.space.store).constants().keys().isdisjoint({"gamma", "beta_sal", "last_tuned_at"})


def plant(call: Caller, gamma: float, beta_sal: float) -> None:
    """A log of people who chose by these weights: real searches whose results were then used by what they had."""
    dice = random.Random(7)
    planted = Constants(gamma=gamma, beta_sal=beta_sal)
    usage = usage_of(call.space.store)
    search(call, 1, lambda found: [])  # makes the tables
    search(call, 40, lambda found: dice.sample(found, 2))
    for _ in range(300):
        call("search_semantic", query=f"violin {dice.random()}", limit=8)
        rows = call.space.usage._recent["test"][-1].rows
        for row in rows:  # near-equals with parts of every size, as years of use would leave them
            row.base = dice.uniform(0.64, 0.66)
            row.importance, row.cooc_boost, row.echo, row.temporal_factor = (
                dice.uniform(0, 1.3),
                dice.expovariate(0.2),
                0,
                1,
            )
        share = next(trial.share for trial in usage.trials(1))

        def appeal(row: Any, share: float = share) -> float:
            from mcp_memory.search.limbic import habit

            return float(row.base * habit(row.importance, 1, row.cooc_boost, share, planted))

        call("get_entity", name=max(rows, key=appeal).candidate.name)
    call.space.settle()


@pytest.mark.parametrize("memory_file", STORES[:2], indirect=True)
def test_tune_moves_a_step_towards_what_the_log_tells_and_running_servers_follow(run: Run, call: Caller) -> None:
    plant(call, 0.1, 0.1)
    code, looked, _ = run("tune")
    assert code == 0
    assert "tune --tune would move 10% of the way (--blend): gamma 0.01 -> 0.019, beta_sal 0.5 -> 0.46." in looked
    assert weights(call.space) == (0.01, 0.5)

    said = json.loads(run("tune", "--tune", "--json")[1])
    assert said["status"] == "tuned"
    assert (said["best"]["gamma"], said["best"]["beta_sal"]) == (0.1, 0.1)
    assert said["best"]["ndcg"] > said["present"]["ndcg"] and said["best"]["low"] > 0
    assert len(said["cells"]) == 25
    assert weights(call.space) == pytest.approx((0.019, 0.46))  # the server that is running
    assert "last_tuned_at" in usage_of(call.space.store).constants()

    run("tune", "--tune", "--blend", "1")
    assert weights(call.space) == (0.1, 0.1)
    assert "better than the present ones" in run("tune", "--tune")[1]


def test_tune_tries_only_the_weights_it_is_given(run: Run, call: Caller) -> None:
    search(call, 12, lambda found: found[3:4])
    said = json.loads(run("tune", "--json", "--min-events", "5", "--gamma-range", "0.2", "--beta-sal-range", "0,1")[1])

    assert {(cell["gamma"], cell["beta_sal"]) for cell in said["cells"]} == {(0.2, 0.0), (0.2, 1.0)}


def test_weights_can_be_set_by_hand(run: Run, call: Caller) -> None:
    search(call, 1, lambda found: found[:1])
    code, printed, _ = run("tune", "--set-gamma", "0.05", "--set-beta", "0.75")

    assert code == 0
    assert "gamma 0.01 -> 0.05" in printed and "beta_sal 0.5 -> 0.75" in printed
    assert weights(call.space) == (0.05, 0.75)
    assert json.loads(run("tune", "--set-beta", "0.2", "--json")[1])["now"] == {"gamma": 0.05, "beta_sal": 0.2}


def test_weights_can_be_set_before_anybody_searched(run: Run, call: Caller) -> None:
    call.space.settle()
    assert run("tune", "--set-gamma", "0.05")[0] == 0

    assert weights(call.space) == (0.05, 0.5)
    assert "Searches logged: 0" in run("metrics")[1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["tune", "--tune", "--set-gamma", "1"], "ask for one of them"),
        (["tune", "--simulate", "--analyze"], "ask for one of them"),
        (["--read-only", "tune", "--tune"], "With --read-only nothing is tuned"),
        (["tune", "--set-gamma", "-1"], "--set-gamma cannot be '-1': it must be a number from 0 up."),
        (["tune", "--set-beta", "nan"], "--set-beta cannot be 'nan': it must be a number from 0 up."),
        (["tune", "--blend", "0"], "--blend cannot be '0': it must be a number above 0 and up to 1."),
        (["tune", "--gamma-range", ","], "it must be numbers from 0 up, with commas between."),
        (["metrics", "--cuts", "0"], "it must be whole numbers from 1 up, with commas between."),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_moves(
    run: Run, call: Caller, arguments: list[str], complaint: str
) -> None:
    call.space.settle()
    code, printed, complained = run(*arguments)

    assert (code, printed) == (2, "")
    assert complaint in complained
    assert weights(call.space) == (0.01, 0.5)


def test_the_commands_want_a_memory_that_is_there(run: Run) -> None:
    for command in ("metrics", "tune"):
        code, _, complained = run(command)
        assert code == 2 and "There is no memory file" in complained


@pytest.mark.parametrize("memory_file", STORES[:1], indirect=True)
def test_tune_simulate_needs_no_memory_and_finds_what_was_planted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp_memory.search import tuner

    monkeypatch.setattr(tuner, "PLANTED", ((0.05, 0.1), (0.005, 0.75)))
    code, printed, _ = run("tune", "--simulate")

    assert code == 0
    assert "All were found." in printed and "gamma 0.005, beta 0.75" in printed
    assert "weights would have moved in 0 of 5 logs" in printed
