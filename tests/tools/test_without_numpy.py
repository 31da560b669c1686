"""Without numpy there are no vectors, and everything else goes by words and says so.

`tests/release/test_slim.py` shows the same in an environment that really has no numpy."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from mcp_memory.assembly import open_space
from mcp_memory.curation.duplicates import Found, compare
from mcp_memory.embedding.numerics import has_numpy
from tests.conftest import Caller, Refused
from tests.tools.test_semantic import ask, told  # noqa: F401  (told is a fixture)


@pytest.fixture
def memory_file(tmp_path: Path) -> Path:
    """One kind of store is enough here."""
    return tmp_path / "memory.db"


@pytest.fixture
def no_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert not has_numpy()


@pytest.mark.usefixtures("no_numpy")
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
def test_the_observation_that_answers_comes_first(told: Caller, query: str, answer: str) -> None:  # noqa: F811
    (_, matched), *_ = ask(told, query)

    assert matched[0].startswith(answer)


@pytest.mark.usefixtures("no_numpy")
def test_an_answer_says_that_it_went_by_words_and_has_the_same_fields(told: Caller) -> None:  # noqa: F811
    by_words = told("search_semantic", query="support group")

    assert by_words["engine"] == "words" and "pip install" in by_words["note"]
    assert by_words["status"] == "found"
    assert told("search_semantic", query="zeppelin")["status"] == "nothing found"
    assert told("search_semantic", query="group", entityType="Sesion")["results"] == []
    assert told("search_semantic", query="Empty")["results"][0]["name"] == "Empty"
    assert {key for row in by_words["results"] for key in row} == {
        *("name", "entityType", "observations", "limbic_score", "scoring", "rrf_score", "matches", "why")
    }


@pytest.mark.usefixtures("no_numpy")
def test_what_compares_and_splits_goes_by_words_too(keep: Caller) -> None:
    texts = ["The cat sleeps on the warm mat", "Yes: the cat sleeps on the warm mat, every day of the week, for hours"]
    keep("create_entities", entities=[{"name": "Tom", "observations": texts}])
    found = keep("find_duplicate_observations", entity_name="Tom")

    assert [pair["match_type"] for pair in found["duplicate_pairs"]] == ["containment"]
    assert "mcp-memory-slim[semantic]" in found["note"]
    assert keep("analyze_entity_split", entity_name="Tom")
    assert keep("consolidation_report")
    assert keep("add_reflection", content="cats are fine", author="nolan", target_type="global")
    assert keep("search_reflections", query="cats")


@pytest.mark.usefixtures("no_numpy")
def test_vectors_of_another_installation_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as with_numpy:
        with_numpy.setitem(sys.modules, "numpy", numpy)
        space = open_space(tmp_path / "memory.db")
        call = Caller(space)
        call("create_entities", entities=[{"name": "Ada", "observations": ["wrote about an engine"]}])
        call("search_semantic", query="machines")
        assert space.vectors is not None and space.vectors.wait(60)
        space.close()
    space = open_space(tmp_path / "memory.db")
    found = Caller(space)("search_semantic", query="engine")

    assert [row["name"] for row in found["results"]] == ["Ada"]
    assert [finding.text for finding in space.check(repair=True)] == []
    space.close()


@pytest.mark.usefixtures("no_numpy")
def test_who_requires_a_model_is_told_how_to_get_one(tmp_path: Path) -> None:
    space = open_space(tmp_path / "memory.db", requires_model=True)

    with pytest.raises(Refused, match=r"mcp-memory-slim\[semantic\]"):
        Caller(space)("search_semantic", query="anything")
    space.close()


WORDS = some.lists(some.sampled_from("cat dog mat sleeps warm on the red blue tall".split()), max_size=12).map(" ".join)


@given(
    texts=some.lists(WORDS, max_size=8), contained=some.sampled_from([0.1, 0.5, 0.7, 1.0]), since=some.integers(0, 3)
)
@settings(max_examples=60, deadline=None)
def test_duplicates_by_words_are_the_same_without_numpy(texts: list[str], contained: float, since: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcp_memory.curation.duplicates.has_numpy", lambda: False)
        without = compare(texts, None, contained=contained, since=since)
    with_it = compare(texts, None, contained=contained, since=since)

    assert _rounded(with_it) == _rounded(without)


def _rounded(found: Found) -> Found:
    return found._replace(best=[match._replace(score=round(match.score, 5)) for match in found.best])
