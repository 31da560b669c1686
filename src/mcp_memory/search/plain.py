"""Asking in one's own words where numpy is not installed: the words of the question find what says them.

The law: the same answer as from `seeking`, field by field, and honest about how it came about. Words are
compared by their stems and weighed by how rare they are; neighbours, vectors and times play no part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_memory.facts import Entity
from mcp_memory.search.budget import within
from mcp_memory.search.filters import Filters
from mcp_memory.search.folding import fold, words
from mcp_memory.search.limbic import Candidate, Ranked
from mcp_memory.search.rrf import RRF_K
from mcp_memory.search.stems import stems, variants
from mcp_memory.search.stopwords import STOP_WORDS
from mcp_memory.search.times import seconds_of

if TYPE_CHECKING:
    from mcp_memory.graph import Graph
    from mcp_memory.search.seeker import Seeker

NOTE = "Found by words only: semantic search is not installed (pip install 'mcp-memory-slim[semantic]')."
# Texts are only read for this many of the most promising entities.
MOST_READ = 300
# Entities ranked for each one asked for, and observations shown of one.
EXPANSION, MOST_SHOWN = 3, 5
# What the name and the type of an entity say counts so much for each of its observations.
TITLE_SHARE = 0.5
# A beginning shorter than this begins too many words.
SHORTEST = 3
# Below this share of the question's words, the best observation is only a near miss.
WEAK = 0.34


class Asked(NamedTuple):
    """One telling word of the question."""

    stems: frozenset[str]  # what it may be called in either language
    holders: list[int]  # the entities with a word that begins alike
    weight: float


class Found(NamedTuple):
    """An entity that says some of the words, and the observations that do, the best first."""

    entity: Entity
    score: float
    said: list[tuple[int, str, float]]
    told: int  # the words that its best observation says
    common: list[str]


def answer(seeker: Seeker, query: str, limit: int, filters: Filters, max_tokens: int = 0) -> dict[str, Any]:
    """What search_semantic says."""
    usage = seeker.usage
    began, limit = usage.now(), max(limit, 0)
    with seeker.facts() as graph:
        asked = [_asked(graph, word) for word in _telling(query)]
        found = _best(graph, [one for one in asked if one.holders], limit * EXPANSION, filters)
        folded = fold(query)
        ends = found[0].score if found else 1.0
        candidates = [_candidate(graph, one, ends, place, folded) for place, one in enumerate(found, 1)]
        ranked = usage.rank(query, candidates, limit)[:limit]
    by_id = {one.entity.id: one for one in found}
    results = within(max_tokens, (_result(row, by_id[row.candidate.entity_id]) for row in ranked))
    usage.served(query, ranked[: len(results)], limit=limit, origin=seeker.origin, began=began)
    told = {"results": results, "status": _status(found, len(asked)), "engine": "words", "note": NOTE}
    return told | ({"left_out": len(ranked) - len(results)} if len(results) < len(ranked) else {})


def _telling(query: str) -> list[str]:
    found = list(dict.fromkeys(words(query)))
    return [word for word in found if word not in STOP_WORDS] or found


def _asked(graph: Graph, word: str) -> Asked:
    known = variants(word)
    begins = min((_common_beginning(word, stem) for stem in known), key=len)
    holders = graph.texts.beginning(begins if len(begins) >= SHORTEST else word)
    everyone = max(graph.entity_count, 1)
    return Asked(frozenset((word, *known)), holders, math.log(1 + (everyone + 0.5) / (len(holders) + 0.5)))


def _common_beginning(word: str, stem: str) -> str:
    """A stemmer does not only cut: `happy` becomes `happi`."""
    end = next((place for place, (one, other) in enumerate(zip(word, stem, strict=False)) if one != other), len(stem))
    return word[:end]


def _best(graph: Graph, asked: Sequence[Asked], most: int, filters: Filters) -> list[Found]:
    promise: dict[int, float] = {}
    for one in asked:
        for entity_id in one.holders:
            promise[entity_id] = promise.get(entity_id, 0.0) + one.weight
    promise = {one: score for one, score in promise.items() if filters.let_pass(graph.by_id[one])}
    promising = sorted(promise, key=lambda entity_id: (-promise[entity_id], entity_id))[:MOST_READ]
    read = (_read(graph.by_id[entity_id], asked, filters) for entity_id in promising)
    found = [one for one in read if one is not None]
    found.sort(key=lambda one: (-one.score, one.entity.id))
    return found[:most]


def _read(entity: Entity, asked: Sequence[Asked], filters: Filters) -> Found | None:
    """What this entity says of the words, if it really says one."""
    title = words(f"{entity.name} {entity.entity_type}")
    titled = {number for number, one in enumerate(asked) if not one.stems.isdisjoint((*title, *stems(title)))}
    base = TITLE_SHARE * sum(asked[number].weight for number in titled)
    said: list[tuple[int, str, float]] = []
    told, common = len(titled), set(titled)
    for seen in filter(filters.let_in, entity.active()):
        heard = words(seen.text)
        known = {*heard, *stems(heard)}
        here = {number for number, one in enumerate(asked) if not one.stems.isdisjoint(known)}
        if here:
            # Many words say a thing less clearly than few.
            score = sum(asked[number].weight for number in here) / (1 + math.log1p(len(heard)) / 20)
            said.append((seen.id, seen.text, base + score))
            told = max(told, len(here | titled))
            common |= here
    if not said and (not titled or filters.ask_observations):
        return None
    said.sort(key=lambda one: (-one[2], one[0]))
    score = said[0][2] if said else base
    return Found(entity, score, said, told, [min(asked[number].stems, key=len) for number in sorted(common)])


def _candidate(graph: Graph, found: Found, ends: float, place: int, folded: str) -> Candidate:
    entity, active = found.entity, found.entity.active()
    return Candidate(
        entity_id=entity.id,
        name=entity.name,
        relevance=found.score / ends,
        degree=graph.degree(entity.id),
        changed=seconds_of(entity.updated_at),
        status=entity.status,
        metadata_share=sum(seen.kind == "metadata" for seen in active) / len(active) if active else 0.0,
        is_exact=fold(entity.name) == folded,
        rrf_score=1 / (RRF_K + place),
    )


def _status(found: Sequence[Found], asked: int) -> str:
    if not found:
        return "nothing found"
    return "found" if found[0].told >= WEAK * asked else "weak"


def _result(row: Ranked, found: Found) -> dict[str, Any]:
    entity = found.entity
    return {
        "name": entity.name,
        "entityType": entity.entity_type,
        "observations": entity.texts(),
        "limbic_score": round(row.limbic_score, 4),
        "scoring": {
            "importance": round(row.importance, 4),
            "temporal_factor": round(row.temporal_factor, 4),
            "cooc_boost": round(row.cooc_boost, 4),
            "echo": round(row.echo, 4),
        },
        "rrf_score": round(row.candidate.rrf_score or 0.0, 6),
        "matches": [
            {"id": ident, "observation": text, "score": round(score, 4)}
            for ident, text, score in found.said[:MOST_SHOWN]
        ],
        "why": f"words: {', '.join(found.common)}",
    }
