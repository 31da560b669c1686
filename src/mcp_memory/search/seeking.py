"""From a question to ranked entities with the observations that answer it.

Words and meaning find passages, cues lift those that fit (fusion); the best passages bring their entities, and
habit has the last, bounded word on the order of those. Filters come before any cut, so they never starve it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mcp_memory.embedding.numerics import highest
from mcp_memory.facts import Entity
from mcp_memory.graph import Graph
from mcp_memory.search.bearers import bearers
from mcp_memory.search.filters import Filters
from mcp_memory.search.folding import fold, words
from mcp_memory.search.fusion import WHOLE, Said, fused, meant, windowed
from mcp_memory.search.gathering import Lot, PassageIndex
from mcp_memory.search.limbic import Candidate
from mcp_memory.search.passages import Array, Passages, np
from mcp_memory.search.question import Question, as_said, read
from mcp_memory.search.rrf import rrf
from mcp_memory.search.stems import stems
from mcp_memory.search.times import seconds_of
from mcp_memory.search.vectors import Vectors

if TYPE_CHECKING:
    from mcp_memory.embedding.numerics import Floats

# A search shows at least this many observations, however few entities it is asked for.
FEWEST_MATCHES = 20
# Entities ranked for each one asked for.
EXPANSION = 3
# What stands in for a word that nobody says counts less.
KIN = 0.5
# What the best passages say of the question's words, as a share, and the best cosine together: below this, they are
# near misses. Of questions about other conversations and notes it lets one in four pass, of fitting ones three.
ENOUGH, NO_MODEL = 0.5, 0.15
# From this cosine on, meaning is told as a reason.
ALIKE = 0.4
FOUND, NEAR_MISS, NOTHING, INCOMPLETE = "found", "weak", "nothing found", "incomplete index"


class Asked(NamedTuple):
    """A question, and what it means if there is a model to tell."""

    question: Question
    vectors: Vectors | None = None
    meaning: Floats | None = None


class Match(msgspec.Struct):
    """One observation that belongs among the best of a search."""

    owner: int
    observation: int  # 0: the entity itself, of which nothing is said
    score: float
    words: float
    cosine: float  # of what was said itself; nan where nobody knows
    named: bool
    timely: bool


class Hits(msgspec.Struct):
    """What a question found: entities to be ranked, and the best observations of each."""

    status: str
    candidates: list[Candidate]
    matches: dict[int, list[Match]]
    question: Question
    progress: tuple[int, int] | None = None  # passages with a vector, of how many; None where there is no model


class Scored(NamedTuple):
    """A lot of passages, and what the question is to each."""

    passages: Passages
    total: Array
    words: Array
    cosines: Array | None
    named: Array | None


def listen(graph: Graph, query: str) -> tuple[Question, list[str]]:
    """The question, and the wordings that its meaning is the mean of."""
    question = read(query)
    speakers = graph.passages.speakers(question.words)
    return question, list(dict.fromkeys([query, as_said(query, speakers)])) if speakers else [query]


def seek(graph: Graph, asked: Asked, limit: int, filters: Filters) -> Hits:
    """The entities that may answer, with what in them does."""
    question = asked.question
    scored, said, progress = _scored(graph, asked, filters)
    best = _best(scored, max(limit * EXPANSION, FEWEST_MATCHES), limit * EXPANSION)
    best += _asked_for(graph, question, scored, {match.owner for match in best})
    matches: dict[int, list[Match]] = {}
    for match in best:
        matches.setdefault(match.owner, []).append(match)
    status = _status(said, best)
    if progress is not None and progress[0] < progress[1]:
        status = INCOMPLETE
    return Hits(status, _candidates(graph, asked, scored, matches), matches, question, progress)


# ── scores ───────────────────────────────────────────────────────────────────────────────────────


def _scored(graph: Graph, asked: Asked, filters: Filters) -> tuple[list[Scored], Said, tuple[int, int] | None]:
    question, index = asked.question, graph.passages
    lots = index.lots()
    allowed = [_allowed(graph, lot, filters) for lot in lots]
    text, possible = _worded(index, lots, question)
    cosines = _cosines(asked, lots)
    meanings: list[Array | None] = [None] * len(lots)
    for place, (lot, open_to) in enumerate(zip(lots, allowed, strict=True)):
        near = None if cosines is None else windowed(lot.passages, cosines[place], lot.passages.is_whole)
        if open_to is not None:
            text[place] *= open_to
            near = None if near is None else np.where(open_to, near, np.float32(np.nan))
        meanings[place] = near
    said = Said(max((float(some.max()) for some in text if len(some)), default=0.0), possible)
    all_meant = meant([near for near in meanings if near is not None])
    scored = []
    for place, lot in enumerate(lots):
        named = lot.passages.named(question.words)
        near = meanings[place]
        total = fused(lot.passages, text[place], said, near, all_meant, named, question)
        scored.append(Scored(lot.passages, total, text[place], None if cosines is None else cosines[place], named))
    return scored, said, None if cosines is None else _progress(lots, cosines)


def _worded(index: PassageIndex, lots: Sequence[Lot], question: Question) -> tuple[list[Array], float]:
    """What the words of each passage score, and what they could at most."""
    text = [np.zeros(len(lot.passages), np.float32) for lot in lots]
    mean, possible = index.mean_length(), 0.0
    for place, kinds in enumerate(question.subjects, 1):
        known = {stem: said for stem in kinds if (said := index.says(stem))}
        is_unfinished = question.is_unfinished and place == len(question.subjects)
        kin = index.kin(kinds, bool(known), is_unfinished) if is_unfinished or not known else []
        like = {stem: index.says(stem) for stem in kin if stem not in known}
        highest = index.rarity(min((known or like).values(), default=0))
        possible += highest
        worth = {stem: index.rarity(said) for stem, said in known.items()}
        worth |= {stem: KIN * min(index.rarity(said), highest) for stem, said in like.items()}
        for stem, rarity in worth.items():
            for scores, lot in zip(text, lots, strict=True):
                lot.passages.add_scores(scores, stem, rarity, mean)
    return text, possible


def _cosines(asked: Asked, lots: Sequence[Lot]) -> list[Array] | None:
    if asked.vectors is None or asked.meaning is None:
        return None
    seats = [lot.passages.seats for lot in lots] + [lot.passages.bare_seats for lot in lots if len(lot.passages.bare)]
    found = asked.vectors.cosines(asked.meaning, seats)
    bare = iter(found[len(lots) :])
    for cosines, lot in zip(found, lots, strict=False):
        if len(lot.passages.bare):
            cosines[lot.passages.bare] = next(bare)
    return found[: len(lots)]


def _progress(lots: Sequence[Lot], cosines: Sequence[Array]) -> tuple[int, int]:
    """How many passages that count have their vector, of how many."""
    done = total = 0
    for lot, some in zip(lots, cosines, strict=True):
        count = len(some) - lot.hidden
        if lot.passages.is_whole:
            known = count
        else:
            known = int(np.count_nonzero(~np.isnan(some if lot.alive is None else some[lot.alive])))
        done, total = done + known, total + count
    return done, total


def _allowed(graph: Graph, lot: Lot, filters: Filters) -> Array | None:
    """Which passages may be found; None: all of them."""
    passages, masks = lot.passages, []
    if lot.alive is not None:
        masks.append(lot.alive)
    if filters.entity_type:
        of_type = np.zeros(len(passages.owners), bool)
        of_type[passages.places_of(list(graph.ids_of_type(filters.entity_type)))] = True
        masks.append(of_type[passages.slot])
    if filters.status:
        masks.append((passages.status == passages.statuses.get(filters.status, -1))[passages.slot])
    if filters.kind:
        masks.append(passages.kind == passages.kinds.get(filters.kind, -2))
    if filters.after is not None:
        masks.append(passages.written >= filters.after)
    if filters.before is not None:
        masks.append(passages.written <= filters.before)
    return np.logical_and.reduce(masks) if masks else None


# ── the best ─────────────────────────────────────────────────────────────────────────────────────


def _best(scored: Iterable[Scored], passages_wanted: int, entities_wanted: int) -> list[Match]:
    """The best passages of the whole search, and the best one of each of the best entities; the best first."""
    found: list[tuple[float, int, int, int, Scored]] = []
    for one in scored:
        rows = highest(one.total, passages_wanted, above=0.0)
        if not one.passages.is_simple:
            rows = np.unique(np.concatenate([rows, _best_of_entities(one, entities_wanted)]))
        owners = one.passages.owners[one.passages.slot[rows]]
        columns = (one.total[rows].tolist(), owners.tolist(), one.passages.ids[rows].tolist(), rows.tolist())
        found += [(*values, one) for values in zip(*columns, strict=True)]
    found.sort(key=lambda each: (-each[0], each[1], each[2]))
    kept, owners_kept = found[:passages_wanted], {each[1] for each in found[:passages_wanted]}
    for each in found[passages_wanted:]:
        if each[1] not in owners_kept and len(owners_kept) < entities_wanted:
            owners_kept.add(each[1])
            kept.append(each)
    return [_match(*each) for each in kept]


def _asked_for(graph: Graph, question: Question, scored: Iterable[Scored], known: Collection[int]) -> list[Match]:
    """The best passage of each entity whose name is the question, as far as it is not among the best already."""
    found = []
    for one in scored:
        for place in bearers(graph, one.passages, question):
            owner, start = int(one.passages.owners[place]), int(one.passages.starts[place])
            row = start + int(one.total[start : start + int(one.passages.counts[place])].argmax())
            if owner not in known and one.total[row] > 0:
                found.append(_match(float(one.total[row]), owner, int(one.passages.ids[row]), row, one))
    return found


def _match(score: float, owner: int, ident: int, row: int, one: Scored) -> Match:
    return Match(
        owner,
        ident,
        score / WHOLE,
        float(one.words[row]),
        float("nan") if one.cosines is None else float(one.cosines[row]),
        one.named is not None and bool(one.named[row]),
        bool(one.passages.timely[row] > 0),
    )


def _best_of_entities(one: Scored, wanted: int) -> Array:
    """The best row of each of the best entities."""
    best = np.maximum.reduceat(one.total, one.passages.starts)
    places = highest(best, wanted, above=0.0)
    return np.array(
        [
            start + int(one.total[start : start + count].argmax())
            for start, count in zip(
                one.passages.starts[places].tolist(), one.passages.counts[places].tolist(), strict=True
            )
        ],
        np.int64,
    )


def _candidates(
    graph: Graph, asked: Asked, scored: Sequence[Scored], matches: dict[int, list[Match]]
) -> list[Candidate]:
    ends = max((found[0].score for found in matches.values()), default=1.0)
    folded = fold(asked.question.query)
    owners = list(matches)
    distances = _distances(asked, matches)
    ranks = _ranks(matches)
    return [
        _candidate(
            graph, graph.by_id[owner], matches[owner][0].score / ends, ranks.get(owner), distances.get(owner), folded
        )
        for owner in owners
    ]


def _candidate(
    graph: Graph, entity: Entity, relevance: float, rrf_score: float | None, distance: float | None, folded: str
) -> Candidate:
    active = entity.active()
    return Candidate(
        entity_id=entity.id,
        name=entity.name,
        relevance=relevance,
        degree=graph.degree(entity.id),
        changed=seconds_of(entity.updated_at),
        status=entity.status,
        metadata_share=sum(seen.kind == "metadata" for seen in active) / len(active) if active else 0.0,
        is_exact=fold(entity.name) == folded,
        distance=distance,
        rrf_score=rrf_score,
    )


def _distances(asked: Asked, matches: dict[int, list[Match]]) -> dict[int, float]:
    """How far each entity's own text is from the question; where it has no vector yet, its best observation."""
    if asked.vectors is None or asked.meaning is None:
        return {}
    owners = list(matches)
    found, missing = asked.vectors.of_entities(owners)
    cosines = dict(zip(owners, (found @ asked.meaning.reshape(-1)).tolist(), strict=True))
    for owner in missing:
        del cosines[owner]
        known = [match.cosine for match in matches[owner] if match.cosine == match.cosine]
        if known:
            cosines[owner] = max(known)
    return {owner: 1 - cosine for owner, cosine in cosines.items()}


def _ranks(matches: dict[int, list[Match]]) -> dict[int, float]:
    """The documented score of two lists of the entities found, by words and by meaning. Nothing where no word says
    anything: one list is no fusion."""
    by_words = {owner: max(match.words for match in found) for owner, found in matches.items()}
    if not any(by_words.values()):
        return {}
    by_meaning = {
        owner: max((match.cosine for match in found if match.cosine == match.cosine), default=0.0)
        for owner, found in matches.items()
    }
    return rrf([_ordered(by_words), _ordered(by_meaning)])


def _ordered(values: dict[int, float]) -> list[int]:
    return sorted((owner for owner in values if values[owner] > 0), key=lambda owner: (-values[owner], owner))


# ── in words ─────────────────────────────────────────────────────────────────────────────────────


def _status(said: Said, best: Sequence[Match]) -> str:
    if not best:
        return NOTHING
    nearest = max((match.cosine for match in best if match.cosine == match.cosine), default=NO_MODEL)
    return FOUND if said.covered + max(nearest, 0.0) >= ENOUGH else NEAR_MISS


def text_of(graph: Graph, match: Match) -> str:
    """What a match says; an entity without observations says its name."""
    entity = graph.by_id[match.owner]
    return next((seen.text for seen in entity.observations if seen.id == match.observation), entity.name)


def why(graph: Graph, question: Question, matches: Sequence[Match]) -> str:
    """In a few words, what made an entity one of the results."""
    heard = set(stems([word for match in matches[:3] for word in words(text_of(graph, match))]))
    common = [
        word for word, kinds in zip(question.telling, question.subjects, strict=True) if not heard.isdisjoint(kinds)
    ]
    nearest = max((match.cosine for match in matches if match.cosine == match.cosine), default=0.0)
    reasons = [f"words: {', '.join(common)}"] if common else []
    if nearest >= ALIKE:
        reasons.append(f"meaning: {nearest:.2f}")
    if any(match.named for match in matches):
        reasons.append("about whom you name")
    if question.is_about_time and any(match.timely for match in matches):
        reasons.append("tells a time")
    return "; ".join(reasons or ["words beside it" if any(match.words for match in matches) else "a distant meaning"])
