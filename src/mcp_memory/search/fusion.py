"""What words and meaning say of each passage, in one number.

Pure: arrays in, arrays out. A convex combination of both, each brought to a scale of its own, and a few cues that
no text score knows. docs/ranking.md has what was measured, and docs/decisions/0011-fusion.md why it is so."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

from mcp_memory.search.passages import Array, Passages, np, pair
from mcp_memory.search.question import Question

# Shares of the two, and what the cues add. All of it measured on dialogues and flat around these values.
WORDS, MEANING = 0.5, 0.4
NAMED = 0.2  # said by, or about, somebody the question names
TIMELY = 0.1  # tells a time to a question that asks for one
NAMING = 0.1  # somebody is quoted with a name, to a question that asks who, where or which
# Said right after something was asked: as far as the asking fits, by its words and by its meaning.
ANSWERS, ANSWERS_MEANT = 0.1, 0.05
ASKS = 0.05  # taken from what itself asks
WHOLE = WORDS + MEANING + NAMED + TIMELY + ANSWERS + ANSWERS_MEANT
# How much less the words count where even the best passage says few of them.
PROOF = 0.75
# The window of an observation's meaning, by distance: each neighbour counts as much as itself.
WINDOW = (-3, -2, -1, 1, 2)
WINDOW_SHARE = 2.0  # the window counts so much more than the observation alone
# Of a few passages the mean says little: it is drawn towards 0 as if there were so many more of that.
SUPPOSED = 5.0


class Said(NamedTuple):
    """What the words of all passages say to a question."""

    highest: float  # of any passage
    possible: float  # what a passage would get that said all of it

    @property
    def covered(self) -> float:
        """How much of that the best one gets, 0 to 1."""
        return min(1.0, self.highest / self.possible) if self.possible else 0.0

    @property
    def factor(self) -> float:
        """The best passage gets the more, the more of the question it says: one common word proves little."""
        return WORDS * self.covered**PROOF / self.highest if self.highest else 0.0


class Meant(NamedTuple):
    """What the meaning of all passages is to a question."""

    mean: float
    highest: float

    @property
    def factor(self) -> float:
        span = self.highest - self.mean
        return MEANING / span if span > 1e-6 and self.highest > 0 else 0.0


def windowed(passages: Passages, cosines: Array, is_whole: bool) -> Array:
    """What observations mean together with their neighbours; nan stays nan and adds nothing. `is_whole`: there is none.

    The vector of a window is the sum of its vectors; the product with a sum is the sum of the products."""
    if not passages.joins:
        return cosines
    known = None if is_whole else ~np.isnan(cosines)
    own = cosines if known is None else np.where(known, cosines, np.float32(0))
    total, weight = own.copy(), np.ones(len(own), np.float32)
    for distance in WINDOW:
        if distance in passages.joins:
            here, there = pair(len(own), distance)
            share = passages.joins[distance][here]
            if known is not None:
                share = share * known[there]
            total[here] += share * own[there]
            weight[here] += share
    total /= weight
    total *= np.float32(WINDOW_SHARE)
    total += own
    total /= np.float32(1 + WINDOW_SHARE)
    return total if known is None else np.where(known, total, np.float32(np.nan))


def meant(meanings: Sequence[Array]) -> Meant:
    """Of all passages that may be found and have a vector."""
    count, total, highest = 0, 0.0, 0.0
    for some in meanings:
        if len(some):
            best = float(some.max())
            if isnan(best):
                some = some[~np.isnan(some)]
                best = float(some.max(initial=0.0))
            count, total, highest = count + len(some), total + float(some.sum()), max(highest, best)
    return Meant(total / (count + SUPPOSED), highest)


def fused(
    passages: Passages,
    words: Array,
    said: Said,
    meaning: Array | None,
    meant: Meant,
    named: Array | None,
    question: Question,
) -> Array:
    """A score for each passage, 0 to about 1; 0 where neither words nor meaning say anything."""
    total = words * np.float32(said.factor)
    replies = None if passages.answers is None else total[:-1] * np.float32(ANSWERS / WORDS)
    if meaning is not None and meant.factor:
        near = meaning - np.float32(meant.mean)
        np.fmax(near, np.float32(0), out=near)  # of nan and 0 it takes the number
        near *= np.float32(meant.factor)
        total += near
        if replies is not None:
            replies += near[:-1] * np.float32(ANSWERS_MEANT / MEANING)
    nothing = total <= 0
    if replies is not None:
        total[1:] += replies * passages.answers
    if named is not None:
        total += np.float32(NAMED) * named
    if question.is_about_time:
        total += np.float32(TIMELY) * passages.timely
    if question.is_about_name:
        total += np.float32(NAMING) * passages.naming
    if passages.questions is not None:
        total -= np.float32(ASKS) * passages.questions
        np.maximum(total, np.float32(1e-6), out=total)
    total[nothing] = 0
    return total
