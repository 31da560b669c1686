"""What may say the same is found by meaning or by its words, shown in pairs and clusters, and left as it is."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from mcp_memory import care
from mcp_memory.curation.duplicates import compare, difference
from tests.conftest import Caller, person


def pairs(call: Caller, **arguments: Any) -> set[tuple[str, str, str]]:
    found = call("find_duplicate_observations", entity_name="Ada", **arguments)["duplicate_pairs"]
    return {(pair["obs_text_a"], pair["obs_text_b"], pair["match_type"]) for pair in found}


def create(call: Caller, *observations: str) -> None:
    call("create_entities", entities=[person("Ada", *observations)])


def test_the_same_in_other_words_is_found_in_both_languages_and_between_them(call: Caller) -> None:
    english = ("Every push runs the tests", "The tests run on every push")
    spanish = ("Marta dirige el equipo de diseño", "El equipo de diseño lo dirige Marta")
    create(call, *english, *spanish, "Marta leads the design team", "Likes hiking")

    answer = call("find_duplicate_observations", entity_name="Ada")

    assert {(pair["obs_text_a"], pair["obs_text_b"]) for pair in answer["duplicate_pairs"]} >= {english, spanish}
    assert {pair["match_type"] for pair in answer["duplicate_pairs"]} == {"cosine"}
    assert [[one["content"] for one in cluster["observations"]] for cluster in answer["clusters"]] == [
        list(english),
        [*spanish, "Marta leads the design team"],
    ]
    assert answer["duplicates_found"] == len(answer["duplicate_pairs"])
    assert "note" not in answer


def test_the_short_within_the_long_is_found_whatever_kind_it_is_of(keep: Caller) -> None:
    create(keep, "Lives in Lisbon since 2021 with her two cats, her brother and a parrot")
    keep("add_observations", name="Ada", observations=["¡LIVES in Lísbon!"], kind="home")

    ((one, other, match_type),) = pairs(keep)

    assert (one[:15], other, match_type) == ("Lives in Lisbon", "¡LIVES in Lísbon!", "containment")


def test_thresholds_are_given(call: Caller) -> None:
    create(call, "Likes hiking in the Alps", "Likes skiing in the Alps", "alps", "The invoice is late")

    assert pairs(call, threshold=1, containment_threshold=1) == {
        ("Likes hiking in the Alps", "alps", "containment"),
        ("Likes skiing in the Alps", "alps", "containment"),
    }
    assert len(pairs(call, threshold=0, containment_threshold=1)) == 6
    assert "threshold" in call.refusal("find_duplicate_observations", entity_name="Ada", threshold=2)


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ("The deadline is March 3", "The deadline is March 17", "numbers"),
        ("La función está activada", "La función no está activada", "negation"),
        ("Ya no trabaja en el banco", "Trabaja en el banco", "negation"),
        ("Uses PostgreSQL 16", "Uses PostgreSQL", None),
        ("Poet", "A poet", None),
    ],
)
def test_a_pair_that_may_contradict_itself_is_marked(one: str, other: str, differs: str | None) -> None:
    assert difference(one, other) == difference(other, one) == differs


def test_few_observations_have_no_duplicates(call: Caller) -> None:
    create(call, "alone")
    call("create_entities", entities=[person("Nobody")])

    assert call("find_duplicate_observations", entity_name="Ada") == {
        "entity_name": "Ada",
        "total_observations": 1,
        "duplicates_found": 0,
        "duplicate_pairs": [],
        "clusters": [],
    }
    assert call("find_duplicate_observations", entity_name="Nobody")["total_observations"] == 0
    assert call.refusal("find_duplicate_observations", entity_name="X") == "Entity not found: X"


def test_what_was_superseded_is_not_compared(keep: Caller) -> None:
    create(keep, "The meeting is on Tuesday")
    keep("add_observations", name="Ada", observations=["The meeting is on  Tuesday"], supersedes=1)

    assert keep("find_duplicate_observations", entity_name="Ada")["total_observations"] == 1


def test_without_a_model_words_are_compared_and_it_is_said(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    create(call, "The tests run on every push", "Every push runs the tests", "push")
    monkeypatch.setattr(care, "chosen_engine", lambda space: None)

    answer = call("find_duplicate_observations", entity_name="Ada")

    assert {pair["match_type"] for pair in answer["duplicate_pairs"]} == {"containment"}
    assert "by words only" in answer["note"] and "mcp-memory model" in answer["note"]


def test_what_is_alike_by_way_of_others_is_one_cluster() -> None:
    texts = ["b", "a b c d", "a", "e f", "e", "g"]

    assert compare(texts, None).clusters == [[0, 1, 2], [3, 4]]


def test_blocks_see_what_stands_before_them() -> None:
    texts = [f"text number {number} about nothing" for number in range(600)] + ["599"]

    assert [(match.one, match.other) for match in compare(texts, None).best] == [(599, 600)]
    assert compare(texts, None, since=601).total == 0


def test_a_text_without_words_is_like_no_other() -> None:
    assert compare(["!!!", "a long text about something", "", "🙂"], None).total == 0


def test_thousands_that_are_alike_are_counted_and_take_no_memory_for_each_pair() -> None:
    short, long = "Backup {} done", "Backup {} done, and all of it was read again"
    texts = [(long if number % 2 else short).format(number) for number in range(3000)]
    tracemalloc.start()

    found = compare(texts, None, contained=0.6)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.total == 1500 * 1500 and len(found.best) == 200
    assert found.clusters == [list(range(3000))]
    assert peak < 20e6  # a tuple for each of the pairs would be 200 MB


def test_of_many_that_are_alike_the_best_are_listed_and_the_answer_says_so(keep: Caller) -> None:
    create(keep, "nightly backup", "backup")
    texts = [f"The nightly backup of disk number {number} is done" for number in range(120)]
    for start in (0, 60):
        keep("add_observations", name="Ada", observations=texts[start : start + 60])

    answer = keep("find_duplicate_observations", entity_name="Ada", threshold=1)

    assert answer["duplicates_found"] == 241
    assert len(answer["duplicate_pairs"]) == 200
    (cluster,) = answer["clusters"]
    assert cluster["size"] == 122 and len(cluster["observations"]) == 50
    assert answer["cut"] and "200" in answer["hint"]
