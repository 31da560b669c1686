"""An entity that has grown too large is taken apart; everything known of it is known afterwards."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.assembly import open_space
from mcp_memory.changes import ObservationFlagged, Plan
from mcp_memory.facts import Customs
from mcp_memory.space import Space
from tests.conftest import Caller, link, person


def split(name: str, *observations: str) -> dict[str, Any]:
    return {"name": name, "entity_type": "Part", "observations": list(observations)}


def observations_of(space: Space) -> dict[str, list[Any]]:
    return {entity.name: list(entity.observations) for entity in space.graph().entities()}


def test_observations_move_to_new_entities_that_are_linked_both_ways(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "poet", "born 1815", "died 1852", "wrote programs")])

    answer = call(
        "execute_entity_split",
        entity_name="Ada",
        approved_splits=[split("Ada - life", "born 1815", "died 1852"), split("Ada - work", "wrote programs")],
    )

    assert answer["result"] == {
        "new_entities": ["Ada - life", "Ada - work"],
        "moved_observations": 3,
        "relations_created": 4,
        "original_observations_remaining": 1,
    }
    assert call("get_entity", name="Ada")["observations"] == ["poet"]
    assert call("get_entity", name="Ada - life") == {
        "name": "Ada - life",
        "entityType": "Part",
        "observations": ["born 1815", "died 1852"],
    }
    assert {(r["from"], r["relationType"], r["to"]) for r in call("read_graph")["relations"]} == {
        ("Ada", "contiene", "Ada - life"),
        ("Ada - life", "parte_de", "Ada"),
        ("Ada", "contiene", "Ada - work"),
        ("Ada - work", "parte_de", "Ada"),
    }
    assert [e["name"] for e in call("search_nodes", query="born")["entities"]] == ["Ada - life"]


def test_an_observation_keeps_kind_flag_times_and_what_it_replaced(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "lives in Rome", "poet")])
    keep("add_observations", name="Ada", observations=["lives in Bonn"], supersedes="lives in Rome", kind="home")
    keep.space.commit(lambda graph: Plan([ObservationFlagged(graph["Ada"].id, 3, 1)]))
    before = keep("describe_entity", name="Ada", history=True)["entity"]["observations"]

    keep("execute_entity_split", entity_name="Ada", approved_splits=[split("Homes", "lives in Bonn")])

    after = keep("describe_entity", name="Homes", history=True)["entity"]["observations"]
    assert after == [before[0], before[2]]
    assert (after[1]["kind"], after[1]["similarity_flag"], after[1]["supersedes"]) == ("home", 1, after[0]["id"])
    assert after[0]["superseded_at"]
    assert keep("describe_entity", name="Ada", history=True)["entity"]["observations"] == [before[1]]


def test_the_type_of_a_part_is_that_of_the_whole_unless_another_is_given(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "a", "b", "c"), person("Old part", "x")])

    call(
        "execute_entity_split",
        entity_name="Ada",
        approved_splits=[{"name": "New", "observations": ["a"]}, split("Old part", "b")],
    )

    types = {e["name"]: e["entityType"] for e in call("read_graph")["entities"]}
    assert types == {"Ada": "Person", "New": "Person", "Old part": "Person"}
    assert call("get_entity", name="Old part")["observations"].__len__() == 2


def test_parts_can_be_linked_to_another_parent(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "a", "b"), person("Byrons")])
    arguments: dict[str, Any] = {"entity_name": "Ada", "approved_splits": [split("Ada - a", "a")]}

    assert call.refusal("execute_entity_split", **arguments, parent_entity_name="Nobody") == "Entity not found: Nobody"
    call("execute_entity_split", **arguments, parent_entity_name="Byrons")

    assert {(r["from"], r["relationType"], r["to"]) for r in call("read_graph")["relations"]} == {
        ("Byrons", "contiene", "Ada - a"),
        ("Ada - a", "parte_de", "Byrons"),
    }


@pytest.mark.parametrize(
    ("splits", "complaint"),
    [
        ([split("New", "never said")], "no active observation 'never said'"),
        ([split("New", "a", "never said")], "no active observation"),
        ([split("New", "a"), split("Newer", "a")], "listed twice"),
        ([split("New", "a", "a")], "listed twice"),
        ([split("New", "a"), split("New", "b")], "Two splits are named"),
        ([split("Ada", "a")], "is the entity to be split"),
        ([split("New")], "has no observations"),
        ([split("Other", "a")], "knows 'a' already"),
        ([split("", "a")], "at least one character"),
        ([], "at least one split"),
        ([{"name": "New"}], "observations"),
    ],
)
def test_what_would_lose_double_or_invent_something_is_refused(call: Caller, splits: list[Any], complaint: str) -> None:
    call("create_entities", entities=[person("Ada", "a", "b"), person("Other", "a")])

    assert complaint in call.refusal("execute_entity_split", entity_name="Ada", approved_splits=splits)
    assert "not found" in call.refusal("execute_entity_split", entity_name="X", approved_splits=[split("N", "a")])


def test_no_entity_becomes_a_part_of_itself(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "a", "b"), person("Whole")])
    splits = [split("Whole", "a")]

    refused = call.refusal(
        "execute_entity_split", entity_name="Ada", approved_splits=splits, parent_entity_name="Whole"
    )

    assert "part of itself" in refused


TOPICS = [f"{word} {what} {n}" for what in ("boats sail", "pianos sound") for n, word in enumerate("abcdefghijkl")]


@pytest.mark.parametrize("name", ["Ada", "é" * 511])
def test_a_proposal_can_be_carried_out_as_it_is(call: Caller, name: str) -> None:
    call("create_entities", entities=[{"name": name, "entityType": "Person", "observations": TOPICS}])
    first = call("propose_entity_split", entity_name=name)["proposal"]["suggested_splits"][0]
    taken = person(first["name"], *first["observations"][:2])
    call("create_entities", entities=[taken])

    proposal = call("propose_entity_split", entity_name=name)["proposal"]

    assert set(taken["observations"]) <= set(proposal["remaining"])
    result = call("execute_entity_split", entity_name=name, approved_splits=proposal["suggested_splits"])["result"]
    assert result["original_observations_remaining"] == len(proposal["remaining"])


def test_a_second_split_the_same_is_refused(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "a", "b")])
    call("execute_entity_split", entity_name="Ada", approved_splits=[split("New", "a")])

    assert "no active" in call.refusal("execute_entity_split", entity_name="Ada", approved_splits=[split("New", "a")])


def test_reflections_stay_readable_with_the_entity_that_was_split(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "a", "b")])
    keep("add_reflection", target_type="entity", target_id="Ada", content="She matters")

    keep("execute_entity_split", entity_name="Ada", approved_splits=[split("New", "a")])

    assert keep("search_reflections", query="matters")["results"][0]["target"] == "Ada"
    assert keep("describe_entity", name="Ada")["entity"]["reflections"][0]["content"] == "She matters"


def test_what_an_entity_means_follows_its_split(keep: Caller) -> None:
    music, boats = "plays the theremin in an orchestra", "repairs old sailing boats"
    keep("create_entities", entities=[person("Ada", music, boats), person("Bob", "likes soup")])
    keep("create_relations", relations=[link("Ada", "knows", "Bob")])

    def meaning(*names: str) -> Any:
        vectors = keep.space.vectors
        assert vectors is not None and vectors.wait(30)
        found, missing = vectors.of_entities([keep.space.graph()[name].id for name in names])
        assert not missing
        return found

    (before,) = meaning("Ada")
    keep("execute_entity_split", entity_name="Ada", approved_splits=[split("Hobby", boats)])
    whole, part = meaning("Ada", "Hobby")
    assert float(before @ whole) < 0.99 and float(before @ part) < 0.99
    assert keep("search_semantic", query="who repairs ships")["results"][0]["name"] == "Hobby"

    keep("end_relation", relation_id=1)
    (alone,) = meaning("Ada")
    assert float(alone @ whole) < 0.9999


# ── analysis ─────────────────────────────────────────────────────────────────────────────────────


def many(*stems: str) -> list[str]:
    return [f"{stem} {word}" for stem in stems for word in ("alpha", "beta", "gamma", "delta", "omega", "sigma", "tau")]


def test_a_small_entity_is_left_in_peace(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "a", "b")])

    assert call("analyze_entity_split", entity_name="Ada")["analysis"] == {
        "entity_name": "Ada",
        "entity_type": "Person",
        "observation_count": 2,
        "threshold": 20,
        "needs_split": False,
        "topics": {},
        "split_score": 0.1,
    }
    assert call("propose_entity_split", entity_name="Ada") == {
        "proposal": None,
        "message": "Entity does not need splitting",
    }
    assert call.refusal("propose_entity_split", entity_name="X") == "Entity not found: X"
    assert call.refusal("analyze_entity_split", entity_name="X") == "Entity not found: X"


def test_many_observations_without_topics_are_no_candidate(call: Caller) -> None:
    call("create_entities", entities=[person("Log", *(f"{n}" for n in range(30)))])

    analysis = call("analyze_entity_split", entity_name="Log")["analysis"]

    assert (analysis["split_score"], analysis["needs_split"]) == (1.5, False)
    assert call("find_split_candidates") == {"candidates": []}
    assert call("consolidation_report")["large_entities"][0]["entity_name"] == "Log"


def test_thresholds_are_a_setting(database: Path) -> None:
    space = open_space(database, customs=Customs(split_thresholds={"Person": 3, "*": 100}))
    call = Caller(space)
    call("create_entities", entities=[person("Ada", "a", "b", "c", "d"), {"name": "Any", "observations": many("x")}])

    assert call("analyze_entity_split", entity_name="Ada")["analysis"]["threshold"] == 3
    assert call("analyze_entity_split", entity_name="Any")["analysis"]["threshold"] == 100
    space.close()


# ── and back ─────────────────────────────────────────────────────────────────────────────────────

texts = st.lists(st.text("abcdefgh ", min_size=1, max_size=4), min_size=1, max_size=12, unique=True)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(told=texts, data=st.data())
def test_split_and_merged_back_an_entity_is_what_it_was(told: list[str], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        space = open_space(Path(folder) / "memory.db")
        call = Caller(space)
        call("create_entities", entities=[person("Ada", *told), person("Bob")])
        call("create_relations", relations=[link("Ada", "knows", "Bob")])
        call("add_reflection", target_type="entity", target_id="Ada", content="prose")
        for old in data.draw(st.lists(st.sampled_from(told), unique=True, max_size=3)):
            call("add_observations", name="Ada", observations=[f"not {old}"], supersedes=old, kind="news")
        active = space.graph()["Ada"].active()
        flagged = data.draw(st.lists(st.sampled_from([seen.id for seen in active]), unique=True))
        entity_id = space.graph()["Ada"].id
        space.commit(lambda graph: Plan([ObservationFlagged(entity_id, one, 1) for one in flagged]))
        before = observations_of(space)["Ada"]
        before = [type(seen)(**{f: getattr(seen, f) for f in seen.__struct_fields__}) for seen in before]
        parts = data.draw(st.lists(st.integers(0, 3), min_size=len(active), max_size=len(active)))
        splits = [
            split(f"Part {number}", *(seen.text for seen, part in zip(active, parts, strict=True) if part == number))
            for number in sorted(set(parts) - {0})
        ]
        facts = {seen.id for seen in before}
        if splits:
            call("execute_entity_split", entity_name="Ada", approved_splits=splits)
        between = observations_of(space)
        assert {seen.id for group in between.values() for seen in group} == facts
        for one in splits:
            call("merge_entities", source=one["name"], target="Ada")

        assert observations_of(space) == {"Ada": before, "Bob": []}
        assert [r["relationType"] for r in call("read_graph")["relations"]] == ["knows"]
        assert call("describe_entity", name="Ada")["entity"]["reflections"][0]["content"] == "prose"
        assert [finding.text for finding in space.check()] == []
        space.close()
