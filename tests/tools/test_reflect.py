"""Reflections: kept on what exists, found by what they say, and never lost with what they are about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.changes import Plan, ReflectionRestored
from mcp_memory.facts import Customs, Reflection
from mcp_memory.space import utc_now
from tests.conftest import Caller, link, person


@pytest.fixture
def told(keep: Caller) -> Caller:
    keep("create_entities", entities=[person("Ada"), person("Bob"), {"name": "Monday", "entityType": "Sesion"}])
    keep("create_relations", relations=[link("Ada", "knows", "Bob")])
    return keep


def reflect(call: Caller, target_type: str = "global", content: str = "It rained", **more: Any) -> Any:
    return call("add_reflection", target_type=target_type, content=content, **more)["result"]


def search(call: Caller, query: str, **more: Any) -> list[str]:
    return [row["content"] for row in call("search_reflections", query=query, **more)["results"]]


@pytest.mark.parametrize(
    ("target_type", "target", "id_and_name"),
    [
        ("entity", "Bob", (2, "Bob")),
        ("entity", 2, (2, "Bob")),
        ("session", "Monday", (3, "Monday")),
        ("session", None, (None, None)),
        ("relation", 1, (1, "Ada -> Bob (knows)")),
        ("relation", link("Ada", "knows", "Bob"), (1, "Ada -> Bob (knows)")),
        ("global", None, (None, None)),
    ],
)
def test_a_target_is_named_by_id_or_name(
    told: Caller, target_type: str, target: Any, id_and_name: tuple[Any, Any]
) -> None:
    result = reflect(told, target_type, target_id=target)

    assert (result["target_id"], result.get("target")) == id_and_name
    assert (result["id"], result["author"], result["mood"]) == (1, "sofia", None)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"target_type": "planet"}, "entity, session, relation, global"),
        ({"target_type": "entity"}, "needs target_id"),
        ({"target_type": "relation"}, "needs target_id"),
        ({"target_type": "entity", "target_id": 99}, "No entity has id 99"),
        ({"target_type": "entity", "target_id": "Cy"}, "Entity not found: Cy"),
        ({"target_type": "entity", "target_id": link("Ada", "knows", "Bob")}, "an id or a name"),
        ({"target_type": "session", "target_id": 99}, "No entity has id 99"),
        ({"target_type": "relation", "target_id": 99}, "No relation has id 99"),
        ({"target_type": "relation", "target_id": "Ada"}, "{from, to, relationType}"),
        ({"target_type": "relation", "target_id": link("Ada", "hates", "Bob")}, "Relation not found"),
        ({"target_type": "global", "target_id": 1}, "leave target_id out"),
        ({"target_type": "global", "author": "eve"}, "nolan, sofia"),
        ({"target_type": "global", "mood": "hunger"}, "frustracion"),
        ({"target_type": "global", "content": "  "}, "cannot be empty"),
        ({"target_type": "global", "content": "x" * 20_001}, "20001 > 20000"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_what_could(told: Caller, given: Any, complaint: str) -> None:
    assert complaint in told.refusal("add_reflection", **({"content": "It rained"} | given))


def test_authors_and_moods_are_settings(database: Path) -> None:
    space = open_space(database, customs=Customs(authors=("ada", "bob"), moods=()))
    call = Caller(space)

    assert reflect(call, mood="joy")["author"] == "ada"
    assert "ada, bob" in call.refusal("add_reflection", target_type="global", content="x", author="sofia")
    space.close()


def test_the_words_of_a_reflection_find_it_in_either_language(told: Caller) -> None:
    reflect(told, content="Choosing SQLite shaped every later decision")
    reflect(told, content="La decisión de usar colas nos costó dos semanas")
    reflect(told, content="Lunch was late")

    assert search(told, "decisions that shaped us")[0] == "Choosing SQLite shaped every later decision"
    assert search(told, "decisiones sobre colas")[0] == "La decisión de usar colas nos costó dos semanas"


def test_filters_come_before_the_cut(told: Caller) -> None:
    for number in range(60):
        reflect(told, content=f"rain again and again, rain {number}", author="nolan")
    reflect(told, content="one word about rain, and then much about the sea", mood="duda")

    assert search(told, "rain", author="sofia", limit=1) == ["one word about rain, and then much about the sea"]
    assert search(told, "rain", mood="duda") == ["one word about rain, and then much about the sea"]
    assert search(told, "rain", target_type="entity") == []
    assert len(search(told, "rain", limit=50)) == 50
    assert search(told, "rain", limit=0) == []
    assert "51 > 50" in told.refusal("search_reflections", query="rain", limit=51)
    assert "501 > 500" in told.refusal("search_reflections", query="r" * 501)


def test_scores_lie_between_0_and_1_best_first(told: Caller) -> None:
    for content in ("rain", "rain on the roof", "the roof leaks", "sun", "nothing to do with it at all"):
        reflect(told, content=content)

    for query in ("rain on the roof", "sun", "weather", "zebra", "", "the"):
        scores = [row["score"] for row in told("search_reflections", query=query)["results"]]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


def test_scores_can_be_compared_with_those_of_the_next_search(told: Caller) -> None:
    for content in ("We chose SQLite for its one file", "Lunch was excellent", "The cat sleeps a lot"):
        reflect(told, content=content)

    def best(query: str) -> float:
        return float(told("search_reflections", query=query)["results"][0]["score"])

    fitting = best("why SQLite")
    assert max(best("zebra"), best("quantum chromodynamics lattice")) < fitting / 2


def test_without_a_model_it_is_said_that_words_were_searched(told: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    reflect(told, content="Lunch was excellent")
    told.space.meaning.model = told.space.model = "none"

    answer = told("search_reflections", query="broth")

    assert answer["results"] == [] and answer["note"] == "Searched by words only. The setting model is none."


def test_of_two_that_say_the_same_the_newer_comes_first(told: Caller) -> None:
    said = ("global", None, "sofia", "It rained", None)
    old = Reflection(1, *said, "2025-11-01 10:00:00")
    new = Reflection(2, *said, utc_now())
    told.space.commit(lambda graph: Plan([ReflectionRestored(old), ReflectionRestored(new)]))

    rows = told("search_reflections", query="rained")["results"]

    assert [row["id"] for row in rows] == [2, 1]
    assert rows[0]["score"] > rows[1]["score"] > 0


def test_a_reflection_outlives_what_it_is_about(told: Caller) -> None:
    reflect(told, "entity", "Ada was the first", target_id="Ada")
    reflect(told, "relation", "They met at school", target_id=1)
    told("delete_entities", entityNames=["Ada"])
    told("create_entities", entities=[person("Newcomer")])

    rows = told("search_reflections", query="first met school")["results"]

    assert {row["content"]: (row["target_id"], row["target"]) for row in rows} == {
        "Ada was the first": (1, None),
        "They met at school": (1, None),
    }
    assert [row.get("target_was") for row in rows if row["target_type"] == "entity"] == ["Ada"]


def test_a_reflection_on_a_merged_entity_is_about_the_one_it_became(told: Caller) -> None:
    reflect(told, "entity", "Ada was the first", target_id="Ada")
    told("merge_entities", source="Ada", target="Bob")

    (row,) = told("search_reflections", query="first")["results"]

    assert row["target"] == "Bob"
    assert told("describe_entity", name="Bob")["entity"]["reflections"][0]["content"] == "Ada was the first"


def test_reflections_are_there_after_a_restart(told: Caller, database: Path) -> None:
    reflect(told, content="It rained", mood="duda")
    told.space.close()
    again = open_space(database)

    assert search(Caller(again), "rained", mood="duda") == ["It rained"]
    again.close()


@pytest.fixture(params=["memory.jsonl", "memory.mcpmem"])
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Caller]:
    space = open_space(tmp_path / str(request.param))
    yield Caller(space)
    space.close()


def test_a_format_without_a_place_for_reflections_says_so(plain: Caller) -> None:
    refused = plain.refusal("add_reflection", target_type="global", content="It rained")

    assert "no place for reflections" in refused and ".db" in refused
    assert plain("search_reflections", query="rain") == {"results": []}


def test_a_reflection_is_found_by_its_meaning_in_other_words_and_another_language(told: Caller) -> None:
    for content in ("Lunch was excellent", "Everybody was nervous because of the deadline", "The cat sleeps a lot"):
        reflect(told, content=content)

    assert search(told, "estrés por la fecha de entrega")[0] == "Everybody was nervous because of the deadline"
