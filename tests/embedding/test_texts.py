"""The text that stands for a whole entity fits the model, whatever is known of the entity."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.embedding.engine import engine
from mcp_memory.embedding.texts import (
    HEAD,
    MOST_RELATIONS,
    MOST_TOKENS,
    TAIL,
    Count,
    Parts,
    entity_parts,
    entity_text,
)
from tests.conftest import Caller, link, person
from tests.embedding.hub import put_tiny


@pytest.fixture(scope="module", params=["bundled", "ONNX"])
def count(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Count:
    """How many pieces a model reads in a text: by our own tokenizer, and by that of an ONNX model."""
    folder: Path = tmp_path_factory.mktemp("model")
    found = engine("auto" if request.param == "bundled" else str(put_tiny(folder / "tiny")))
    assert found is not None
    return found.tokens


def day(number: int) -> str:
    return f"On day {number} the team met and agreed on the plan for release number {number}"


def text(count: Count, observations: list[str], relations: tuple[str, ...] = (), head: str = "N (T) [activo]") -> str:
    return entity_text(Parts(head, observations, list(relations)), count)


said = st.text(max_size=60) | st.sampled_from(
    [day(1), "zebra", "→ | ; :", "w " * 700, "ﷺ" * 300, "日本語" * 90, "😀" * 200]
)


@settings(max_examples=120, deadline=None)
@given(st.lists(said, max_size=40), st.lists(said, max_size=MOST_RELATIONS), said, st.integers(0, MOST_TOKENS))
def test_no_text_has_more_pieces_than_the_model_is_given_to_read(
    count: Count, observations: list[str], relations: list[str], head: str, most: int
) -> None:
    parts = Parts(head, observations, relations)

    assert count(entity_text(parts, count)) <= MOST_TOKENS
    assert len(entity_text(parts, count, most)) == 0 or count(entity_text(parts, count, most)) <= most
    assert entity_text(parts, count) == entity_text(parts, count)


def test_what_fits_is_there_whole_and_in_order(count: Count) -> None:
    assert text(count, ["o1", "[decision] o2"], ("usa → X", "Y → usa")) == (
        "N (T) [activo]: o1 | [decision] o2 | Rel: usa → X; Y → usa"
    )
    assert text(count, []) == "N (T) [activo]"


def test_a_text_that_does_not_fit_has_the_first_and_the_last_and_nearly_fills_its_room(count: Count) -> None:
    written = text(count, [day(number) for number in range(60)], ("usa → X",))

    kept = [number for number in range(60) if f"{day(number)} |" in written]
    assert kept[:HEAD] == list(range(HEAD)) and kept[-TAIL:] == list(range(60 - TAIL, 60))
    assert written.endswith(" | Rel: usa → X")
    assert MOST_TOKENS - 40 < count(written) <= MOST_TOKENS


def test_of_the_middle_comes_what_nobody_said_yet(count: Count) -> None:
    observations = [day(number) for number in range(60)]
    observations[30] = "zebra quantum lattice xylophone"

    assert " | zebra quantum lattice xylophone | " in text(count, observations)


def test_an_end_that_is_too_long_is_cut_and_does_not_leave_the_room_empty(count: Count) -> None:
    long = "The core description of this project is that it has many parts. " * 60
    written = text(count, [long, long, long, *(f"short fact {number}" for number in range(20))])

    assert written.count("The core description") >= HEAD
    assert all(f"short fact {number}" in written for number in range(13, 20))
    assert MOST_TOKENS - 40 < count(written) <= MOST_TOKENS


def test_a_few_long_observations_share_the_room(count: Count) -> None:
    written = text(count, [f"{word} " * 600 for word in ("alpha", "beta", "gamma")] + ["short"])

    times = [written.count(word) for word in ("alpha", "beta", "gamma", "short")]
    assert min(times[:3]) * 2 > max(times[:3]) and times[3] == 1


def test_a_long_name_leaves_room_for_what_is_said(count: Count) -> None:
    written = text(count, [day(1)], head="name " * 900)

    assert written.startswith("name name") and written.endswith(day(1))


def test_of_a_hub_the_newest_relations_are_told(call: Caller) -> None:
    names = [f"spoke {number}" for number in range(MOST_RELATIONS + 6)]
    call("create_entities", entities=[person("Hub", "stands in the middle"), *map(person, names)])
    call("create_relations", relations=[link("Hub", "knows", name) for name in names])

    parts = entity_parts(call.space.graph(), call.space.graph()["Hub"])

    assert parts.relations == [f"knows → {name}" for name in names[6:]]


def test_kinds_status_and_direction_are_told_and_what_is_no_longer_true_is_not(keep: Caller) -> None:
    ada = {**person("Ada", "lives in Rome"), "status": "pausado"}
    keep("create_entities", entities=[ada, person("Bob", "cooks")])
    rome = keep("open_nodes", names=["Ada"], detail=True)["entities"][0]["observations"][0]["id"]
    keep("add_observations", name="Ada", observations=["lives in Oslo"], kind="decision", supersedes=rome)
    keep(
        "create_relations",
        relations=[link("Bob", "likes", "Ada"), link("Ada", "knows", "Bob"), link("Ada", "saw", "Bob")],
    )
    saw = keep("search_relations", relationType="saw")["relations"][0]["id"]
    keep("end_relation", relation_id=saw)

    graph = keep.space.graph()
    assert entity_text(entity_parts(graph, graph["Ada"]), len) == (
        "Ada (Person) [pausado]: [decision] lives in Oslo | Rel: Bob → likes; knows → Bob"
    )


def test_what_the_text_follows_from_is_what_it_is_known_by() -> None:
    short, long = Parts("N", ["o"], []), Parts("N", ["o" * MOST_TOKENS], [])

    assert short.flat() == ["N", "o", "\1"]
    assert long.flat()[1:] == ["N", "o" * MOST_TOKENS, "\1"]  # and how it is shortened


def test_every_text_of_a_space_fits(call: Caller, count: Count) -> None:
    call("create_entities", entities=[person("Ada", *(day(number) for number in range(60)))])
    vectors = call.space.vectors
    assert vectors is not None and vectors.wait(60)

    assert vectors.of_entities([call.space.graph()["Ada"].id])[1] == []
    assert call.space.check() == []
