"""Trials, measures and the tuner: what was used judges an order, and without evidence nothing moves."""

from __future__ import annotations

from collections import Counter
from math import log2
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.search.limbic import Constants
from mcp_memory.search.metrics import interval, lift, mrr, ndcg, precision, report
from mcp_memory.search.trials import BASELINE, LIMBIC, Part, Trial, arm, hash_of
from mcp_memory.search.tuner import BLEND, analyse, proposal, simulate, simulated_trials, step


def trial(*relevance: int, event: int = 1) -> Trial:
    """A trial whose baseline order was the reverse of what was answered."""
    size = len(relevance)
    parts = [
        Part(n, str(n), n, size + 1 - n, base=n / size, importance=0, temporal_factor=1, cooc_boost=0, relevance=gain)
        for n, gain in enumerate(relevance, 1)
    ]
    return Trial(event, 0.5, LIMBIC, parts)


# ── which arm ────────────────────────────────────────────────────────────────────────────────────


def test_a_tenth_of_all_queries_is_the_baseline_arm_and_always_the_same_tenth() -> None:
    arms = [arm(f"query {number}") for number in range(5000)]

    assert arms == [arm(f"query {number}") for number in range(5000)]
    assert 0.08 < Counter(arms)[BASELINE] / 5000 < 0.12
    assert hash_of("sqlite") == "786d348e95448121dc5b7387e22e4fff"  # MD5, as the predecessor wrote it


# ── measures ─────────────────────────────────────────────────────────────────────────────────────


def test_the_measures_of_one_order() -> None:
    gains = [0, 1, 0, 0, 2, 0, 0, 0, 0, 0]

    assert ndcg(gains, 5) == pytest.approx((1 / log2(3) + 3 / log2(6)) / (3 / log2(2) + 1 / log2(3)))
    assert ndcg(gains, 1) == 0
    assert precision(gains, 5) == 0.4
    assert lift(gains, 5) == 0.4 / 0.2
    assert mrr(gains) == 0.5
    assert ndcg([], 5) == ndcg([0, 0], 5) == precision([], 5) == lift([0], 5) == mrr([0, 0]) == 0
    assert ndcg([2, 1, 0], 3) == 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=12), st.integers(1, 12))
def test_no_order_is_better_than_the_best(gains: list[int], k: int) -> None:
    assert 0 <= ndcg(gains, k) <= 1
    assert ndcg(sorted(gains, reverse=True), k) in (0, pytest.approx(1))
    assert 0 <= precision(gains, k) <= 1 and 0 <= mrr(gains) <= 1


def test_the_report_compares_what_was_answered_with_relevance_alone() -> None:
    said = report([trial(1, 0, 0, 0, 0, event=n) for n in range(20)] + [trial(0, 0, event=99)], (1, 3))

    assert (said["events"], said["events_with_feedback"]) == (21, 20)
    assert said["metrics"]["mrr"] == {"limbic": 1, "baseline": 0.2, "difference": 0.8, "low": 0.8, "high": 0.8}
    assert said["metrics"]["ndcg@1"]["limbic"] == 1 and said["metrics"]["ndcg@3"]["baseline"] == 0
    assert said["metrics"]["lift@1"]["limbic"] == 5
    assert set(said["metrics"]) == {"ndcg@1", "ndcg@3", "lift@1", "lift@3", "precision@1", "precision@3", "mrr"}
    assert report([])["metrics"]["mrr"]["difference"] == 0


def test_an_interval_holds_the_mean_and_narrows_with_evidence() -> None:
    few, many = [0.0, 1.0] * 10, [0.0, 1.0] * 500

    for differences in (few, many):
        low, high = interval(differences)
        assert low < fmean(differences) < high
    assert interval(many)[1] - interval(many)[0] < (interval(few)[1] - interval(few)[0]) / 3
    assert interval([]) == (0, 0)


# ── the tuner ────────────────────────────────────────────────────────────────────────────────────


def test_without_feedback_nothing_moves() -> None:
    silent = [trial(0, 0, 0, event=n) for n in range(500)]
    finding = analyse(silent, Constants())

    assert finding.status == "skipped" and "0 of 500" in finding.why and "--min-events" in finding.why
    assert proposal(finding, BLEND) == {}
    assert analyse([], Constants()).status == "skipped"


def test_too_little_feedback_moves_nothing() -> None:
    finding = analyse(simulated_trials(0.1, 0.75, seed=1, events=49), Constants(), min_events=50)

    assert finding.status == "skipped"


def test_feedback_that_no_weight_explains_moves_nothing() -> None:
    """What is used was always in front, whatever the weights: nothing is better than what is."""
    finding = analyse([trial(*[0] * 11, 1, event=n) for n in range(200)], Constants())

    assert finding.status == "skipped" and "better than the present" in finding.why
    assert (finding.best.gamma, finding.best.beta_sal) == (0.01, 0.5)


@pytest.mark.parametrize(("gamma", "beta"), [(0.1, 0.1), (0.005, 0.75)])
def test_the_weights_that_made_people_choose_are_found(gamma: float, beta: float) -> None:
    finding = analyse(simulated_trials(gamma, beta, seed=3, events=2000), Constants())

    assert finding.status == "found"
    assert (finding.best.gamma, finding.best.beta_sal) == (gamma, beta)
    assert finding.best.ndcg > finding.present.ndcg and 0 < finding.best.low < finding.best.high
    assert [cell.ndcg for cell in finding.cells] == sorted((cell.ndcg for cell in finding.cells), reverse=True)
    assert len(finding.cells) == 25


def test_a_step_is_an_exponential_moving_average() -> None:
    assert step(0.01, 0.05, 0.1) == pytest.approx(0.014)
    assert step(0.01, 0.05, 0.5) == pytest.approx(0.03)
    assert step(0.01, 0.05, 1.0) == 0.05
    finding = analyse(simulated_trials(0.1, 0.1, seed=3, events=2000), Constants())
    assert proposal(finding, 0.1) == pytest.approx({"gamma": 0.019, "beta_sal": 0.46})


def test_the_present_weights_are_kept_when_they_are_what_made_people_choose() -> None:
    standard = Constants()
    finding = analyse(simulated_trials(standard.gamma, standard.beta_sal, seed=5, events=2000), standard)

    assert finding.status == "skipped"


def test_the_simulation_calls_found_only_what_the_tuner_would_move_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_memory.search.tuner.PLANTED", ((0.05, 0.1), (0.005, 0.75)))

    enough, too_few = simulate(seed=0), simulate(seed=0, events=30)

    assert [(run["status"], run["is_found"]) for run in enough["runs"]] == [("found", True)] * 2
    assert enough["all_found"] and enough["runs"][0]["found"] == {"gamma": 0.05, "beta_sal": 0.1}
    assert [(run["status"], run["is_found"]) for run in too_few["runs"]] == [("skipped", False)] * 2
    assert not too_few["all_found"]


def test_where_people_open_anything_the_weights_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_memory.search.tuner.PLANTED", ())

    assert simulate(seed=0)["noise"] == {"logs": 5, "moved": 0}
