"""Asking in one's own words: the entity that answers comes first, with the observation that does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.assembly import open_space
from mcp_memory.embedding.engine import Engine
from mcp_memory.space import Space
from tests.conftest import Caller, link, person


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
    embedded(call.space)
    return call


def embedded(space: Space) -> None:
    """Wait until every text has its vector, however slow the machine is; where there are none, there is no wait."""
    vectors = space.vectors
    assert vectors is None or vectors.wait(60)


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


def test_filters_hold_in_either_spelling(told: Caller) -> None:
    assert [name for name, _ in ask(told, "learn aprender", entity_type="Sesion")] == ["Sesión 2 (3 de junio)"]
    assert [name for name, _ in ask(told, "learn aprender", entity_type="Session", entityType="Sesion")] == [
        "Sesión 2 (3 de junio)"
    ]
    short = told("search_semantic", query="learn aprender", max_tokens=60)
    assert short == told("search_semantic", query="learn aprender", maxTokens=60)
    assert short["left_out"] > 0
    assert "maxTokens must be" in told.refusal("search_semantic", query="learn", max_tokens="few")
    assert ask(told, '"max_tokens"')  # in what is asked it is text


def test_answers_follow_every_change(told: Caller) -> None:
    told("add_observations", name="Empty", observations=["keeps the xylophone in the attic"])
    assert ask(told, "where is the xylophone")[0] == ("Empty", ["keeps the xylophone in the attic"])

    told("delete_observations", name="Empty", observations=["keeps the xylophone in the attic"])
    embedded(told.space)
    assert told("search_semantic", query="xylophone")["status"] == "weak"

    told("delete_entities", entityNames=["Astro"])
    assert "Astro" not in [name for name, _ in ask(told, "web framework")]


@pytest.mark.parametrize("query", ["", "   ", "the", '"', "AND OR NOT *", "🙂", "¿?", "a" * 500])
def test_nothing_in_a_question_breaks_the_search(told: Caller, query: str) -> None:
    told("search_semantic", query=query)


# ── by meaning ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def facts(keep: Caller) -> Caller:
    keep(
        "create_entities",
        entities=[
            person("Ada", "The dog sleeps on the sofa", "Interest rates were raised by the bank"),
            person("Berta", "Cooks soup with carrots", "El tren a Sevilla sale a las ocho"),
            {"name": "Puppies on couches", "entityType": "Album"},
        ],
    )
    embedded(keep.space)
    return keep


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("a puppy is napping", "The dog sleeps on the sofa"),  # no word in common
        ("¿quién encareció los préstamos?", "Interest rates were raised by the bank"),
        ("when does the railway to Andalusia depart", "El tren a Sevilla sale a las ocho"),
    ],
)
def test_meaning_finds_what_no_word_does_and_in_another_language(facts: Caller, query: str, answer: str) -> None:
    found = facts("search_semantic", query=query, entityType="Person")

    matches = [match for row in found["results"] for match in row["matches"]]
    assert max(matches, key=lambda match: match["score"])["observation"] == answer
    assert found["engine"] == "hybrid"
    assert 0 <= found["results"][0]["distance"] <= 1


def test_an_entity_without_observations_is_found_by_what_its_name_means(facts: Caller) -> None:
    assert ask(facts, "pictures of little dogs on the settee", entityType="Album") == [("Puppies on couches", [])]


def test_a_question_is_answered_by_what_was_said_right_after_it_was_asked(call: Caller) -> None:
    asked = ["Ana: Which instrument do you play?", "Luis: The violin, since I was six."]
    small_talk = ["Ana: Good morning!", "Luis: Nice weather we have.", "Ana: See you, then."]
    entities = [{"name": "talk", "entityType": "Talk", "observations": [*small_talk, *asked, *small_talk[::-1]]}]
    call("create_entities", entities=entities)
    embedded(call.space)

    ((_, (first, *_)),) = ask(call, "Which instrument does Luis play?")
    assert first == "Luis: The violin, since I was six."


def test_superseded_observations_never_match(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "lives in Berlin")])
    old = keep("open_nodes", names=["Ada"], detail=True)["entities"][0]["observations"][0]["id"]
    keep("add_observations", name="Ada", observations=["lives in Lisbon"], supersedes=old)
    embedded(keep.space)

    ((_, matches),) = ask(keep, "where in Berlin does Ada live")
    assert matches == ["lives in Lisbon"]


def test_twenty_results_show_at_least_twenty_matches_with_scores_that_compare(call: Caller) -> None:
    rooms = [f"the colour of room {number} is blue" for number in range(12)]
    call("create_entities", entities=[person(f"house {number}", *rooms) for number in range(4)])
    embedded(call.space)

    results = call("search_semantic", query="which room is blue", limit=20)["results"]
    scores = [match["score"] for row in results for match in row["matches"]]
    assert len(scores) >= 20
    assert all(0 < score <= 1 for score in scores)
    assert all(row["matches"] == sorted(row["matches"], key=lambda match: -match["score"]) for row in results)


def test_one_large_entity_does_not_crowd_out_the_others(call: Caller) -> None:
    many = [f"note {number} about the blue door" for number in range(90)]
    call("create_entities", entities=[person("archive", *many), person("Ada", "painted a door"), person("Bob", "door")])
    embedded(call.space)

    assert {name for name, _ in ask(call, "blue door", limit=3)} == {"archive", "Ada", "Bob"}


@pytest.mark.parametrize("query", ["Backend", "BACKEND", "bäckend"])
@pytest.mark.parametrize("limit", [1, 3])
def test_who_bears_the_name_comes_first_however_many_others_speak_of_it(call: Caller, query: str, limit: int) -> None:
    others = [{**person(f"backend team {n}", "backend, backend!"), "entityType": "backend"} for n in range(40)]
    old = person("Backend", "Shut down in March, after years in which nobody understood it")
    call("create_entities", entities=[old, *others])
    embedded(call.space)

    assert ask(call, query, limit=limit)[0][0] == "Backend"


@pytest.mark.parametrize("status", ["pausado", "completado", "archivado"])
def test_who_bears_the_name_comes_first_although_it_is_no_longer_current(keep: Caller, status: str) -> None:
    old = {**person("Backend", "Shut down in March"), "status": status}
    keep("create_entities", entities=[old, person("Team", "The backend team meets on Mondays", "Backend, backend!")])
    embedded(keep.space)

    assert [name for name, _ in ask(keep, "backend")] == ["Backend", "Team"]


def test_who_bears_the_name_and_of_whom_nothing_is_said_comes_first(call: Caller) -> None:
    others = [person(f"backend team {n}", "backend, backend!") for n in range(40)]
    call("create_entities", entities=[person("Backend"), *others])
    embedded(call.space)

    assert ask(call, "backend", limit=2)[0] == ("Backend", [])
    assert "Backend" not in dict(ask(call, "backend", limit=2, kind="fact"))


def test_equal_answers_keep_one_order(call: Caller) -> None:
    call("create_entities", entities=[person(name, "plays the violin") for name in ("Eve", "Ada", "Bob", "Dan")])
    embedded(call.space)

    assert ask(call, "who plays the violin") == ask(call, "who plays the violin")
    assert [name for name, _ in ask(call, "who plays the violin")] == ["Eve", "Ada", "Bob", "Dan"]


# ── filters and budget ───────────────────────────────────────────────────────────────────────────


def test_filters_come_before_the_cut(keep: Caller) -> None:
    many = [person(f"person {number}", "keeps bees in the garden") for number in range(40)]
    keep("create_entities", entities=many)
    keep("create_entities", entities=[{**person("old hive", "bees"), "status": "archivado"}])
    keep("add_observations", name="person 39", observations=["bought a hive for 80 euros"], kind="metrica")

    assert [name for name, _ in ask(keep, "keeps bees", limit=1, status="archivado")] == ["old hive"]
    assert ask(keep, "keeps bees", limit=1, kind="metrica") == [("person 39", ["bought a hive for 80 euros"])]
    assert ask(keep, "keeps bees", kind="unheard of") == []
    assert ask(keep, "keeps bees", before="2001-01-01") == []
    assert len(ask(keep, "keeps bees", after="2001-01-01", before="2999-12-31")) == 10
    assert "2026-03-01" in keep.refusal("search_semantic", query="bees", after="yesterday")


def test_a_budget_is_kept_and_what_is_left_out_is_said(call: Caller) -> None:
    call(
        "create_entities",
        entities=[person(f"house {n}", *[f"room {k} is blue {n}" for k in range(9)]) for n in range(9)],
    )
    embedded(call.space)
    whole = call("search_semantic", query="blue room")
    answer = call("search_semantic", query="blue room", maxTokens=300)

    assert 1 <= len(answer["results"]) < len(whole["results"])
    assert len(str(answer["results"])) / 4 < 300
    assert answer["left_out"] == len(whole["results"]) - len(answer["results"])
    (only,) = call("search_semantic", query="blue room", maxTokens=1)["results"]
    assert (only["observations"], len(only["matches"])) == ([], 1)


# ── without vectors ──────────────────────────────────────────────────────────────────────────────


def test_without_a_model_words_answer_and_say_so(tmp_path: Path) -> None:
    space = open_space(tmp_path / "memory.db", model="none")
    call = Caller(space)
    call("create_entities", entities=[person("Ada", "The dog sleeps on the sofa")])

    answer = call("search_semantic", query="where does the dog sleep")
    assert (answer["engine"], answer["status"]) == ("text", "found")
    assert "Embedding model not available" in answer["note"]
    assert "distance" not in answer["results"][0]
    assert call("search_semantic", query="puppy")["status"] == "nothing found"
    space.close()


def test_where_a_model_is_required_its_absence_is_an_error(tmp_path: Path) -> None:
    space = open_space(tmp_path / "memory.db", model="none", requires_model=True)

    assert "Embedding model not available" in Caller(space).refusal("search_semantic", query="dogs")
    space.close()


@contextmanager
def reading_slowly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing but questions is embedded meanwhile."""
    go_on, encode = threading.Event(), Engine.encode

    def slowly(self: Engine, texts: Any, purpose: Any = "passage") -> Any:
        if purpose != "query":
            assert go_on.wait(60)
        return encode(self, texts, purpose)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "encode", slowly)
        try:
            yield
        finally:
            go_on.set()


def test_an_incomplete_index_is_said_with_its_progress(keep: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    with reading_slowly(monkeypatch):
        keep("create_entities", entities=[person("Ada", "The dog sleeps on the sofa", "Likes tea")])
        answer = keep("search_semantic", query="where does the dog sleep")
        assert answer["status"] == "incomplete index"
        assert answer["progress"] == {"embedded": 0, "of": 2}
        assert answer["results"][0]["matches"][0]["observation"] == "The dog sleeps on the sofa"
    embedded(keep.space)
    assert keep("search_semantic", query="where does the dog sleep")["status"] == "found"


def test_nobody_waits_for_a_model_with_a_lock_held(facts: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    encode = Engine.encode

    def looking(self: Engine, texts: Any, purpose: Any = "passage") -> Any:
        if purpose == "query":
            other = threading.Thread(target=lambda: seen.append(facts("open_nodes", names=["Ada"])))
            other.start()
            other.join(60)
        return encode(self, texts, purpose)

    monkeypatch.setattr(Engine, "encode", looking)
    facts("search_semantic", query="a question nobody asked before")
    assert [answer["entities"][0]["name"] for answer in seen] == ["Ada"]


def test_a_model_that_fails_leaves_the_words(facts: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Engine, texts: Any, purpose: Any = "passage") -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(Engine, "encode", failing)
    answer = facts("search_semantic", query="soup with carrots")
    assert (answer["engine"], answer["results"][0]["name"]) == ("text", "Berta")


# ── habit and relations beside it ────────────────────────────────────────────────────────────────


def test_habit_reorders_near_equals_and_never_buries_the_better_answer(facts: Caller) -> None:
    facts("create_entities", entities=[person("Carl", "Cooks stew with turnips")])
    facts("create_relations", relations=[link("Ada", "knows", "Carl")])
    embedded(facts.space)
    for _ in range(30):
        facts("search_semantic", query="anything about Ada, Carl and Berta")
        facts("open_nodes", names=["Ada"])

    (first, *_) = facts("search_semantic", query="soup with carrots")["results"]
    assert first["name"] == "Berta"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=200).filter(lambda text: "\0" not in text), limit=st.integers(-3, 50))
def test_no_text_breaks_it(facts: Caller, query: str, limit: int) -> None:
    results = facts("search_semantic", query=query, limit=limit)["results"]

    assert len(results) <= max(limit, 0)
    scores = [row["limbic_score"] for row in results]
    assert scores == sorted(scores, reverse=True)
