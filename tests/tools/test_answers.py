"""What tools answer is what their output schemas say, however they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.space import Space
from mcp_memory.tools.answers import ANSWERS, output_schema
from mcp_memory.tools.catalog import catalog
from mcp_memory.wire.offer import described
from tests.conftest import Caller, link, person
from tests.tour import stops


class Checked(Caller):
    """Calls tools, and holds what they answer against what they say of it."""

    def __call__(self, tool: str, /, **arguments: Any) -> Any:
        answer = super().__call__(tool, **arguments)
        schema = output_schema(tool)
        if schema is not None:
            import_module("jsonschema").Draft202012Validator(schema).validate(answer)
            unnamed = msgspec.to_builtins(msgspec.convert(answer, ANSWERS[tool])).keys()
            assert unnamed <= answer.keys()
        return answer


@pytest.fixture(params=["auto", "none"])
def space(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Space]:
    space = open_space(tmp_path / "memory.db", roots=(str(tmp_path),), model=request.param)
    yield space
    assert [finding.text for finding in space.check()] == []
    space.close()


def test_every_answer_of_the_tour_is_as_it_was_said(space: Space, tmp_path: Path) -> None:
    call = Checked(space)

    for name, arguments in stops(tmp_path):
        call(name, **arguments)


def test_answers_that_are_cut_empty_partly_refused_or_of_the_past_are_so_too(space: Space) -> None:
    call = Checked(space)
    call("create_entities", entities=[person(f"P{n}", "tea", "coffee") for n in range(6)])
    links = [link(f"P{n}", "knows", f"P{n + 1}") for n in range(5)]
    assert call("create_relations", relations=[*links, link("P1", "knows", "Nobody"), links[0]])["errors"]
    call("create_relations", relations=[{**link("P0", "likes", "P2"), "context": "since May"}])
    assert call("delete_entities", entityNames=["P5", "Nobody"])["errors"]
    assert call("delete_relations", relations=[links[3], link("P0", "hates", "P1")])["errors"]
    assert call("read_graph", limit=2)["nextOffset"] == 2
    assert call("search_nodes", query="tea", limit=1)["nextOffset"] == 1
    assert call("search_nodes", query="tea", asOf="1")["entities"]
    assert call("search_relations", limit=1)["nextOffset"] == 1
    assert call("search_relations", **{"from": "P4"}) == {"relations": []}
    assert call("get_neighbors", name="P1", depth=3, limit=1)["entities"]
    assert call("extract_subgraph", names=["P0"], depth=2, limit=1)["entities"]
    assert call("find_all_paths", **{"from": "P0", "to": "P3"}, maxPaths=1)["cut"]
    assert call("find_path", **{"from": "P4", "to": "P0"}) == {"path": []}
    assert call("search_semantic", query="who drinks coffee?", maxTokens=40)["left_out"]
    assert call("search_semantic", query="who?", kind="none such")["results"] == []
    assert call("history", limit=1)["before"]
    assert call("history", call=1)["calls"][0]["did"]
    call("upsert_entities", entities=[{"name": "P0", "observations": ["tea", "milk"]}, {"name": "New"}])
    for tool in ("graph_stats", "list_entity_types", "list_relation_types"):
        call(tool)
        call(tool, as_of="1")


def test_an_answer_may_be_left_out_only_where_it_depends_on_how_one_asks() -> None:
    """Two spellings, a switch for detail, a split that may be needless, an author who may be nobody."""
    assert catalog().keys() - ANSWERS.keys() == {
        *("add_observations", "delete_observations", "open_nodes", "describe_entity", "end_relation"),
        *("analyze_entity_split", "propose_entity_split", "find_split_candidates", "execute_entity_split"),
        *("find_duplicate_observations", "consolidation_report", "add_reflection", "search_reflections"),
    }


def test_schemas_of_answers_are_plain_and_listed_only_where_they_are_wanted() -> None:
    for tool in catalog().values():
        assert "outputSchema" not in described(tool)
        schema = described(tool, with_answer=True).get("outputSchema")
        assert (schema is not None) is (tool.name in ANSWERS)
        assert schema is None or (schema["type"] == "object" and b"$ref" not in msgspec.json.encode(schema))
        if schema is not None and tool.writes:
            assert "repeated" in schema["properties"] and "required" not in schema
