"""When a question comes back, so does what was used after it.

A question is remembered as its telling words, whatever their order and form; an answer as how often it was
used among the times that anything was. The law: an echo is about one question, so use after one question
never says anything about another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain

import msgspec

from mcp_memory.search.folding import words
from mcp_memory.search.stems import variants
from mcp_memory.search.stopwords import STOP_WORDS

# Questions that share fewer of their words are others. The rest count by the cube of what they share: measured on
# questions that come back with three words in ten forgotten, best of the powers one to four, and flat around 0.5.
SAME_ENOUGH = 0.5
SHARPNESS = 3
# An answer used once, the only time, is half as sure as can be.
DOUBT = 1.0
# Questions remembered; when there are more, the older half goes.
MOST_QUESTIONS = 5000


class Asked(msgspec.Struct):
    """One question, how many searches for it led to something, and to what."""

    telling: frozenset[str]
    led: int = 0
    used: dict[str, int] = {}


class Echoes:
    """Every question that led to something. Written by one thread at a time, asked by any."""

    def __init__(self) -> None:
        self._questions: dict[frozenset[str], Asked] = {}
        self._with: dict[str, list[Asked]] = {}

    def note(self, query: str, name: str, is_first: bool) -> None:
        """This was used after a search for this; `is_first`: nothing was used after that search before."""
        telling = telling_words(query)
        if not telling:
            return
        asked = self._questions.get(telling)
        if asked is None:
            asked = self._questions[telling] = Asked(telling)
            for word in telling:
                self._with[word] = [*self._with.get(word, ()), asked]
            if len(self._questions) > MOST_QUESTIONS:
                self._forget_older_half()
        asked.led += is_first
        # Replaced, not altered: another thread may be ranking.
        asked.used = {**asked.used, name: asked.used.get(name, 0) + 1}

    def of(self, query: str) -> Mapping[str, float]:
        """For each name how sure it is, from 0 to 1, that this question leads there."""
        telling = telling_words(query)
        near = Counter(map(id, chain.from_iterable(self._with.get(word, ()) for word in telling)))
        if not near:
            return {}
        known = {id(asked): asked for word in telling for asked in self._with.get(word, ())}
        led, used = DOUBT, Counter[str]()
        for ident, shared in near.items():
            asked = known[ident]
            likeness = shared / (len(telling) + len(asked.telling) - shared)
            if likeness >= SAME_ENOUGH:
                weight = likeness**SHARPNESS
                led += weight * asked.led
                for name, count in asked.used.items():
                    used[name] += weight * count  # type: ignore[assignment]  # a Counter adds up anything
        return {name: min(weight / led, 1.0) for name, weight in used.items()}

    def forget(self, name: str) -> None:
        """Nothing leads there any more."""
        for asked in self._questions.values():
            if name in asked.used:
                asked.used = {other: count for other, count in asked.used.items() if other != name}

    def rename(self, old: str, new: str) -> None:
        """What led to the one leads to the other."""
        for asked in self._questions.values():
            if old in asked.used:
                count = asked.used[old] + asked.used.get(new, 0)
                asked.used = {**{other: n for other, n in asked.used.items() if other != old}, new: count}

    def _forget_older_half(self) -> None:
        kept = list(self._questions.values())[MOST_QUESTIONS // 2 :]
        self._questions = {asked.telling: asked for asked in kept}
        index: dict[str, list[Asked]] = {}
        for asked in kept:
            for word in asked.telling:
                index.setdefault(word, []).append(asked)
        self._with = index


def telling_words(query: str) -> frozenset[str]:
    """A question without function words and endings."""
    found = words(query)
    return frozenset(variants(word)[0] for word in found if word not in STOP_WORDS) or frozenset(found)
