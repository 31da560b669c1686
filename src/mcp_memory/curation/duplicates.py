"""Which observations of one entity say the same: by meaning (cosine) or because one holds the other's words.

The law: a match is a marker for somebody to look at; nothing is merged or dropped because of it. Comparing is a
product of matrices, never a loop over pairs, and takes memory for the texts and not for the pairs; where there is
no numpy, only pairs that share a word are looked at."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_memory.embedding.numerics import has_numpy, numpy
from mcp_memory.search.folding import words

if TYPE_CHECKING:
    from mcp_memory.embedding.numerics import Floats

# The documented thresholds. A cosine of this much, or, where one text is at least twice as long as the other, this
# share of the shorter one's words in the longer.
SAME, CONTAINED, LONGER = 0.85, 0.7, 2.0
# The cosine at which a model means what the documented one means by 0.85: measured by bench/duplicates.py.
SAME_OF_MODEL = {"universal-sentence-encoder-multilingual-3": 0.80}
COSINE, CONTAINMENT = "cosine", "containment"
# Rows compared at a time: what comparing takes in memory grows with the observations, not with their square.
BLOCK = 256
# A threshold that is met exactly is met, whatever float32 makes of it.
GRACE = 1e-6
# One answer never lists more pairs than this, the best first; nor more observations of one cluster, and of all.
MOST_PAIRS, MOST_OF_ONE, MOST_OF_ALL = 200, 50, 500
# Words that turn a sentence into its opposite.
NEGATIONS = frozenset("no not never without nor isn aren wasn doesn don didn ya sin nunca jamas tampoco ni".split())


class Match(NamedTuple):
    """Two texts by their places, the earlier one first, and what makes them alike."""

    one: int
    other: int
    score: float
    kind: str


def on_scale(cosines: Floats, model: str) -> Floats:
    """Cosines of a model on the scale of the documented one, on which a threshold is given; none below 0."""
    same = SAME_OF_MODEL.get(model, SAME)
    np = numpy()
    scaled = np.where(cosines < same, cosines * (SAME / same), 1 - (1 - cosines) * ((1 - SAME) / (1 - same)))
    positive: Floats = np.maximum(scaled, 0)
    return positive


class Alike(NamedTuple):
    """Which of the texts before it are like one text: their places, how much, and whether by meaning. Columns of
    numpy, or lists where there is none: of a thousand runs of the same job half a million pairs are alike."""

    row: int
    places: Any
    scores: Any
    by_meaning: Any


class Said:
    """Texts in order, read once to be compared: who says which word, and the vector of each where there are some.

    A row of NaN is a text whose vector is not there: it is compared by its words only."""

    def __init__(self, model: str = "") -> None:
        self.texts: list[str] = []
        self._model = model
        self._sizes = array("q")
        self._counts = array("q")  # of different words
        self._sayers: defaultdict[str, array[int]] = defaultdict(partial(array, "i"))
        self._vectors: Floats | None = None

    @property
    def has_vectors(self) -> bool:
        return self._vectors is not None

    def add(self, texts: Sequence[str], vectors: Floats | None = None) -> None:
        """More of them, behind those that are there. Once with vectors, always with vectors."""
        for row, text in enumerate(texts, len(self.texts)):
            said = frozenset(words(text))
            self._sizes.append(len(text))
            self._counts.append(len(said))
            for word in said:
                self._sayers[word].append(row)
        self.texts += texts
        if vectors is not None:
            self._vectors = vectors if self._vectors is None else numpy().concatenate((self._vectors, vectors))

    def alike(self, rows: Sequence[int], same: float = SAME, contained: float = CONTAINED) -> Iterator[Alike]:
        """Each of these texts, in order, compared with those that stand before it."""
        if not has_numpy():
            yield from (self._plainly(row, contained) for row in rows)
            return
        np = numpy()
        for start in range(0, len(rows), BLOCK):
            lot = list(rows[start : start + BLOCK])
            if self._vectors is None:
                cosines = np.full((len(lot), max(lot)), np.nan, np.float32)
            else:
                cosines = on_scale(self._vectors[lot] @ self._vectors[: max(lot)].T, self._model)
            for row, near in zip(lot, cosines, strict=True):
                with np.errstate(invalid="ignore"):  # a comparison with NaN is no match
                    yield self._compared(row, np.minimum(near[:row], 1), same, contained)

    def _compared(self, row: int, cosines: Floats, same: float, contained: float) -> Alike:
        np = numpy()
        by_meaning = cosines >= same - GRACE
        share = self._share(row)
        places = np.flatnonzero(by_meaning if share is None else by_meaning | (share >= contained - GRACE))
        means = by_meaning[places]
        scores = cosines[places] if share is None else np.where(means, cosines[places], share[places])
        return Alike(row, places, scores, means)

    def _share(self, row: int) -> Any:
        """How much of the shorter text's words it has in common with each before it; 0 where neither is at least
        twice as long, None where that is so of all."""
        np = numpy()
        own, others = self._sizes[row], np.frombuffer(self._sizes, np.int64, row)
        is_longer = np.maximum(own, others) >= LONGER * np.maximum(np.minimum(own, others), 1)
        sayers = [np.frombuffer(self._sayers[word], np.int32) for word in frozenset(words(self.texts[row]))]
        if not sayers or not is_longer.any():
            return None
        shared = np.bincount(np.concatenate(sayers), minlength=row)[:row]
        of_shorter = np.where(own < others, self._counts[row], np.frombuffer(self._counts, np.int64, row))
        return np.where(is_longer & (of_shorter > 0), shared / np.maximum(of_shorter, 1), 0)

    def _plainly(self, row: int, contained: float) -> Alike:
        """What `_compared` finds by words, without a column."""
        own = frozenset(words(self.texts[row]))
        shared = Counter(other for word in own for other in self._sayers[word] if other < row)
        places, scores = [], []
        for one, common in sorted(shared.items()):
            shorter, longer = sorted((one, row), key=lambda place: self._sizes[place])
            share = common / self._counts[shorter]
            if self._sizes[longer] >= LONGER * self._sizes[shorter] and share >= contained - GRACE:
                places.append(one)
                scores.append(share)
        return Alike(row, places, scores, [False] * len(places))


class Found(NamedTuple):
    """How many pairs are alike, the best of them, and what is alike directly or by way of others."""

    total: int
    best: list[Match]
    clusters: list[list[int]]


def compare(
    texts: Sequence[str],
    vectors: Floats | None,
    *,
    model: str = "",
    same: float = SAME,
    contained: float = CONTAINED,
    since: int = 0,
) -> Found:
    """Every text at `since` or behind it with all before it."""
    said = Said(model)
    said.add(texts, vectors)
    total, best, groups = 0, Best(), Groups(len(texts))
    for alike in said.alike(range(since, len(texts)), same, contained):
        if len(alike.places):
            total += len(alike.places)
            best.take(alike)
            groups.join(alike.row, alike.places)
    return Found(total, best.matches(), groups.listed())


class Best:
    """The best pairs of all that come by: no more of them are kept than are told."""

    def __init__(self) -> None:
        self._kept: list[Match] = []
        self._least = -1.0  # once there are enough: what a pair must beat

    def take(self, alike: Alike) -> None:
        row, places, scores, means = alike
        if has_numpy():
            # Of two that are as good the earlier one counts, so that what merely equals the last is too late.
            top = numpy().flatnonzero(scores > self._least)
            if len(top) > MOST_PAIRS:
                top = top[numpy().argsort(-scores[top], kind="stable")[:MOST_PAIRS]]
            places, scores, means = places[top].tolist(), scores[top].tolist(), means[top].tolist()
        self._kept += (
            Match(one, row, score, COSINE if is_meant else CONTAINMENT)
            for one, score, is_meant in zip(places, scores, means, strict=True)
        )
        if len(self._kept) > 20 * MOST_PAIRS:
            self._kept = self.matches()
            self._least = self._kept[-1].score

    def matches(self) -> list[Match]:
        return sorted(self._kept, key=lambda match: (-match.score, match.other, match.one))[:MOST_PAIRS]


class Groups:
    """Union-find over texts in order. A text keeps the number of the group it came into; groups that turn out to be
    one point at the first of them."""

    def __init__(self, size: int) -> None:
        self._number: Any = numpy().arange(size) if has_numpy() else list(range(size))
        self._is_inside: Any = numpy().zeros(size, bool) if has_numpy() else [False] * size
        self._above: dict[int, int] = {}

    def join(self, row: int, places: Any) -> None:
        """This text is like those before it at these places."""
        self._is_inside[row] = True
        if has_numpy():
            self._is_inside[places] = True
            numbers = numpy().unique(self._number[places]).tolist()
        else:
            for one in places:
                self._is_inside[one] = True
            numbers = {self._number[one] for one in places}
        heads = {self._head_of(number) for number in numbers}
        first = min(heads)
        self._above |= dict.fromkeys(heads, first)
        self._number[row] = first

    def _head_of(self, number: int) -> int:
        while (above := self._above.get(number, number)) != number:
            self._above[number] = number = self._above.get(above, above)
        return number

    def listed(self) -> list[list[int]]:
        groups: dict[int, list[int]] = {}
        for row in (row for row, is_inside in enumerate(self._is_inside) if is_inside):
            groups.setdefault(self._head_of(int(self._number[row])), []).append(row)
        return list(groups.values())


def told_pairs(texts: Sequence[str], ids: Sequence[int], found: Sequence[Match]) -> list[dict[str, Any]]:
    """The pairs as documented, with the ids that supersede or delete one of them."""
    told = []
    for match in found:
        one, other = texts[match.one], texts[match.other]
        pair: dict[str, Any] = {
            "obs_text_a": one,
            "obs_text_b": other,
            "similarity_score": round(match.score, 2),
            "match_type": match.kind,
            "id_a": ids[match.one],
            "id_b": ids[match.other],
        }
        differs = difference(one, other)
        told.append({**pair, "differs": differs} if differs else pair)
    return told


def told_clusters(
    texts: Sequence[str], ids: Sequence[int], flags: Sequence[int], clusters: Sequence[list[int]]
) -> tuple[list[dict[str, Any]], bool]:
    """The clusters as documented; of large ones the beginning. Was anything left out?"""
    told: list[dict[str, Any]] = []
    left, is_cut = MOST_OF_ALL, False
    for rows in clusters:
        shown = rows[: min(MOST_OF_ONE, left)]
        if len(shown) > 1:
            seen = [{"observation_id": ids[row], "content": texts[row], "similarity_flag": flags[row]} for row in shown]
            told.append({"observations": seen, "size": len(rows)})
        left -= len(shown)
        is_cut = is_cut or len(shown) < len(rows)
    return told, is_cut


def difference(one: str, other: str) -> str | None:
    """What two texts that read alike do not agree on: then one may replace the other rather than repeat it."""
    left, right = words(one), words(other)
    if _numbers(left) != _numbers(right) and _numbers(left) and _numbers(right):
        return "numbers"
    if NEGATIONS.isdisjoint(left) != NEGATIONS.isdisjoint(right):
        return "negation"
    return None


def _numbers(said: Sequence[str]) -> set[str]:
    return {word for word in said if word[0].isdigit()}
