"""From a question to ranked entities with the observations that answer it.

Words find passages; who is named and what tells a time lift those that fit; the best passages bring their
entities, and habit has the last, bounded word on the order of those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from mcp_memory.facts import Entity
from mcp_memory.graph import Graph
from mcp_memory.search.folding import fold, words
from mcp_memory.search.limbic import Candidate
from mcp_memory.search.question import Question, read
from mcp_memory.search.stems import stems
from mcp_memory.search.times import seconds_of

if TYPE_CHECKING:
    from mcp_memory.search.passages import Array, Passages

# What being said by (or about) somebody the question names adds, and telling a time to one that asks for it,
# on a scale where the best text scores 1. Measured on dialogues, and flat around these values.
NAMED, TIMELY = 0.3, 0.2
# A search shows at least this many observations, however few entities it is asked for.
FEWEST_MATCHES = 20
# Entities ranked for each one asked for.
EXPANSION = 3
RRF_K = 60
# Below this share of the question's words, the best passage is only a near miss.
WEAK = 0.34
FOUND, NEAR_MISS, NOTHING = "found", "weak", "nothing found"


class Match(msgspec.Struct):
    """One observation that belongs among the best of a search."""

    owner: int
    observation: int | None
    score: float
    named: bool
    timely: bool


class Hits(msgspec.Struct):
    """What a question found: entities to be ranked, and the best observations of each."""

    status: str
    candidates: list[Candidate]
    matches: dict[int, list[Match]]
    question: Question


def seek(graph: Graph, query: str, limit: int, entity_type: str = "") -> Hits:
    """The entities that may answer, with what in them does."""
    question = read(query)
    best = _best(graph, question, max(limit * EXPANSION, FEWEST_MATCHES), entity_type)
    matches: dict[int, list[Match]] = {}
    for match in best:
        matches.setdefault(match.owner, []).append(match)
    ends = max((match.score for match in best), default=1.0) or 1.0
    folded = fold(query)
    candidates = [
        _candidate(graph, graph.by_id[owner], found[0].score / ends, place, folded)
        for place, (owner, found) in enumerate(matches.items(), 1)
    ]
    return Hits(_status(graph, question, best), candidates, matches, question)


def _candidate(graph: Graph, entity: Entity, relevance: float, place: int, folded: str) -> Candidate:
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
        rrf_score=1 / (RRF_K + place),
    )


def _best(graph: Graph, question: Question, most: int, entity_type: str) -> list[Match]:
    """The best passages of the whole search, the best first."""
    allowed = graph.ids_of_type(entity_type) if entity_type else None
    scored: list[tuple[Passages, Array, Array, Array]] = []
    highest = 0.0
    for passages, hidden in graph.passages.parts():
        if not len(passages):
            continue
        text = passages.text_scores(question)
        if hidden is not None:
            text[hidden] = 0.0
        if allowed is not None:
            text[~np.isin(passages.owners, list(allowed))] = 0.0
        highest = max(highest, float(text.max()))
        scored.append((passages, text, passages.named(question), passages.timely))
    if not highest:
        return []
    found: list[Match] = []
    for passages, text, named, timely in scored:
        total = np.where(
            text > 0, text / highest + NAMED * named + (TIMELY * timely if question.is_about_time else 0), 0
        )
        rows = np.argpartition(-total, min(most, len(total) - 1))[: most + 1]
        found += [
            Match(
                passages.owners[row], passages.observations[row], float(total[row]), bool(named[row]), bool(timely[row])
            )
            for row in rows.tolist()
            if total[row] > 0
        ]
    found.sort(key=lambda match: (-match.score, match.owner, match.observation or 0))
    return found[:most]


def _status(graph: Graph, question: Question, best: Sequence[Match]) -> str:
    if not best:
        return NOTHING
    said = set(stems(words(text_of(graph, best[0]))))
    told = sum(not said.isdisjoint(kinds) for kinds in question.subjects)
    return FOUND if told >= WEAK * len(question.subjects) else NEAR_MISS


def text_of(graph: Graph, match: Match) -> str:
    """What a match says; an entity without observations says its name."""
    entity = graph.by_id[match.owner]
    return next((seen.text for seen in entity.observations if seen.id == match.observation), entity.name)


def why(graph: Graph, question: Question, matches: Sequence[Match]) -> str:
    """In a few words, what made an entity one of the results."""
    said = set(stems([word for match in matches[:3] for word in words(text_of(graph, match))]))
    common = [kinds[0] for kinds in question.subjects if not said.isdisjoint(kinds)]
    reasons = [f"words: {', '.join(common)}"] if common else ["words beside it"]
    if any(match.named for match in matches):
        reasons.append("about whom you name")
    if question.is_about_time and any(match.timely for match in matches):
        reasons.append("tells a time")
    return "; ".join(reasons)
