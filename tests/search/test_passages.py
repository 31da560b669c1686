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
from mcp_memory.search.question import as_said, read, tells_name
from mcp_memory.search.seeking import Asked, listen, seek

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


def test_a_question_about_somebody_who_is_quoted_is_meant_as_asked_and_as_answered() -> None:
    graph = Graph()
    graph.insert(entity(1, "Ann: I went to Rome", "Ben: lovely"))

    assert listen(graph, "When did Ann go to Rome?")[1] == ["When did Ann go to Rome?", "I go to Rome"]
    assert listen(graph, "When did Zoe go to Rome?")[1] == ["When did Zoe go to Rome?"]


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("Where does Ann live?", True),
        ("In which city?", True),
        ("¿Quién vive allí?", True),
        ("¿De quién es?", True),
        ("What does Ann like?", False),
        ("the place where Ann lives", False),
    ],
)
def test_who_where_and_which_ask_for_a_name(query: str, asks: bool) -> None:
    assert read(query).is_about_name is asks


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("We stayed in Lisbon", True),
        ("Fuimos a Ávila en tren", True),
        ("I think I know. We may. Then what?", False),
        ("They said I'd go", False),
        ("Lisbon", False),
    ],
)
def test_a_capital_inside_a_sentence_names_something(text: str, names: bool) -> None:
    assert tells_name(text) is names


def test_where_asks_for_what_was_said_with_a_name_and_notes_are_left_as_they_are() -> None:
    spoken = Graph()
    spoken.insert(
        entity(1, "Ann: we stayed by the harbour", "Ben: ok", "Ben: ok", "Ben: ok", "Ann: we stayed in Porto")
    )
    best = max(found(spoken, "Where had Ann stayed?"), key=lambda hit: hit[2])
    assert best[1] == 105

    written = Passages([entity(1, "stayed in Porto")])
    assert written.naming.tolist() == [0.0]


@pytest.mark.parametrize("typed", ["hik", "hiki", "hikin", "Ann hik"])
def test_a_word_that_is_being_typed_stands_for_what_begins_like_it(typed: str) -> None:
    graph = Graph()
    graph.insert(entity(1, "loves hiking"))
    graph.insert(entity(2, "bread and butter"))

    assert [owner for owner, _, _ in found(graph, typed)] == [1]
    assert found(graph, f"{typed}?") == []


def test_a_typed_word_that_somebody_says_finds_its_own_first_and_what_begins_like_it_after() -> None:
    graph = Graph()
    graph.insert(entity(1, "the database is full"))
    graph.insert(entity(2, "keeps data on tape"))

    hits = sorted(found(graph, "data"), key=lambda hit: -hit[2])
    assert [owner for owner, _, _ in hits] == [2, 1]
