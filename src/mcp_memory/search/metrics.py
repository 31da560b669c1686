"""How good an order was, told by what was used: measures of one list, and a report over trials."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from math import log2
from statistics import fmean
from typing import Any

from mcp_memory.search.trials import LIMBIC, Trial, judged

Gains = Sequence[int]  # the relevance of each result, best place first
DEFAULT_CUTS = (1, 3, 5, 10)
RESAMPLINGS = 1000


def dcg(gains: Gains) -> float:
    return sum((2.0**gain - 1) / log2(place + 1) for place, gain in enumerate(gains, 1))


def ndcg(gains: Gains, k: int) -> float:
    """Of what the best order would have gained in the first k places, this one's share."""
    best = dcg(sorted(gains, reverse=True)[:k])
    return dcg(gains[:k]) / best if best else 0.0


def precision(gains: Gains, k: int) -> float:
    """How much of the first k was used."""
    first = gains[:k]
    return sum(gain > 0 for gain in first) / len(first) if first else 0.0


def lift(gains: Gains, k: int) -> float:
    """How much denser use is among the first k than in the whole list; 1 is what chance gives."""
    overall = precision(gains, len(gains))
    return precision(gains, k) / overall if overall else 0.0


def mrr(gains: Gains) -> float:
    """One over the place of the first that was used."""
    return next((1 / place for place, gain in enumerate(gains, 1) if gain), 0.0)


def interval(differences: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Where the mean of these lies, 95 times of 100: paired bootstrap."""
    if not differences:
        return (0.0, 0.0)
    dice = random.Random(seed)
    size = len(differences)
    means = sorted(fmean(dice.choices(differences, k=size)) for _ in range(RESAMPLINGS))
    return means[int(RESAMPLINGS * 0.025)], means[int(RESAMPLINGS * 0.975) - 1]


def report(trials: Sequence[Trial], cuts: Sequence[int] = DEFAULT_CUTS) -> dict[str, Any]:
    """Limbic against baseline, over the searches after which something was used."""
    seen = judged(trials)
    pairs = [(trial.as_answered(), trial.as_baseline()) for trial in seen]
    rows = {name: _compared(pairs, measure) for name, measure in _measures(cuts).items()}
    return {
        "events": len(trials),
        "events_with_feedback": len(seen),
        "events_by_arm": {
            "limbic": sum(trial.arm == LIMBIC for trial in trials),
            "baseline": sum(trial.arm != LIMBIC for trial in trials),
        },
        "metrics": rows,
    }


def _measures(cuts: Sequence[int]) -> dict[str, Callable[[Gains], float]]:
    cut = {"ndcg": ndcg, "lift": lift, "precision": precision}
    return {f"{name}@{k}": partial(measure, k=k) for name, measure in cut.items() for k in cuts} | {"mrr": mrr}


def _compared(pairs: Sequence[tuple[list[int], list[int]]], measure: Callable[[Gains], float]) -> dict[str, float]:
    if not pairs:
        return {"limbic": 0.0, "baseline": 0.0, "difference": 0.0, "low": 0.0, "high": 0.0}
    limbic = [measure(answered) for answered, _ in pairs]
    baseline = [measure(plain) for _, plain in pairs]
    differences = [one - other for one, other in zip(limbic, baseline, strict=True)]
    low, high = interval(differences)
    said = {"limbic": fmean(limbic), "baseline": fmean(baseline), "difference": fmean(differences)}
    return {name: round(value, 4) for name, value in {**said, "low": low, "high": high}.items()}
