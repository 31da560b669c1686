"""Reciprocal rank fusion, as documented: of several lists, each best first, one score for everything in any of them.

It is shown (`rrf_score`) and orders nothing: a rank knows no distance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

RRF_K = 60

Key = TypeVar("Key", bound=Hashable)


def rrf(lists: Sequence[Sequence[Key]]) -> dict[Key, float]:
    """The sum, over the lists it is in, of one by its rank and the constant."""
    scores: dict[Key, float] = {}
    for some in lists:
        for rank, one in enumerate(some, 1):
            scores[one] = scores.get(one, 0.0) + 1 / (RRF_K + rank)
    return scores
