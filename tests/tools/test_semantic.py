"""Asking in one's own words: the entity that answers comes first, with the observation that does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Caller, person


@pytest.fixture
def told(call: Caller) -> Caller:
    call(
        "create_entities",
        entities=[
            {
                "name": "session 1 (8 May 2023)",
                "entityType": "Session",
                "observations": [
                    "Caroline: Hi Mel, how are the kids?",
                    "Melanie: Busy! We painted a sunrise over the lake last weekend.",
                    "Caroline: I went to a support group yesterday, it was so powerful.",
                    "Melanie: What did you learn there?",
                    "Caroline: To be myself, and that adoption agencies help people like me.",
                ],
            },
            {
                "name": "Sesión 2 (3 de junio)",
                "entityType": "Sesion",
                "observations": [
                    "Lucía: El sábado fui a una exposición de fotografía en Sevilla.",
                    "Marcos: Yo he empezado a aprender a tocar el violín.",
                ],
            },
            person("Astro", "A web framework for content-driven sites"),
            person("Empty"),
        ],
    )
    return call


def ask(call: Caller, query: str, **more: Any) -> list[tuple[str, list[str]]]:
    found = call("search_semantic", query=query, **more)["results"]
    return [(row["name"], [match["observation"] for match in row["matches"]]) for row in found]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("When did Caroline go to the support group?", "Caroline: I went to a support group yesterday"),
        ("What did Melanie paint?", "Melanie: Busy! We painted a sunrise"),
        ("which agencies can help Caroline adopt", "Caroline: To be myself, and that adoption agencies"),
        ("¿Cuándo fue Lucía a la exposición de fotografías?", "Lucía: El sábado fui a una exposición"),
        ("que instrumento esta aprendiendo Marcos a tocar", "Marcos: Yo he empezado a aprender a tocar el violín"),
        ("frameworks for web sites", "A web framework"),
    ],
)
def test_the_observation_that_answers_comes_first(told: Caller, query: str, answer: str) -> None:
    (_, matches), *_ = ask(told, query)

    assert matches[0].startswith(answer)


def test_a_result_has_the_documented_shape(told: Caller) -> None:
    answer = told("search_semantic", query="support group", limit=2)

    first = answer["results"][0]
    assert answer["status"] == "found"
    assert first["entityType"] == "Session"
    assert len(first["observations"]) == 5
    assert set(first["scoring"]) == {"importance", "temporal_factor", "cooc_boost", "echo"}
    assert 0 < first["limbic_score"] <= 2
    assert first["rrf_score"] == pytest.approx(2 / 61, abs=1e-6)  # first by words and by meaning
    assert 0 < first["distance"] < 1
    assert first["matches"][0]["id"] == 3
    assert "group" in first["why"]


def test_an_entity_without_observations_is_found_by_its_name(told: Caller) -> None:
    assert ask(told, "empty")[0] == ("Empty", [])


def test_what_nobody_said_is_at_best_a_near_miss(told: Caller) -> None:
    assert told("search_semantic", query="xylophone zebra")["status"] == "weak"


def test_a_near_miss_is_called_weak(told: Caller) -> None:
    assert told("search_semantic", query="quantum lake cryptography budget review")["status"] == "weak"


def test_results_are_limited_and_filtered(told: Caller) -> None:
    assert len(ask(told, "learn", limit=1)) == 1
    assert [name for name, _ in ask(told, "learn aprender", entityType="Sesion")] == ["Sesión 2 (3 de junio)"]
    assert ask(told, "learn", limit=0) == []
    assert "51 > 50" in told.refusal("search_semantic", query="x", limit=51)
    assert "501 > 500" in told.refusal("search_semantic", query="x" * 501)


def test_answers_follow_every_change(told: Caller) -> None:
    told("add_observations", name="Empty", observations=["keeps the xylophone in the attic"])
    assert ask(told, "where is the xylophone")[0] == ("Empty", ["keeps the xylophone in the attic"])

    told("delete_observations", name="Empty", observations=["keeps the xylophone in the attic"])
    assert told("search_semantic", query="xylophone")["status"] == "weak"

    told("delete_entities", entityNames=["Astro"])
    assert "Astro" not in [name for name, _ in ask(told, "web framework")]


@pytest.mark.parametrize("query", ["", "   ", "the", '"', "AND OR NOT *", "🙂", "¿?", "a" * 500])
def test_nothing_in_a_question_breaks_the_search(told: Caller, query: str) -> None:
    told("search_semantic", query=query)
