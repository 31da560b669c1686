"""A question that turns out to be long is asked again in a thread of its own: whoever else has a question is
answered meanwhile, and what was asked can be called off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import encode as encoded

from mcp_memory import pace
from mcp_memory.changes import EntityCreated, Plan, RelationCreated
from mcp_memory.facts import NotNow
from mcp_memory.tools.exchange import forget_drawings
from tests.wire.test_care import Wire

PEOPLE = 6_000
PING = encoded({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
LONG: list[tuple[str, dict[str, Any]]] = [
    ("get_neighbors", {"name": "P1", "depth": 16, "limit": 3}),
    ("get_neighbors", {"name": "P1", "depth": 16, "limit": 3, "direction": "out"}),
    ("extract_subgraph", {"names": ["P1"], "depth": 16, "limit": 3}),
    ("search_nodes", {"query": "/"}),
    ("search_nodes", {"query": "P", "limit": 3}),
    ("read_graph", {}),
    ("export_graph", {"format": "json"}),
    ("export_graph", {"format": "dot"}),
    ("export_graph", {"format": "mermaid"}),
]
SHORT: list[tuple[str, dict[str, Any]]] = [
    ("get_neighbors", {"name": "P1"}),
    ("read_graph", {"offset": 3000, "limit": 3}),
    ("read_graph", {"entityType": "Person", "offset": 3000, "limit": 3}),
    ("search_relations", {"offset": 3000, "limit": 3}),
    ("search_relations", {"relationType": "knows", "offset": 3000, "limit": 3}),
    ("search_nodes", {"query": "P4711"}),
]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """Everybody knows three others, which soon is everybody."""
    wire = Wire(tmp_path_factory.mktemp("crowd") / "memory.db", model="none")
    people = [EntityCreated(n, f"P{n}", "Person", first=n, texts=["was here"]) for n in range(1, PEOPLE + 1)]
    pairs = [(n, (n * step) % PEOPLE + 1) for n in range(1, PEOPLE + 1) for step in (2, 3, 5)]
    known = [RelationCreated(i, one, other, "knows") for i, (one, other) in enumerate(dict.fromkeys(pairs), 1)]
    wire.space.commit(lambda graph: Plan([*people, *known]))
    wire.ask("graph_stats", {})  # the words are indexed
    yield wire
    assert [finding.text for finding in wire.space.check()] == []
    wire.space.close()


@pytest.mark.parametrize(("tool", "arguments"), LONG)
def test_a_long_look_goes_on_elsewhere(crowd: Wire, tool: str, arguments: dict[str, Any]) -> None:
    forget(crowd)
    crowd.sent.clear()
    begun = crowd.line(call_line(tool, arguments, ident=7))
    (pong,) = crowd.line(PING)

    assert (begun, pong["result"]) == ([], {})
    (answer,) = crowd.wait()
    assert answer["id"] == 7 and not answer["result"].get("isError")


@pytest.mark.parametrize(("tool", "arguments"), SHORT)
def test_a_page_is_shown_where_it_was_asked_for(crowd: Wire, tool: str, arguments: dict[str, Any]) -> None:
    (answer,) = crowd.line(call_line(tool, arguments, ident=8))

    assert answer["id"] == 8 and not answer["result"].get("isError")


@pytest.mark.parametrize(("tool", "arguments"), LONG)
def test_a_long_look_asks_again_and_again_whether_it_is_wanted(
    crowd: Wire, tool: str, arguments: dict[str, Any]
) -> None:
    forget(crowd)
    looks = []
    with pace.at(pace.Pace(pace.STEPS_BETWEEN_LOOKS, lambda: looks.append(tool))):
        crowd.offer.desk.call(crowd.offer.desk.tools[tool], encoded(arguments))
    assert looks

    forget(crowd)

    def unwanted() -> None:
        raise NotNow

    with pytest.raises(NotNow), pace.at(pace.Pace(pace.STEPS_BETWEEN_LOOKS, unwanted)):
        crowd.offer.desk.call(crowd.offer.desk.tools[tool], encoded(arguments))


def test_words_are_indexed_elsewhere(tmp_path: Path) -> None:
    wire = Wire(tmp_path / "memory.db", model="none")
    people = [EntityCreated(n, f"P{n}", "Person") for n in range(1, 4_001)]
    wire.space.commit(lambda graph: Plan(list(people)))
    wire.sent.clear()

    assert wire.line(call_line("search_nodes", {"query": "P4000"}, ident=9)) == []

    (answer,) = wire.wait()
    assert [entity["name"] for entity in answer["result"]["structuredContent"]["entities"]] == ["P4000"]
    wire.space.close()


def forget(wire: Wire) -> None:
    """Nothing is kept ready."""
    graph = wire.space.graph()
    graph.entity_pages.clear()
    graph.relation_pages.clear()
    forget_drawings(graph)


def call_line(tool: str, arguments: dict[str, Any], ident: int) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return encoded({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})
