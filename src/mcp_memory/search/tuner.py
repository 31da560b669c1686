"""Offline tuning: which weights would have put on top what people then used?

The law: without evidence nothing moves. A grid of gamma and beta_sal is replayed over logged trials. One half
of them chooses the best cell, the other half, which had no say, must find it better than the present values;
and then they move a step, not all the way."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import exp
from statistics import fmean
from typing import Any

import msgspec
from msgspec.structs import replace

from mcp_memory.search.limbic import Constants
from mcp_memory.search.metrics import interval, ndcg
from mcp_memory.search.routing import SHARES
from mcp_memory.search.trials import LIMBIC, Part, Trial, judged

GAMMAS = (0.001, 0.005, 0.01, 0.05, 0.1)
BETAS = (0.1, 0.25, 0.5, 0.75, 1.0)
MIN_EVENTS = 50
BLEND = 0.1
CUT = 5


class Cell(msgspec.Struct):
    """One pair of weights, and how good the order is that they give."""

    gamma: float
    beta_sal: float
    ndcg: float
    low: float = 0.0  # against the present weights, 95 times of 100
    high: float = 0.0


class Finding(msgspec.Struct):
    """What a search over the grid says."""

    status: str  # found · skipped
    why: str
    events: int
    present: Cell
    best: Cell
    cells: list[Cell]


def analyse(
    trials: Sequence[Trial],
    constants: Constants,
    gammas: Sequence[float] = GAMMAS,
    betas: Sequence[float] = BETAS,
    min_events: int = MIN_EVENTS,
) -> Finding:
    """The best weights of the grid, if the trials can tell."""
    usable = judged(trials)
    before = _scores(usable, constants)
    present = Cell(constants.gamma, constants.beta_sal, fmean(before) if before else 0.0)
    if len(usable) < max(min_events, 2):
        why = (
            f"{len(usable)} of {len(trials)} logged searches were followed by use of something they found; "
            f"at least {max(min_events, 2)} are needed before weights are moved (--min-events)."
        )
        return Finding("skipped", why, len(usable), present, present, [])
    grid = {(gamma, beta): replace(constants, gamma=gamma, beta_sal=beta) for gamma in gammas for beta in betas}
    scores = {cell: _scores(usable, weights) for cell, weights in grid.items()}
    cells = [Cell(gamma, beta, fmean(found)) for (gamma, beta), found in scores.items()]
    cells.sort(key=lambda cell: _preference(cell.ndcg, cell, present))
    # The best of many is always better on what it was chosen by: on pure noise in 24 of 100 logs, as measured.
    best = min(cells, key=lambda cell: _preference(fmean(scores[cell.gamma, cell.beta_sal][::2]), cell, present))
    gains = [new - old for new, old in zip(scores[best.gamma, best.beta_sal][1::2], before[1::2], strict=True)]
    best.low, best.high = interval(gains)
    if best.low <= 0:
        why = "no weights of the grid are better than the present ones beyond what chance explains."
        return Finding("skipped", why, len(usable), present, best, cells)
    why = f"nDCG@{CUT} {present.ndcg:.4f} -> {best.ndcg:.4f} over {len(usable)} searches."
    return Finding("found", why, len(usable), present, best, cells)


def _scores(trials: Sequence[Trial], constants: Constants) -> list[float]:
    return [ndcg(trial.under(constants), CUT) for trial in trials]


def _preference(score: float, cell: Cell, present: Cell) -> tuple[float, float]:
    """The better first; of equals the one nearest to what is: no evidence is no reason to move."""
    return -score, _distance(cell, present)


def _distance(cell: Cell, present: Cell) -> float:
    return abs(cell.gamma - present.gamma) + abs(cell.beta_sal - present.beta_sal)


def step(old: float, best: float, blend: float) -> float:
    """Part of the way: an exponential moving average."""
    return old * (1 - blend) + best * blend


def proposal(finding: Finding, blend: float) -> dict[str, float]:
    """What tuning would write."""
    if finding.status != "found":
        return {}
    return {
        "gamma": step(finding.present.gamma, finding.best.gamma, blend),
        "beta_sal": step(finding.present.beta_sal, finding.best.beta_sal, blend),
    }


# ── proof on logs whose best weights are known ───────────────────────────────────────────────────

SIMULATED_EVENTS = 2000
SIMULATED_RESULTS = 12
# Results among which only habit decides, and how surely the truly best of them is the one that is used:
# a difference of a thousandth already tells.
NEAR_EQUALS = (0.64, 0.66)
SHARPNESS = 3000.0
# Logs in which nothing is planted: the weights stay in nearly all of them.
NOISY_LOGS = 5
STANDARD = Constants()
PLANTED = tuple((gamma, beta) for gamma in (0.005, 0.05, 0.1) for beta in (0.1, 0.25, 0.75))


def simulated_trials(gamma: float, beta: float, seed: int, events: int = SIMULATED_EVENTS) -> list[Trial]:
    """Trials of people who want what these weights put on top: they choose by that score, not quite surely."""
    dice = random.Random(seed)
    truth = Constants(gamma=gamma, beta_sal=beta)
    return [_simulated(dice, event, truth) for event in range(1, events + 1)]


def _simulated(dice: random.Random, event: int, truth: Constants) -> Trial:
    share = dice.choice(list(SHARES.values()))
    parts = []
    for number in range(1, SIMULATED_RESULTS + 1):
        base, importance, company = dice.uniform(*NEAR_EQUALS), dice.uniform(0, 1.3), dice.expovariate(1 / 6)
        parts.append(Part(number, f"entity {number}", number, number, base, importance, 1.0, company))
    by_relevance = sorted(parts, key=lambda part: -part.base)
    for place, part in enumerate(by_relevance, 1):
        part.rank = part.baseline_rank = place
    scores = [part.score(share, truth) for part in parts]
    appeal = [exp(SHARPNESS * (score - max(scores))) for score in scores]
    dice.choices(parts, appeal)[0].relevance = 1
    return Trial(event, share, LIMBIC, parts)


def simulate(seed: int = 0, events: int = SIMULATED_EVENTS) -> dict[str, Any]:
    """Plant known weights, tune from others, and see whether they are found; and whether noise moves anything."""
    rows = []
    for number, (gamma, beta) in enumerate(PLANTED):
        finding = analyse(simulated_trials(gamma, beta, seed + number, events), Constants())
        found = (finding.best.gamma, finding.best.beta_sal)
        rows.append(
            {
                "planted": {"gamma": gamma, "beta_sal": beta},
                "found": {"gamma": found[0], "beta_sal": found[1]},
                "ndcg_before": round(finding.present.ndcg, 4),
                "ndcg_found": round(finding.best.ndcg, 4),
                "status": finding.status,
                "is_found": finding.status == "found" and found == (gamma, beta),
            }
        )
    noise = [analyse(_noisy(seed + number, events), Constants()).status for number in range(NOISY_LOGS)]
    return {
        "events": events,
        "runs": rows,
        "all_found": all(row["is_found"] for row in rows),
        "noise": {"logs": NOISY_LOGS, "moved": NOISY_LOGS - noise.count("skipped")},
    }


def _noisy(seed: int, events: int) -> list[Trial]:
    """Trials of people who open anything: no weights explain that."""
    dice = random.Random(f"noise {seed}")
    trials = simulated_trials(STANDARD.gamma, STANDARD.beta_sal, seed, events)
    for trial in trials:
        for part in trial.parts:
            part.relevance = 0
        dice.choice(trial.parts).relevance = 1
    return trials
