"""Shadow trials: every search is ranked twice, with habit and without, and what was used afterwards judges both.

The limbic order is the one that is answered, always; the baseline is only written down. A trial as it is
read back is what metrics and the tuner work on."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5

import msgspec

from mcp_memory.search.limbic import Constants, habit

# Of a hundred queries so many are marked as the baseline arm, by the query's hash: the same query, the same arm.
BASELINE_PERCENT = 10
BASELINE, LIMBIC = 0, 1


def hash_of(query: str) -> str:
    return md5(query.encode(), usedforsecurity=False).hexdigest()


def arm(query: str) -> int:
    """The arm a query belongs to, in every process and at any time."""
    return BASELINE if int(hash_of(query), 16) % 100 < BASELINE_PERCENT else LIMBIC


class Part(msgspec.Struct):
    """One result of a trial with what made its score."""

    entity_id: int
    name: str
    rank: int
    baseline_rank: int
    base: float
    importance: float
    temporal_factor: float
    cooc_boost: float
    echo: float = 0.0
    relevance: int = 0  # how often it was used after this search

    def score(self, share: float, constants: Constants) -> float:
        """What these constants would have made of it."""
        return self.base * habit(self.importance, self.temporal_factor, self.cooc_boost, share, constants, self.echo)


class Trial(msgspec.Struct):
    """One search as it was logged, with the use that followed."""

    event_id: int
    share: float  # how much its query let habit say
    arm: int
    parts: list[Part]

    @property
    def is_judged(self) -> bool:
        """Was anything used, so that one order can be better than another?"""
        return any(part.relevance for part in self.parts)

    def as_answered(self) -> list[int]:
        """The relevance of each result, in the order that was answered."""
        return [part.relevance for part in sorted(self.parts, key=lambda part: part.rank)]

    def as_baseline(self) -> list[int]:
        """The same in the order of relevance alone."""
        return [part.relevance for part in sorted(self.parts, key=lambda part: part.baseline_rank)]

    def under(self, constants: Constants) -> list[int]:
        """The same in the order that these constants would have given."""
        order = sorted(self.parts, key=lambda part: (-part.score(self.share, constants), part.baseline_rank))
        return [part.relevance for part in order]


def judged(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.is_judged]
