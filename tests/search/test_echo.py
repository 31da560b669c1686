"""A question that comes back finds what it led to; another question does not."""

from __future__ import annotations

import pytest

from mcp_memory.search import echo
from mcp_memory.search.echo import Echoes


@pytest.fixture
def echoes() -> Echoes:
    echoes = Echoes()
    echoes.note("When did Ada move to Lisbon?", "Ada", is_first=True)
    echoes.note("When did Ada move to Lisbon?", "Lisbon", is_first=False)
    echoes.note("when did ada move to lisbon", "Ada", is_first=True)
    return echoes


def test_an_answer_is_the_surer_the_oftener_it_was_used(echoes: Echoes) -> None:
    assert echoes.of("When did Ada move to Lisbon?") == {"Ada": 2 / 3, "Lisbon": 1 / 3}


@pytest.mark.parametrize("query", ["Ada, moved to LISBON!", "lisbon ada moving", "when has Ádá moved to Lisbon"])
def test_case_accents_endings_order_and_function_words_make_no_other_question(echoes: Echoes, query: str) -> None:
    assert echoes.of(query)["Ada"] == 2 / 3


def test_a_question_with_other_words_added_is_less_sure(echoes: Echoes) -> None:
    near = echoes.of("did Ada move to Lisbon by train")

    assert 0.2 < near["Ada"] < 0.6


@pytest.mark.parametrize(
    "query", ["who lives in Porto", "Lisbon has which museums, churches and gardens", "", "the", "🙂"]
)
def test_another_question_leads_nowhere(echoes: Echoes, query: str) -> None:
    assert echoes.of(query) == {}


def test_what_was_used_by_mistake_once_fades_beside_what_is_used_each_time() -> None:
    echoes = Echoes()
    echoes.note("violin", "by mistake", is_first=True)
    for _ in range(9):
        echoes.note("violin", "wanted", is_first=True)

    assert echoes.of("violin") == {"by mistake": 1 / 11, "wanted": 9 / 11}


def test_however_often_one_question_is_repeated_others_do_not_hear_of_it(echoes: Echoes) -> None:
    before = echoes.of("When did Ada move to Lisbon?")
    for _ in range(1000):
        echoes.note("cheapest flights today", "Ada", is_first=True)

    assert echoes.of("When did Ada move to Lisbon?") == before


def test_who_is_gone_is_no_answer_and_who_is_merged_answers_under_the_new_name(echoes: Echoes) -> None:
    echoes.rename("Lisbon", "Ada")
    assert echoes.of("Ada move Lisbon") == {"Ada": 1.0}  # never more than sure

    echoes.forget("Ada")
    assert echoes.of("Ada move Lisbon") == {}


def test_the_older_half_is_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echo, "MOST_QUESTIONS", 10)
    echoes = Echoes()
    for number in range(11):
        echoes.note(f"question word{number}", str(number), is_first=True)

    assert "0" not in echoes.of("question word0")
    assert echoes.of("question word10")["10"] == pytest.approx(0.5, abs=0.1)
