"""Topics: what belongs together among the observations of one entity, and what to call it.

By meaning where there are vectors (agglomerative, average linkage), by shared words where there are none. The law:
a topic has several observations. One that goes with nothing joins the topic nearest to it or has no topic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import msgspec

from mcp_memory.embedding.numerics import numpy
from mcp_memory.search.folding import WORD, fold
from mcp_memory.search.stems import stems
from mcp_memory.search.stopwords import STOP_WORDS

if TYPE_CHECKING:
    from mcp_memory.embedding.numerics import Floats

# The documented cut: two clusters are one topic as long as their members are this similar on average.
TOGETHER = 0.5
# What a model of another scale means by that: measured by bench/duplicates.py on labelled topics.
TOGETHER_OF_MODEL = {"universal-sentence-encoder-multilingual-3": 0.2}
# Fewer observations are no topic. They join one that they are at least this near to, of what holds a topic together.
SMALLEST, NEAR_ENOUGH = 3, 0.8
# Clustering costs the square of this; of more observations so many are clustered and the rest joins them.
MOST_CLUSTERED = 2000
# A word that so large a part of the observations share is about the entity, not about a topic.
TOO_COMMON = 0.5
# What is done with anything, whatever it is about.
EVERYWHERE = frozenset(
    "usa usan usar usado usada uso use uses used using user tipo nuevo nueva new add added nombre name "
    "empieza termina inicio fin via etc".split()
)
MEANING, WORDS = "meaning", "words"


class Topic(msgspec.Struct):
    """Observations by their places, in order, and what they are about."""

    name: str
    rows: list[int]


class Topics(msgspec.Struct, frozen=True):
    """What the observations of an entity are about, by their places. `rest` goes with nothing."""

    groups: list[list[int]]
    rest: list[int]
    by: str = WORDS

    def named(self, texts: Sequence[str]) -> list[Topic]:
        """The topics with their names: half the work, and a report needs none of them."""
        told = names([[texts[row] for row in group] for group in self.groups])
        return [Topic(name, group) for name, group in zip(told, self.groups, strict=True)]


def topics_of(texts: Sequence[str], vectors: Floats | None = None, model: str = "") -> Topics:
    """The topics of these texts, in the order in which each first comes up."""
    if vectors is not None and len(texts) > 1:
        together = TOGETHER_OF_MODEL.get(model, TOGETHER)
        groups = _large_enough(clustered(vectors, together), vectors, together * NEAR_ENOUGH)
        if len(groups) > 1:
            return _in_order(len(texts), groups, MEANING)
    return _in_order(len(texts), _by_words(texts), WORDS)


def _in_order(total: int, groups: list[list[int]], by: str) -> Topics:
    used = {row for group in groups for row in group}
    rest = [row for row in range(total) if row not in used]
    return Topics(sorted(sorted(group) for group in groups), rest, by)


# ── by meaning ───────────────────────────────────────────────────────────────────────────────────


def clustered(vectors: Floats, together: float) -> list[list[int]]:
    """Agglomerative clustering with average linkage, cut at a cosine. Vectors have length 1."""
    np = numpy()
    total = len(vectors)
    rows = range(total) if total <= MOST_CLUSTERED else np.linspace(0, total - 1, MOST_CLUSTERED).astype(int).tolist()
    chosen = vectors if total <= MOST_CLUSTERED else vectors[rows]
    head = list(range(len(chosen)))
    for one, other, height in linkage(1 - chosen @ chosen.T):
        if height <= 1 - together + 1e-6:
            head[_head(head, one)] = _head(head, other)
    groups: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(_head(head, place), []).append(row)
    return _joined(list(groups.values()), vectors, together) if total > MOST_CLUSTERED else list(groups.values())


def _head(head: list[int], place: int) -> int:
    while head[place] != place:
        head[place] = place = head[head[place]]
    return place


def linkage(distances: Any) -> list[tuple[int, int, float]]:
    """Every merge of average linkage: of which two, at which distance; the second stands for both from then on.

    Along a chain of nearest neighbours: quadratic in all, where looking for the nearest pair each time is cubic."""
    np = numpy()
    apart = np.array(distances, dtype=np.float64)
    np.fill_diagonal(apart, np.inf)
    sizes = np.ones(len(apart))
    merges: list[tuple[int, int, float]] = []
    chain: list[int] = []
    alive = dict.fromkeys(range(len(apart)))
    while len(alive) > 1:
        if not chain:
            chain.append(next(iter(alive)))
        while True:
            tip = chain[-1]
            nearest = int(apart[tip].argmin())
            if len(chain) > 1 and apart[tip, chain[-2]] <= apart[tip, nearest]:
                break  # each is the other's nearest
            chain.append(nearest)
        one, other = chain.pop(), chain.pop()
        merges.append((one, other, float(apart[one, other])))
        merged = (sizes[one] * apart[one] + sizes[other] * apart[other]) / (sizes[one] + sizes[other])
        apart[other], apart[:, other] = merged, merged
        apart[one], apart[:, one] = np.inf, np.inf
        apart[other, other] = np.inf
        sizes[other] += sizes[one]
        del alive[one]
    return merges


def _joined(groups: list[list[int]], vectors: Floats, enough: float) -> list[list[int]]:
    """Let everything that stands in no group join the one it is nearest to, if that is near enough."""
    if not groups:
        return groups
    np = numpy()
    centres = np.stack([vectors[group].mean(axis=0) for group in groups])
    used = {row for group in groups for row in group}
    for row in range(len(vectors)):
        if row not in used:
            near = centres @ vectors[row]
            if near.max() >= enough:
                groups[int(near.argmax())].append(row)
    return groups


def _large_enough(groups: list[list[int]], vectors: Floats, enough: float) -> list[list[int]]:
    return _joined([list(group) for group in groups if len(group) >= SMALLEST], vectors, enough)


# ── by words ─────────────────────────────────────────────────────────────────────────────────────


def _by_words(texts: Sequence[str]) -> list[list[int]]:
    """Topics around the words that say most: how many observations share one, weighed by how rare it is."""
    said = [{term for term, _ in told} for told in _told(texts)]
    spread = Counter(term for each in said for term in each)
    rarity = {
        term: math.log(len(texts) / count) for term, count in spread.items() if 1 < count <= len(texts) * TOO_COMMON
    }
    said_by = [{term for term in each if term in rarity} for each in said]
    open_rows = list(range(len(texts)))
    groups: list[list[int]] = []
    kernels: list[set[str]] = []
    while (best := _best_term([said_by[row] for row in open_rows], rarity)) is not None:
        group = [row for row in open_rows if best in said_by[row]]
        groups.append(group)
        kernels.append(set().union(*(said_by[row] for row in group)))
        open_rows = [row for row in open_rows if best not in said_by[row]]
    for row in open_rows:
        scores = [sum(rarity[term] for term in said_by[row] & kernel) for kernel in kernels]
        if scores and max(scores) > 0:
            groups[scores.index(max(scores))].append(row)
    return groups


def _best_term(said: Sequence[set[str]], rarity: dict[str, float]) -> str | None:
    """The term that holds most together among these, if it holds enough of them."""
    holders = Counter(term for each in said for term in sorted(each))
    large = [term for term, count in holders.items() if count >= SMALLEST]
    return max(large, key=lambda term: holders[term] * rarity[term], default=None)


# ── what to call them ────────────────────────────────────────────────────────────────────────────


def names(groups: Sequence[Sequence[str]]) -> list[str]:
    """For each group of texts the two words that are most its own (c-TF-IDF), each name once."""
    told = iter(_told([text for texts in groups for text in texts]))
    said = [[next(told) for _ in texts] for texts in groups]
    counted = [Counter(term for text in texts for term, _ in text) for texts in said]
    forms = _forms(pair for texts in said for text in texts for pair in text)
    among = Counter(term for counts in counted for term in counts)
    found: list[str] = []
    for number, counts in enumerate(counted, 1):
        total = sum(counts.values())
        # Without the 1 a word of every group would weigh nothing, and a single group would have no name.
        weight = {term: count / total * math.log(1 + len(groups) / among[term]) for term, count in counts.items()}
        best = sorted(weight, key=lambda term: -weight[term])[:2]
        name = " ".join(forms[term] for term in best) or f"Tema {number}"
        found.append(name if name not in found else f"{name} {number}")
    return found


def _forms(told: Iterable[tuple[str, str]]) -> dict[str, str]:
    """How each term is written most often, accents and all; a word of small letters gets a large one."""
    written: dict[str, Counter[str]] = {}
    for term, word in told:
        written.setdefault(term, Counter())[word.capitalize() if word.islower() else word] += 1
    return {term: counts.most_common(1)[0][0] for term, counts in written.items()}


def _told(texts: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Of each text the words that can tell a topic: as a term, and as it is written.

    All texts of an entity are stemmed in one language: alone, many are too short to show theirs."""
    written = [WORD.findall(normalize("NFC", text)) for text in texts]
    folded = [[_folded(word) for word in each] for each in written]
    terms = iter(stems([plain for each in folded for plain, _ in each]))
    told: list[list[tuple[str, str]]] = []
    for each, plains in zip(written, folded, strict=True):
        kept = [
            (next(terms), word, tells)
            for word, (plain, tells) in zip(each, plains, strict=True)
            if plain not in STOP_WORDS
        ]
        told.append([(term, word) for term, word, tells in kept if tells])
    return told


# Most words of a memory are met again: a report over many large entities takes half the time.
@lru_cache(20_000)
def _folded(word: str) -> tuple[str, bool]:
    """A word as it is compared, and whether it can tell a topic."""
    plain = fold(word)
    return plain, len(plain) > 2 and plain not in EVERYWHERE and not any(map(str.isdigit, plain))
