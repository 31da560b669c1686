"""The fusion that is documented for the scores shown."""

from __future__ import annotations

import pytest

from mcp_memory.search.rrf import rrf
from tests.conftest import Caller, person


def test_two_lists_are_fused_as_documented() -> None:
    scores = rrf([[1, 2], [2, 3]])

    assert sorted(scores, key=lambda one: -scores[one]) == [2, 1, 3]
    assert scores == {
        2: pytest.approx(0.0325225, abs=1e-7),
        1: pytest.approx(0.0163934, abs=1e-7),
        3: pytest.approx(0.0161290, abs=1e-7),
    }
    assert rrf([]) == {} == rrf([[], []])


def test_what_only_its_meaning_found_has_no_score_of_two_lists(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "Trabaja de enfermera"), person("Bob", "Pilots a balloon")])
    vectors = call.space.vectors
    assert vectors is not None and vectors.wait(60)

    by_meaning = call("search_semantic", query="nurse")["results"]
    assert by_meaning[0]["name"] == "Ada" and all("rrf_score" not in row for row in by_meaning)
    both = {row["name"]: row for row in call("search_semantic", query="balloon nurse")["results"]}
    assert both["Bob"]["rrf_score"] > both["Ada"]["rrf_score"] > 0
