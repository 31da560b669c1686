"""The documented requests of the older ten tools, word for word over the wire; their answers are those beside them.

What is answered beyond the documentation (ids of relations, counts) is allowed, what is missing is not. The nine
tools that look after a memory are in test_care.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.wire.test_care import Wire

CREATING = """{
    "entities": [
        {
            "name": "CachorroSpace",
            "entityType": "Project",
            "observations": [
                "Stack: Astro 6.x + Starlight 0.38.x",
                "Deployed on Vercel at cachorro.space"
            ]
        }
    ]
}"""
LINKING = """{
    "relations": [
        {
            "from": "CachorroSpace",
            "to": "Astro",
            "relationType": "uses"
        }
    ]
}"""
ADDING = """{
    "name": "CachorroSpace",
    "observations": ["ECharts 6.x chosen for visualizations", "Accent color: teal (#2dd4bf)"]
}"""
FORGETTING = """{
    "name": "CachorroSpace",
    "observations": ["Accent color: teal (#2dd4bf)"]
}"""
FIRST = json.loads(CREATING)["entities"][0]
ADDED = json.loads(ADDING)["observations"]
TRIPLE = json.loads(LINKING)["relations"][0]
INK = {"name": "CachorroInk", "entityType": "Project", "observations": ["Blog built with Astro 5.x"]}


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    wire = Wire(tmp_path / "memory.db", roots=(str(tmp_path),))
    assert wire.ask("create_entities", CREATING) == json.loads(CREATING)
    yield wire
    assert [finding.text for finding in wire.space.check()] == []
    wire.space.close()


def holds(answer: Any, documented: Any) -> None:
    """Is everything documented in the answer, in the same order and under the same names?"""
    if isinstance(documented, dict):
        assert answer.keys() >= documented.keys()
        for key, value in documented.items():
            holds(answer[key], value)
    elif isinstance(documented, list):
        assert len(answer) == len(documented)
        for mine, theirs in zip(answer, documented, strict=True):
            holds(mine, theirs)
    else:
        assert answer == documented


def test_create_entities_merges_and_refuses_an_entity_without_a_name(wire: Wire) -> None:
    again = {"entities": [{"name": "CachorroSpace", "observations": [FIRST["observations"][1], "new"]}]}

    merged = {**FIRST, "observations": [*FIRST["observations"], "new"]}
    assert wire.ask("create_entities", again) == {"entities": [merged]}
    assert "name" in wire.refusal("create_entities", entities=[{"entityType": "Project"}])["error"]
    assert wire.ask("create_entities", {"entities": [{"name": "x"}]}) == {
        "entities": [{"name": "x", "entityType": "Generic", "observations": []}]
    }


def test_create_relations(wire: Wire) -> None:
    wire.create("Astro", "Component")

    holds(wire.ask("create_relations", LINKING), json.loads(LINKING))
    holds(
        wire.ask("create_relations", LINKING),
        {"relations": [{**TRIPLE, "error": "Relation already exists"}]},
    )
    missing = {**TRIPLE, "to": "NonExistentEntity"}
    holds(
        wire.ask("create_relations", {"relations": [missing]}),
        {
            "relations": [{"error": "Entity not found: NonExistentEntity"}],
            "errors": ["Entity not found: NonExistentEntity"],
        },
    )


def test_add_observations(wire: Wire) -> None:
    told = {"entity": {**FIRST, "observations": [*FIRST["observations"], *ADDED]}}

    answer = wire.ask("add_observations", ADDING)
    assert answer.pop("flags_pending") == len(ADDED)  # ours beside the documented: it is compared behind the reply
    assert answer == told
    assert wire.ask("add_observations", ADDING) == told
    assert wire.refusal("add_observations", name="NonExistentEntity", observations=["x"]) == {
        "error": "Entity not found: NonExistentEntity"
    }


def test_delete_entities(wire: Wire) -> None:
    request = '{"entityNames": ["Old Project", "Deprecated Component"]}'
    for name in ("Old Project", "Deprecated Component"):
        wire.create(name, "Project", "old")

    assert wire.ask("delete_entities", request) == {"deleted": ["Old Project", "Deprecated Component"]}
    wire.create("Old Project", "Project")
    assert wire.ask("delete_entities", {"entityNames": ["Old Project", "Already Deleted Entity"]}) == {
        "deleted": ["Old Project"],
        "errors": ["Entity not found: Already Deleted Entity"],
    }


def test_delete_observations(wire: Wire) -> None:
    wire.ask("add_observations", ADDING)
    told = {"entity": {**FIRST, "observations": [*FIRST["observations"], ADDED[0]]}}

    assert wire.ask("delete_observations", FORGETTING) == told
    assert wire.ask("delete_observations", FORGETTING) == told
    assert wire.refusal("delete_observations", name="NonExistentEntity", observations=["x"]) == {
        "error": "Entity not found: NonExistentEntity"
    }


def test_delete_relations(wire: Wire) -> None:
    wire.create("Astro", "Component")
    wire.ask("create_relations", LINKING)

    assert wire.ask("delete_relations", LINKING) == {"deleted": [TRIPLE]}
    wire.create("A", "Thing")
    wire.create("B", "Thing")
    assert wire.ask("delete_relations", {"relations": [{"from": "A", "to": "B", "relationType": "contains"}]}) == {
        "deleted": [],
        "errors": ["Relation not found: A -> B (contains)"],
    }
    (error,) = wire.ask("delete_relations", {"relations": [{"from": "X", "to": "Y", "relationType": "z"}]})["errors"]
    assert error == "Entity not found: X or Y"


def test_search_nodes_and_open_nodes(wire: Wire) -> None:
    wire.ask("create_entities", {"entities": [INK]})

    found = wire.ask("search_nodes", '{ "query": "astro" }')["entities"]
    assert {one["name"]: one for one in found} == {"CachorroSpace": FIRST, "CachorroInk": INK}
    assert wire.ask("open_nodes", '{ "names": ["CachorroSpace", "Astro"] }')["entities"] == [FIRST]


def test_search_semantic(wire: Wire) -> None:
    wire.ask("create_entities", {"entities": [INK]})
    documentation = "Documentation site for open-source repos"
    wire.ask("add_observations", {"name": "CachorroSpace", "observations": [documentation]})

    results = wire.ask("search_semantic", '{"query": "web framework for documentation sites", "limit": 5}')["results"]

    assert results[0]["name"] == "CachorroSpace"
    assert results[0]["observations"] == [*FIRST["observations"], documentation]
    for one in results:
        assert one.keys() >= {"name", "entityType", "observations", "limbic_score", "scoring", "rrf_score"}
        assert one["scoring"].keys() >= {"importance", "temporal_factor", "cooc_boost"}
        assert one.get("distance", 0) >= 0  # of those that were found by their meaning


def test_migrate(wire: Wire, tmp_path: Path) -> None:
    source = tmp_path / "mcp-memory.jsonl"
    lines = [
        {"type": "entity", "name": "Old", "entityType": "Project", "observations": ["kept"]},
        {"type": "relation", "from": "Old", "to": "CachorroSpace", "relationType": "became"},
        {"type": "relation", "from": "Old", "to": "Nowhere", "relationType": "became"},
        {"type": "entity"},
    ]
    source.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")

    answer = wire.ask("migrate", {"source_path": str(source)})

    holds(answer, {"entities_imported": 1, "relations_imported": 1, "errors": 0, "skipped": 2})
    wire.ask("migrate", {"source_path": str(source)})
    assert wire.ask("open_nodes", {"names": ["Old"]})["entities"] == [
        {"name": "Old", "entityType": "Project", "observations": ["kept"]}
    ]
