"""Which observations of one entity say the same: by meaning (cosine) or because one holds the other's words.

The law: a match is a marker for somebody to look at; nothing is merged or dropped because of it. Comparing is a
product of matrices, never a loop over pairs; where there is no numpy, only pairs that share a word are looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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


def matches(
    texts: Sequence[str],
    vectors: Floats | None,
    *,
    model: str = "",
    same: float = SAME,
    contained: float = CONTAINED,
    since: int = 0,
) -> list[Match]:
    """The pairs that are alike and of which the later one stands at `since` or behind it, best first.

    A row of NaN is a text whose vector is not there: it is compared by its words only."""
    if vectors is None and not has_numpy():
        return _best_first(_by_words(texts, contained, since))
    found = [
        match
        for start in range(since, len(texts), BLOCK)
        for match in _in_block(texts, vectors, range(start, min(start + BLOCK, len(texts))), model, same, contained)
    ]
    return _best_first(found)


def _best_first(found: Iterable[Match]) -> list[Match]:
    return sorted(found, key=lambda match: (-match.score, match.one, match.other))


def _by_words(texts: Sequence[str], contained: float, since: int) -> Iterator[Match]:
    """What `_containment` finds, without a matrix."""
    said = [frozenset(words(text)) for text in texts]
    sayers: dict[str, list[int]] = {}
    for row, each in enumerate(said):
        shared = Counter(other for word in each for other in sayers.get(word, ())) if row >= since else Counter()
        for one, common in sorted(shared.items()):
            shorter, longer = sorted((one, row), key=lambda place: len(texts[place]))
            share = common / len(said[shorter])
            if len(texts[longer]) >= LONGER * len(texts[shorter]) and share >= contained - 1e-6:
                yield Match(one, row, share, CONTAINMENT)
        for word in each:
            sayers.setdefault(word, []).append(row)


def _in_block(
    texts: Sequence[str], vectors: Floats | None, rows: range, model: str, same: float, contained: float
) -> Iterator[Match]:
    np = numpy()
    earlier = rows.stop
    share = _containment(texts, rows)
    cosines = np.full((len(rows), earlier), np.nan, dtype=np.float32)
    if vectors is not None:
        cosines = on_scale(vectors[rows.start : rows.stop] @ vectors[:earlier].T, model)
    with np.errstate(invalid="ignore"):  # a comparison with NaN is no match
        # A millionth of grace: a threshold that is met exactly is met, whatever float32 makes of it.
        by_meaning = cosines >= same - 1e-6
        alike = by_meaning | (share >= contained - 1e-6)
    alike &= np.arange(earlier)[None, :] < np.arange(rows.start, rows.stop)[:, None]
    for row, one in zip(*(places.tolist() for places in np.nonzero(alike)), strict=True):
        other = rows.start + row
        if by_meaning[row, one]:
            yield Match(one, other, min(float(cosines[row, one]), 1.0), COSINE)
        else:
            yield Match(one, other, float(share[row, one]), CONTAINMENT)


def _containment(texts: Sequence[str], rows: range) -> Any:
    """How much of the shorter text's words each pair shares; 0 where neither is at least twice as long."""
    np = numpy()
    said = [frozenset(words(text)) for text in texts[: rows.stop]]
    # Only words of this block can be shared with it.
    places: dict[str, int] = {}
    for each in said[rows.start :]:
        for word in each:
            places.setdefault(word, len(places))
    table = np.zeros((rows.stop, len(places)), dtype=np.float32)
    for row, each in enumerate(said):
        table[row, [places[word] for word in each if word in places]] = 1
    shared = table[rows.start :] @ table.T
    lengths = np.array([len(text) for text in texts[: rows.stop]], dtype=np.float32)
    counts = np.array([len(each) for each in said], dtype=np.float32)
    own, others = lengths[rows.start :, None], lengths[None, :]
    of_shorter = np.where(own < others, counts[rows.start :, None], counts[None, :])
    is_longer = np.maximum(own, others) >= LONGER * np.maximum(np.minimum(own, others), 1)
    return np.where(is_longer & (of_shorter > 0), shared / np.maximum(of_shorter, 1), 0)


def clusters(found: Sequence[Match]) -> list[list[int]]:
    """What is alike, directly or by way of others, in order; each text once."""
    head: dict[int, int] = {}

    def head_of(row: int) -> int:
        while (above := head.setdefault(row, row)) != row:
            head[row] = row = head[above]
        return row

    for match in found:
        one, other = sorted((head_of(match.one), head_of(match.other)))
        head[other] = one
    groups: dict[int, list[int]] = {}
    for row in sorted(head):
        groups.setdefault(head_of(row), []).append(row)
    return list(groups.values())


# One answer never lists more pairs than this, the best first; the clusters hold everything.
MOST_PAIRS = 200


def told_pairs(texts: Sequence[str], ids: Sequence[int], found: Sequence[Match]) -> list[dict[str, Any]]:
    """The pairs as documented, with the ids that supersede or delete one of them."""
    told = []
    for match in found[:MOST_PAIRS]:
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
