"""What people do with results must make search better for them, and may make it worse for nobody.

A short run of bench/usage.py, which has the whole of it."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

SEARCHES = 700


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    place = Path(__file__).parents[2] / "bench" / "usage.py"
    found = importlib.util.spec_from_file_location("bench_usage", place)
    assert found is not None and found.loader is not None
    module = sys.modules["bench_usage"] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=["auto", "none"])
def asked(request: pytest.FixtureRequest, bench: ModuleType) -> list[object]:
    """What each question finds, from the real tool: by words and meaning, as it ships, and by words alone."""
    asked: list[object] = bench.questions(*bench.invented(topics=12), request.param)
    return asked


def test_the_bench_asks_what_ships(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[str] = []

    def questions(entities: object, asked: object, model: str) -> list[object]:
        asked_for.append(model)
        return []

    monkeypatch.setattr(bench, "questions", questions)
    monkeypatch.setattr(bench, "run", lambda title, asked, searches: [])
    monkeypatch.setattr(sys, "argv", ["usage.py"])

    assert (bench.main(), asked_for) == (0, ["auto"])


def test_being_shown_changes_nothing(bench: ModuleType, asked: list[object]) -> None:
    gained = bench.simulate(bench.Ours(), asked, "uniform", SEARCHES, by_use=False)

    assert len(gained) > 100 and {difference for some in gained.values() for difference in some} == {0}


@pytest.mark.parametrize("stream", ["uniform", "Zipf", "Zipf, other words", "repetition by a machine"])
def test_use_makes_no_stream_of_searches_worse(bench: ModuleType, asked: list[object], stream: str) -> None:
    assert bench.figure(bench.simulate(bench.Ours(), asked, stream, SEARCHES, by_use=True)).high >= 0


def test_questions_that_come_back_gain_more_than_three_points(bench: ModuleType, asked: list[object]) -> None:
    assert bench.figure(bench.simulate(bench.Ours(), asked, "Zipf", SEARCHES, by_use=True)).mean > bench.ENOUGH


def test_what_was_popular_for_other_reasons_does_no_harm(bench: ModuleType, asked: list[object]) -> None:
    gained = bench.simulate(bench.Ours(), asked, "other things were popular", SEARCHES, by_use=True)

    assert bench.figure(gained).high >= 0


def test_the_bench_would_see_a_ranking_that_gets_worse(
    bench: ModuleType, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that shuffles what it shows."""
    right = bench.Ours.search

    def wrong(self: object, text: str, found: list[object], origin: str) -> list[str]:
        names: list[str] = right(self, text, found, origin)
        random.Random(len(names)).shuffle(names)
        return names

    monkeypatch.setattr(bench.Ours, "search", wrong)
    assert bench.figure(bench.simulate(bench.Ours(), asked, "uniform", SEARCHES, by_use=True)).high < 0
