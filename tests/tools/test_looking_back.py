"""Who asks about the memory as it was is told how it was, in whatever spelling, or that this tool cannot tell."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_memory.tools.catalog import catalog
from tests.conftest import Caller, link, person

READERS = [tool for tool in catalog("full").values() if not tool.writes]
ENOUGH: dict[str, dict[str, Any]] = {
    "open_nodes": {"names": ["Ada"]},
    "get_entity": {"name": "Ada"},
    "batch_get_entities": {"names": ["Ada"]},
    "describe_entity": {"name": "Ada"},
    "search_nodes": {"query": "tea"},
    "search_semantic": {"query": "tea"},
    "find_path": {"from": "Ada", "to": "Bob"},
    "find_all_paths": {"from": "Ada", "to": "Bob"},
    "get_neighbors": {"name": "Ada"},
    "extract_subgraph": {"names": ["Ada"]},
    "analyze_entity_split": {"entity_name": "Ada"},
    "propose_entity_split": {"entity_name": "Ada"},
    "find_duplicate_observations": {"entity_name": "Ada"},
    "search_reflections": {"query": "tea"},
}


@pytest.fixture
def past(keep: Caller) -> Caller:
    """Call 2 is what is asked about; after it everything changed."""
    keep("create_entities", entities=[person("Ada", "likes tea"), person("Bob")])
    keep("create_relations", relations=[link("Ada", "knows", "Bob")])
    keep("add_observations", name="Ada", observations=["likes rum"])
    keep("create_entities", entities=[{"name": "Cy", "entityType": "Cat"}])
    keep("create_relations", relations=[link("Ada", "knows", "Cy"), link("Cy", "sees", "Bob")])
    return keep


@pytest.mark.parametrize("spelling", ["as_of", "asOf"])
@pytest.mark.parametrize("name", [tool.name for tool in READERS if tool.has_past])
def test_every_tool_that_shows_the_memory_shows_it_as_it_was(past: Caller, name: str, spelling: str) -> None:
    given = ENOUGH.get(name, {})
    now = past(name, **given)

    then = past(name, **given, **{spelling: "2"})

    assert "rum" not in repr(then) and "Cy" not in repr(then) and "Cat" not in repr(then) and "sees" not in repr(then)
    assert then != now or name in ("search_nodes", "find_path", "search_reflections")
    assert past(name, **given, **{spelling: ""}) == now


@pytest.mark.parametrize("spelling", ["as_of", "asOf"])
@pytest.mark.parametrize("name", [tool.name for tool in READERS if not tool.has_past and not tool.asks_past])
def test_a_tool_that_cannot_look_back_says_so_and_does_not_show_the_present(
    past: Caller, name: str, spelling: str
) -> None:
    said = past.refusal(name, **ENOUGH.get(name, {}), **{spelling: "2"})

    assert f"{name} knows the memory only as it is now" in said and "search_nodes" in said


@pytest.mark.parametrize("spelling", ["as_of", "asOf"])
@pytest.mark.parametrize("name", [tool.name for tool in READERS if tool.has_past])
def test_the_number_of_a_call_may_come_as_history_shows_it(past: Caller, name: str, spelling: str) -> None:
    given = ENOUGH.get(name, {})

    assert past(name, **given, **{spelling: 2}) == past(name, **given, as_of="2")


def test_a_moment_that_is_neither_is_refused_with_what_there_is(past: Caller) -> None:
    said = past.refusal("read_graph", asOf=["2"])

    assert "asOf must be text" in said and "asOf?" in said


@pytest.mark.parametrize("given", ["2026-99-99", "2026-02-30", "2026-03-01 25:00", "2026-03-01 12:60"])
def test_a_time_that_no_calendar_has_is_refused(past: Caller, given: str) -> None:
    for said in (past.refusal("read_graph", as_of=given), past.refusal("history", since=given)):
        assert f"cannot be '{given}'" in said


def test_reflections_are_found_as_they_were(past: Caller) -> None:
    past("add_reflection", target_type="global", content="tea was good")
    past("add_reflection", target_type="global", content="tea was better")
    past("undo", last=2)

    assert past("search_reflections", query="tea")["results"] == []
    found = past("search_reflections", query="tea", as_of=6)["results"]
    assert [one["content"] for one in found] == ["tea was good"]


def test_history_says_that_it_tells_about_all_times(past: Caller) -> None:
    assert "until" in past.refusal("history", as_of="2")


def test_a_text_that_is_spelled_like_the_argument_is_a_text(past: Caller) -> None:
    past("add_observations", name="Ada", observations=["as_of", '"as_of": "2"'])

    assert past("search_nodes", query="as_of")["entities"][0]["name"] == "Ada"
    assert past("open_nodes", names=["as_of"])["entities"] == []


@pytest.mark.parametrize("name", ["search_nodes", "read_graph", "open_nodes"])
def test_the_official_profile_ignores_it_as_the_official_server_does(past: Caller, name: str) -> None:
    official = Caller(past.space, "official")

    assert official(name, **ENOUGH.get(name, {}), as_of="2") == official(name, **ENOUGH.get(name, {}))
