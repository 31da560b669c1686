"""From relevance to rank: what is used, fresh and used together stands a little higher.

Pure: hits, usage and the time are passed in. The law: habit may reorder near-equals and nothing else.
The parts are the documented formulas; what they may do to a score together is bounded. Who bears the name that
was asked for stands first, whatever status or habit say. docs/ranking.md has reasons and measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log, log2, tanh
from typing import Protocol

import msgspec

from mcp_memory.facts import ACTIVE

HOUR = 3600.0

# What is no longer current stands behind what is, before anything is sorted.
STATUS_FACTORS = {ACTIVE: 1.0, "pausado": 0.85, "completado": 0.7, "archivado": 0.5}
# More than half of what is known of an entity is about the record itself, not about the world.
METADATA_FACTOR = 0.7


class Constants(msgspec.Struct, frozen=True):
    """Everything that can be tuned. Each may stand in db_metadata under its name, and then counts at once."""

    beta_sal: float = 0.5  # importance
    beta_deg: float = 0.15  # relations, within importance
    alpha_cons: float = 0.2  # days on which it was used, within importance
    d_max: float = 15.0
    lambda_hourly: float = 0.0001  # half as fresh after 289 days
    temporal_floor: float = 0.1
    cooc_temporal_floor: float = 0.1
    gamma: float = 0.01  # company
    # How much of what importance and company make together counts, as a logarithm. With 0.1 and the model that ships,
    # what had been popular for other reasons cost 0.4 points [0.9 0.0] among sessions, with 0.05 0.2 [0.6 -0.1]; what
    # questions that come back gain is the same.
    habit_weight: float = 0.05
    habit_reach: float = 0.2  # the most that this may do
    age_reach: float = 0.05  # the same for age
    echo_reach: float = 0.5  # the same for what was used after the same question
    # One visit is no habit: importance is measured against at least this many.
    full_use: float = 7.0


# One would divide by these, or take their logarithm.
NEVER_ZERO = {"d_max", "temporal_floor", "full_use"}


def constants_in(metadata: Mapping[str, str]) -> Constants:
    """The constants that stand there; what is no number above zero is passed over, as if it were not there."""
    said: dict[str, float] = {}
    for name in Constants.__struct_fields__:
        try:
            value = float(metadata[name])
        except (KeyError, ValueError):
            continue
        if 0 <= value < 1e9 and (value or name not in NEVER_ZERO):
            said[name] = value
    return Constants(**said)


class Use(msgspec.Struct):
    """How an entity was used: how often, when last (seconds since 1970), on how many days."""

    count: int = 0
    last: float = 0.0
    days: int = 0


class Company(msgspec.Struct):
    """How often two entities were used after the same search, and when last."""

    count: int = 0
    last: float = 0.0


class UsageView(Protocol):
    """What the ranking asks of usage; entities go by name, which is the same in every store."""

    def use_of(self, name: str) -> Use | None: ...

    def company_of(self, name: str) -> Mapping[str, Company]: ...


class NoUsage:
    """A space in which nothing was used yet."""

    def use_of(self, name: str) -> Use | None:
        return None

    def company_of(self, name: str) -> Mapping[str, Company]:
        return {}


class Candidate(msgspec.Struct, kw_only=True):
    """An entity that a search found, before habit has its say."""

    entity_id: int
    name: str
    relevance: float  # 0 to 1, however it was found
    degree: int = 0
    changed: float | None = None  # seconds since 1970
    status: str = ACTIVE
    metadata_share: float = 0.0  # of its observations
    is_exact: bool = False  # the query is its name
    distance: float | None = None  # cosine; None when only its text was found
    rrf_score: float | None = None


class Ranked(msgspec.Struct):
    """A candidate with its place and what made it. `base` is its relevance after the de-boosts; of who bears the name
    that was asked for, the best there is."""

    candidate: Candidate
    base: float
    importance: float
    temporal_factor: float
    cooc_boost: float
    echo: float  # how sure it is that this question leads here, from what was used after it before
    limbic_score: float
    baseline_rank: int  # from 1: where relevance alone would put it


# ── the documented parts ─────────────────────────────────────────────────────────────────────────


def consolidation(days: float, max_days: float, constants: Constants) -> float:
    """What was used on many days counts more than what was used much on one."""
    return 1 + constants.alpha_cons * log2(1 + days) / log2(1 + max_days) if max_days > 1 else 1.0


def importance(
    uses: float, max_uses: float, degree: int, days: float = 1, max_days: float = 1, *, constants: Constants
) -> float:
    """How much an entity matters, measured against the most used of its rivals."""
    if max_uses <= 0:
        return 0.0
    links = 1 + constants.beta_deg * min(degree, constants.d_max) / constants.d_max
    return log2(1 + uses) / log2(1 + max_uses) * links * consolidation(days, max_days, constants)


def decay(then: float | None, now: float, floor: float, constants: Constants) -> float:
    """1 for this moment or an unknown one, falling to the floor with the hours."""
    if then is None:
        return 1.0
    return max(floor, exp(-constants.lambda_hourly * max(now - then, 0.0) / HOUR))


def cooc(company: Iterable[Company], now: float, constants: Constants) -> float:
    """How well an entity goes with the others that were found."""
    floor = constants.cooc_temporal_floor
    return sum((log2(1 + one.count) * decay(one.last, now, floor, constants) for one in company), 0.0)


def deboost(candidate: Candidate) -> float:
    """What status and kind of observations leave of a relevance."""
    factor = STATUS_FACTORS.get(candidate.status, 1.0)
    return factor * METADATA_FACTOR if candidate.metadata_share > 0.5 else factor


# ── the whole ────────────────────────────────────────────────────────────────────────────────────


def bounded(logarithm: float, reach: float) -> float:
    """The same near zero, never beyond the reach: more of anything always counts, ever less."""
    return reach * tanh(logarithm / reach) if reach > 0 else 0.0


def habit(
    importance: float, temporal_factor: float, cooc_boost: float, share: float, constants: Constants, echo: float = 0.0
) -> float:
    """By what a relevance is multiplied. `share` is how much the query lets habit say (routing)."""
    use = log((1 + constants.beta_sal * importance) * (1 + constants.gamma * cooc_boost)) * constants.habit_weight
    age = bounded(log(temporal_factor), constants.age_reach)
    return exp(share * (bounded(use, constants.habit_reach) + age) + constants.echo_reach * echo)


def rank(
    candidates: Sequence[Candidate],
    usage: UsageView,
    now: float,
    constants: Constants,
    share: float,
    echoes: Mapping[str, float] | None = None,
) -> list[Ranked]:
    """The candidates, best first. `echoes`: for each name how sure it is that the question leads there."""
    rows = _measured(candidates, usage, now, constants, echoes or {})
    rows.sort(key=_by_relevance)
    for place, row in enumerate(rows, 1):
        row.baseline_rank = place
        factor = habit(row.importance, row.temporal_factor, row.cooc_boost, share, constants, row.echo)
        row.limbic_score = row.base * factor
    _keep_exact_up(rows)
    rows.sort(key=lambda row: (-row.limbic_score, row.baseline_rank))
    return rows


def _by_relevance(row: Ranked) -> tuple[float, bool, float, int]:
    """Of several that bear the name, the current one first."""
    return -row.base, not row.candidate.is_exact, -deboost(row.candidate), row.candidate.entity_id


def _measured(
    candidates: Sequence[Candidate],
    usage: UsageView,
    now: float,
    constants: Constants,
    echoes: Mapping[str, float],
) -> list[Ranked]:
    unused = Use()
    uses = [usage.use_of(candidate.name) or unused for candidate in candidates]
    most = max((use.count for use in uses), default=0)
    max_uses = max(most, constants.full_use) if most else 0
    max_days = max((use.days for use in uses), default=1)
    names = {candidate.name for candidate in candidates}
    best = max((candidate.relevance for candidate in candidates), default=0.0)
    return [
        Ranked(
            candidate=candidate,
            # Who asks for a name means who bears it, however much others have to say of it, and be it archived.
            base=best if candidate.is_exact else candidate.relevance * deboost(candidate),
            importance=importance(use.count, max_uses, candidate.degree, use.days or 1, max_days, constants=constants),
            temporal_factor=decay(_fresh(use, candidate), now, constants.temporal_floor, constants),
            cooc_boost=cooc(_among(usage.company_of(candidate.name), names), now, constants),
            echo=echoes.get(candidate.name, 0.0),
            limbic_score=0.0,
            baseline_rank=0,
        )
        for candidate, use in zip(candidates, uses, strict=True)
    ]


def _fresh(use: Use, candidate: Candidate) -> float | None:
    """When it was last used or changed. Where nobody knows of changes, use must not make old."""
    if candidate.changed is None or not use.count:
        return candidate.changed
    return max(use.last, candidate.changed)


def _among(company: Mapping[str, Company], names: set[str]) -> list[Company]:
    if len(company) <= len(names):
        return [one for name, one in company.items() if name in names]
    return [company[name] for name in names if name in company]


def _keep_exact_up(rows: list[Ranked]) -> None:
    """Lift each exact match to the score of the best that relevance puts behind it. Rows in order of relevance."""
    best_behind = 0.0
    for row in reversed(rows):
        if row.candidate.is_exact:
            row.limbic_score = max(row.limbic_score, best_behind)
        best_behind = max(best_behind, row.limbic_score)
