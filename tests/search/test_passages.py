"""Passages follow the graph lot by lot, and find what one large lot would find."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mcp_memory.facts import Entity, Observation
from mcp_memory.graph import Graph
from mcp_memory.search.filters import Filters
from mcp_memory.search.fusion import windowed
from mcp_memory.search.gathering import PassageIndex
from mcp_memory.search.passages import Passages
from mcp_memory.search.question import as_said, read
from mcp_memory.search.seeking import Asked, seek

NOW = "2026-01-01 00:00:00"


def entity(ident: int, *observations: str, name: str = "") -> Entity:
    seen = [Observation(100 * ident + place, text, NOW) for place, text in enumerate(observations, 1)]
    return Entity(ident, name or f"entity {ident}", "Thing", "activo", NOW, NOW, seen)


# ── windows ──────────────────────────────────────────────────────────────────────────────────────


def test_a_window_joins_what_was_said_together_and_passes_over_long_texts() -> None:
    said = Passages([entity(1, "Ann: one", "Ben: two", "Ann: three"), entity(2, "Ann: four")])
    cosines = np.array([0.0, 0.9, 0.0, 0.0], np.float32)
    seen = windowed(said, cosines, True)
    assert seen[0] > 0 and seen[2] > 0
    assert seen[3] == 0

    long = Passages([entity(1, "Ann: one", "Ben: " + "two " * 70, "Ann: three")])
    alone = windowed(long, cosines[:3], True)
    assert alone.tolist() == pytest.approx([0.0, 0.9, 0.0])


def test_facts_side_by_side_share_less_than_what_was_said_in_turn() -> None:
    cosines = np.array([0.9, 0.0], np.float32)
    spoken = windowed(Passages([entity(1, "Ann: one", "Ben: two")]), cosines, True)
    written = windowed(Passages([entity(1, "one", "two")]), cosines, True)

    assert 0 < written[1] < spoken[1]


def test_what_has_no_vector_adds_nothing_to_its_neighbours() -> None:
    said = Passages([entity(1, "Ann: one", "Ben: two", "Ann: three")])
    seen = windowed(said, np.array([0.6, np.nan, 0.0], np.float32), False)

    assert np.isnan(seen[1])
    assert seen[0] == pytest.approx((0.6 + 2 * 0.3) / 3)


# ── lots ─────────────────────────────────────────────────────────────────────────────────────────


def found(graph: Graph, query: str) -> list[tuple[int, int, float]]:
    hits = seek(graph, Asked(read(query)), 10, Filters())
    return sorted(
        (match.owner, match.observation, round(match.score, 4)) for some in hits.matches.values() for match in some
    )


def test_changes_in_lots_answer_as_if_everything_were_packed_anew() -> None:
    dice = random.Random(3)
    lexicon = ["tea", "dog", "lake", "piano", "bread", "winter", "Lisbon", "violin"]
    graph, index = Graph(), None
    for step in range(120):
        ident = dice.randrange(1, 40)
        texts = [" ".join(dice.choices(lexicon, k=4)) for _ in range(dice.randrange(4))]
        graph.insert(entity(ident, *texts))
        graph._spoil(graph.by_id[ident])
        index = graph.passages
        if step % 7 == 0:
            query = " ".join(dice.sample(lexicon, 2))
            fresh = Graph()
            for each in graph.entities():
                fresh.insert(each)
            assert found(graph, query) == found(fresh, query)
    assert isinstance(index, PassageIndex)
    assert len(index) == sum(max(len(each.observations), 1) for each in graph.entities())
    assert len(index.lots()) <= 8


def test_a_word_that_nobody_says_stands_for_those_that_begin_like_it() -> None:
    graph = Graph()
    graph.insert(entity(1, "photographs of the harbour"))
    graph.insert(entity(2, "bread and butter"))

    assert [owner for owner, _, _ in found(graph, "photogra")] == [1]


# ── questions as answers ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("When did Caroline go to the support group?", "I go to the support group"),
        ("What is Melanie's favourite book?", "my favourite book"),
        ("How long has Ann known Ben?", "I known Ben"),
        ("With whom does Ann live?", "I live"),
        ("¿Cuándo fue Ann a la exposición?", "yo a la exposición"),
        ("¿De qué color es el coche?", "color es el coche"),
        ("why", "why"),
        ("¿?", "¿?"),
    ],
)
def test_a_question_reads_as_its_answer_may_have_been_said(query: str, said: str) -> None:
    assert as_said(query, {"caroline", "melanie", "ann"}) == said
