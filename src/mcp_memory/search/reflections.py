"""Finding reflections: by their words and by their meaning, fused by rank, the newer of two equals first.

The law: filters come before everything else, so they never starve a result; and a score lies between 0 and 1
whatever found it, so that it can be compared with the next search's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mcp_memory.search.folding import words
from mcp_memory.search.limbic import Constants, decay
from mcp_memory.search.rrf import RRF_K, rrf
from mcp_memory.search.stems import stems, variants
from mcp_memory.search.stopwords import STOP_WORDS
from mcp_memory.search.times import seconds_of

if TYPE_CHECKING:
    from mcp_memory.facts import Reflection

K1, B = 1.2, 0.75


class ReflectionIndex:
    """The words of every reflection. A reflection never changes, so each is read once."""

    def __init__(self) -> None:
        self._counts: dict[int, dict[str, int]] = {}
        self._lengths: dict[int, int] = {}
        self._holders: dict[str, set[int]] = {}  # who says a word: a query looks at no one else

    def follow(self, reflections: dict[int, Reflection]) -> None:
        """Take in what is new, and let go of what is gone."""
        if len(self._counts) == len(reflections) and self._counts.keys() == reflections.keys():
            return
        for gone in self._counts.keys() - reflections.keys():
            for stem in self._counts.pop(gone):
                self._holders[stem].discard(gone)
            del self._lengths[gone]
        for new in reflections.keys() - self._counts.keys():
            found = stems(words(reflections[new].content))
            counts: dict[str, int] = {}
            for stem in found:
                counts[stem] = counts.get(stem, 0) + 1
            self._counts[new], self._lengths[new] = counts, len(found)
            for stem in counts:
                self._holders.setdefault(stem, set()).add(new)

    def read(self, query: str, ids: Iterable[int]) -> dict[int, tuple[float, float]]:
        """For each reflection that says a word of the query: BM25, and how much of the query it covers."""
        asked = [variants(word) for word in dict.fromkeys(words(query)) if word not in STOP_WORDS] or [
            (word,) for word in dict.fromkeys(words(query))
        ]
        total = len(self._counts)
        mean = sum(self._lengths.values()) / total if total else 1.0
        found: dict[int, tuple[float, float]] = {}
        whole = 0.0
        wanted = set(ids)
        for kinds in asked:
            holders = set().union(*(self._holders.get(kind, ()) for kind in kinds))
            weight = math.log(1 + (total - len(holders) + 0.5) / (len(holders) + 0.5))
            whole += weight
            for one in holders & wanted:
                counts = self._counts[one]
                often = sum(counts.get(kind, 0) for kind in kinds)
                dampening = K1 * (1 - B + B * self._lengths[one] / (mean or 1.0))
                score, covered = found.get(one, (0.0, 0.0))
                found[one] = score + weight * often * (K1 + 1) / (often + dampening), covered + weight
        return {one: (score, covered / (whole or 1.0)) for one, (score, covered) in sorted(found.items())}


def best(
    wanted: Sequence[Reflection],
    said: dict[int, tuple[float, float]],
    near: dict[int, float],
    now: float,
    limit: int,
) -> list[tuple[Reflection, float]]:
    """The reflections that fit a query, each with its score, best first. `said`: what their words say of it, `near`:
    what their meaning does, where there is a model."""
    lists = [sorted(said, key=lambda one: -said[one][0]), sorted(near, key=lambda one: -near[one])]
    ranks = rrf(lists)
    # 1 for what stands first in every list there could be: whose words nobody says is half unknown.
    highest = (2 if near else 1) / (RRF_K + 1)
    constants = Constants()
    scored = []
    for thought in wanted:
        if thought.id in ranks:
            close = max(near.get(thought.id, 0.0), 0.0, said.get(thought.id, (0.0, 0.0))[1])
            age = decay(seconds_of(thought.created_at), now, constants.temporal_floor, constants)
            scored.append((thought, (ranks[thought.id] / highest + close) / 2 * age))
    scored.sort(key=lambda pair: (-pair[1], -pair[0].id))
    return scored[:limit]
