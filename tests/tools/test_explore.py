"""Relations are followed: one way between two entities, all ways, and whoever is around."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.assembly import open_space
from mcp_memory.changes import AnyChange, EntityCreated, Plan, RelationCreated, RelationEnded
from mcp_memory.facts import PLACEHOLDER
from mcp_memory.shelf import Shelf
from mcp_memory.stores.sqlite.view import SqlView
from mcp_memory.tools.registry import REGISTRY
from tests.conftest import Caller, link, person


@pytest.fixture
def family(call: Caller) -> Caller:
    """Ada -> Bob -> Cy -> Dee in a row, a short cut Ada <- Cy, and Eve alone."""
    call("create_entities", entities=[person(name, f"{name} was here") for name in ("Ada", "Bob", "Cy", "Dee", "Eve")])
    call(
        "create_relations",
        relations=[
            link("Ada", "knows", "Bob"),
            link("Bob", "knows", "Cy"),
            link("Cy", "likes", "Dee"),
            link("Cy", "likes", "Ada"),
        ],
    )
    return call


@pytest.fixture
def crowd(call: Caller) -> Caller:
    """Nine around Hub, in order, each with the next."""
    names = [f"Member {i}" for i in range(9)]
    call("create_entities", entities=[person("Hub"), *map(person, names)])
    call("create_relations", relations=[link("Hub", "has", name) for name in names])
    call("create_relations", relations=[link(*pair) for pair in zip(names, ["next"] * 8, names[1:], strict=False)])
    return call


def names(answer: Any) -> list[str]:
    return [entity["name"] for entity in answer["entities"]]


def ids(answer: Any) -> list[int]:
    return [relation["id"] for relation in answer["relations"]]


# ── paths ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("start", "goal", "path"),
    [
        ("Ada", "Bob", ["Ada", "Bob"]),
        ("Ada", "Dee", ["Ada", "Cy", "Dee"]),
        ("Dee", "Bob", ["Dee", "Cy", "Bob"]),
        ("Ada", "Ada", ["Ada"]),
        ("Ada", "Eve", []),
    ],
)
def test_the_shortest_path_is_found_whatever_the_direction(
    family: Caller, start: str, goal: str, path: list[str]
) -> None:
    assert family("find_path", **{"from": start, "to": goal}) == {"path": path}
    assert family("find_path", from_entity=start, to_entity=goal) == {"path": path}


def test_between_equally_short_paths_the_older_relation_decides(call: Caller) -> None:
    call("create_entities", entities=[person(name) for name in ("Ada", "Old", "New", "Zoe")])
    pairs = [("Ada", "New"), ("Ada", "Old"), ("Old", "Zoe"), ("New", "Zoe")]
    call("create_relations", relations=[link(one, "knows", other) for one, other in pairs])

    assert call("find_path", **{"from": "Ada", "to": "Zoe"}) == {"path": ["Ada", "New", "Zoe"]}


def test_an_ended_relation_is_not_walked(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada"), person("Bob")])
    keep("create_relations", relations=[link("Ada", "knows", "Bob")])
    keep("end_relation", relation_id=1)

    assert keep("find_path", **{"from": "Ada", "to": "Bob"}) == {"path": []}
    assert keep("find_all_paths", **{"from": "Ada", "to": "Bob"}) == {"paths": []}
    assert names(keep("get_neighbors", name="Ada")) == ["Ada"]


def test_all_paths_come_shortest_first_and_once_each(family: Caller) -> None:
    family("create_relations", relations=[link("Ada", "likes", "Bob")])  # parallel to one that is there

    assert family("find_all_paths", **{"from": "Ada", "to": "Dee"}) == {
        "paths": [["Ada", "Cy", "Dee"], ["Ada", "Bob", "Cy", "Dee"]]
    }
    assert family("find_all_paths", **{"from": "Ada", "to": "Dee", "maxDepth": 2}) == {"paths": [["Ada", "Cy", "Dee"]]}
    assert family("find_all_paths", **{"from": "Ada", "to": "Dee", "maxDepth": 1}) == {"paths": []}
    assert family("find_all_paths", **{"from": "Ada", "to": "Ada"}) == {"paths": [["Ada"]]}


def test_more_paths_than_asked_for_are_said_and_had_by_offset(crowd: Caller) -> None:
    ends = {"from": "Hub", "to": "Member 4", "maxDepth": 16}
    everything = crowd("find_all_paths", **ends)
    assert len(everything["paths"]) == 9 and "cut" not in everything

    first = crowd("find_all_paths", **ends, maxPaths=5)
    second = crowd("find_all_paths", **ends, maxPaths=5, offset=first["nextOffset"])

    assert first["cut"] is True and "offset" in first["hint"]
    assert first["paths"] + second["paths"] == everything["paths"]
    assert "cut" not in second


def test_a_search_for_paths_that_became_too_large_says_so(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_memory.tools.explore.MOST_STEPS", 20)
    call("create_entities", entities=[person(str(i)) for i in range(8)])
    call("create_relations", relations=[link(str(i), "knows", str(j)) for i in range(8) for j in range(i)])

    answer = call("find_all_paths", **{"from": "0", "to": "7", "maxDepth": 7, "maxPaths": 1000})

    assert answer["cut"] is True and "nextOffset" not in answer
    assert "maxDepth below 7" in answer["hint"]


@pytest.mark.parametrize(("limit", "value"), [("maxDepth", 0), ("maxDepth", 17), ("maxPaths", 0), ("maxPaths", 1001)])
def test_limits_of_paths_are_enforced(family: Caller, limit: str, value: int) -> None:
    said = family.refusal("find_all_paths", **{"from": "Ada", "to": "Bob", limit: value})

    assert limit in said


@pytest.mark.parametrize("tool", ["find_path", "find_all_paths"])
def test_a_path_needs_both_its_ends(family: Caller, tool: str) -> None:
    assert family.refusal(tool, **{"from": "Ada", "to": "Nobody"}) == "Entity not found: Nobody"
    assert family.refusal(tool, **{"from": "Nobody", "to": "Ada"}) == "Entity not found: Nobody"


# ── neighbours ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "reached", "relations"),
    [
        ({}, ["Ada", "Bob", "Cy"], [1, 2, 4]),
        ({"direction": "out"}, ["Ada", "Bob"], [1]),
        ({"direction": "in"}, ["Ada", "Cy"], [4]),
        ({"depth": 0}, ["Ada"], []),
        ({"depth": 2}, ["Ada", "Bob", "Cy", "Dee"], [1, 2, 3, 4]),
        ({"depth": 2, "direction": "out"}, ["Ada", "Bob", "Cy"], [1, 2, 4]),
        ({"depth": 2, "direction": "in"}, ["Ada", "Cy", "Bob"], [1, 2, 4]),
        ({"relationType": "likes"}, ["Ada", "Cy"], [4]),
        ({"relationType": "likes", "depth": 16}, ["Ada", "Cy", "Dee"], [3, 4]),
        ({"relationType": "knows", "direction": "out", "depth": 2}, ["Ada", "Bob", "Cy"], [1, 2]),
        ({"relationType": "", "direction": "both"}, ["Ada", "Bob", "Cy"], [1, 2, 4]),
        ({"relationType": "hates"}, ["Ada"], []),
    ],
)
def test_neighbours_come_nearest_first_with_the_relations_among_them(
    family: Caller, arguments: dict[str, Any], reached: list[str], relations: list[int]
) -> None:
    answer = family("get_neighbors", name="Ada", **arguments)

    assert names(answer) == reached
    assert ids(answer) == relations
    assert answer["entities"][0] == person("Ada", "Ada was here")
    assert set(answer) == {"entities", "relations"}


def test_an_argument_that_is_null_counts_as_left_out(family: Caller) -> None:
    nothing = dict.fromkeys(("direction", "relationType", "depth", "offset", "limit"))

    assert family("get_neighbors", name="Ada", **nothing) == family("get_neighbors", name="Ada")
    assert "name must be text, not null" in family.refusal("get_neighbors", name=None)


def test_a_relation_to_itself_stays_with_its_entity(call: Caller) -> None:
    call("create_entities", entities=[person("Ada")])
    call("create_relations", relations=[link("Ada", "knows", "Ada")])

    for direction in ("both", "out", "in"):
        answer = call("get_neighbors", name="Ada", direction=direction, depth=0)
        assert (names(answer), ids(answer)) == (["Ada"], [1])


def test_a_page_far_from_its_origin_costs_what_it_shows(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"P{n}" for n in range(1000)]
    for start in range(0, 1000, 50):
        call("create_entities", entities=[person(name) for name in names[start : start + 50]])
    call("create_relations", relations=[link("P0", "knows", name) for name in names[1:]])
    pairs = pairwise(names[1:])
    call("create_relations", relations=[link(one, "next", other) for one, other in pairs])
    call("get_neighbors", name="P0")  # who is beside whom is known from now on
    looked = []
    many = Shelf.many

    def counted(shelf: Shelf[Any], ids: list[int]) -> list[Any]:
        looked.append(len(ids))
        return many(shelf, ids)

    monkeypatch.setattr(Shelf, "many", counted)

    page = call("get_neighbors", name="P0", offset=900, limit=10)

    assert [entity["name"] for entity in page["entities"]] == names[900:910]
    assert len(page["relations"]) == 20  # to P0, and to the one before
    assert sum(looked) < 100


def test_a_wrong_direction_or_depth_is_refused_with_what_would_be_right(family: Caller) -> None:
    assert family.refusal("get_neighbors", name="Nobody") == "Entity not found: Nobody"
    said = family.refusal("get_neighbors", name="Ada", direction="sideways")
    assert "direction" in said and "both, in, out" in said
    assert "depth" in family.refusal("get_neighbors", name="Ada", depth=17)
    assert "depth" in family.refusal("extract_subgraph", names=["Ada"], depth=-1)


def test_pages_of_neighbours_add_up_to_all_of_them(crowd: Caller) -> None:
    everything = crowd("get_neighbors", name="Hub")
    found: dict[str, list[Any]] = {"entities": [], "relations": []}
    offset = 0
    while offset is not None:
        page = crowd("get_neighbors", name="Hub", offset=offset, limit=4)
        assert len(page["entities"]) <= 4
        for what, all_of_it in found.items():
            all_of_it += page[what]
        assert page.get("total", 10) == 10
        offset = page.get("nextOffset")

    assert names(everything) == ["Hub", *(f"Member {i}" for i in range(9))]
    assert found["entities"] == everything["entities"]
    assert sorted(found["relations"], key=lambda one: one["id"]) == everything["relations"]
    assert names(crowd("get_neighbors", name="Hub", offset=10)) == []


def test_a_neighbourhood_without_end_is_cut_and_says_so(crowd: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_memory.tools.explore.MOST_REACHED", 5)

    answer = crowd("get_neighbors", name="Hub")

    assert len(answer["entities"]) == 5
    assert answer["cut"] is True and "smaller depth" in answer["hint"]


def test_too_many_relations_for_a_page_are_cut_and_said(crowd: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_memory.tools.explore.FEWEST_RELATIONS", 2)
    monkeypatch.setattr("mcp_memory.tools.explore.RELATIONS_EACH", 1)

    answer = crowd("extract_subgraph", names=["Hub"], limit=5)

    assert len(answer["relations"]) == 5 < len(crowd("extract_subgraph", names=["Hub"], limit=9)["relations"])
    assert answer["cut"] is True and "2 more relations" in answer["hint"]


# ── subgraphs ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("seeds", "depth", "reached", "relations"),
    [
        (["Dee", "Bob"], 0, ["Dee", "Bob"], []),
        (["Bob", "Ada"], 0, ["Bob", "Ada"], [1]),
        (["Dee"], 1, ["Dee", "Cy"], [3]),
        (["Dee", "Eve", "Dee"], 2, ["Dee", "Eve", "Cy", "Bob", "Ada"], [1, 2, 3, 4]),
        (["Ghost"], 3, [], []),
        (["Ghost", "Eve"], 16, ["Eve"], []),
        ([], 1, [], []),
    ],
)
def test_a_subgraph_holds_what_is_near_the_seeds_and_all_relations_within(
    family: Caller, seeds: list[str], depth: int, reached: list[str], relations: list[int]
) -> None:
    answer = family("extract_subgraph", names=seeds, depth=depth)

    assert (names(answer), ids(answer)) == (reached, relations)


def test_a_subgraph_reaches_one_step_unless_told_otherwise(family: Caller) -> None:
    assert names(family("extract_subgraph", names=["Dee"])) == ["Dee", "Cy"]
    assert "51 > 50" in family.refusal("extract_subgraph", names=["x"] * 51)


def test_who_was_never_created_is_nobodys_neighbour(call: Caller) -> None:
    official = Caller(call.space, "official")
    official("create_entities", entities=[person("Ada"), person("Bob")])
    official("create_relations", relations=[link("Ada", "knows", "Ghost"), link("Ghost", "knows", "Bob")])

    assert call("find_path", **{"from": "Ada", "to": "Bob"}) == {"path": []}
    for direction in ("both", "out", "in"):
        assert names(call("get_neighbors", name="Ada", depth=2, direction=direction)) == ["Ada"]
    assert call.refusal("get_neighbors", name="Ghost") == "Entity not found: Ghost"
    assert call("extract_subgraph", names=["Ada", "Ghost", "Bob"], depth=3)["relations"] == []


# ── any graph, anywhere ──────────────────────────────────────────────────────────────────────────

PEOPLE = ("Ada", "Bob", "Cy", "Dee", "Ghost")
places = st.integers(1, len(PEOPLE))


@settings(max_examples=15, deadline=None)
@given(
    triples=st.lists(st.tuples(places, places, st.sampled_from(["knows", "likes"])), max_size=14, unique=True),
    ended=st.sets(st.integers(1, 14), max_size=4),
)
def test_the_tables_answer_what_the_graph_answers(
    tmp_path_factory: pytest.TempPathFactory, triples: list[tuple[int, int, str]], ended: set[int]
) -> None:
    file: Path = tmp_path_factory.mktemp("view") / "memory.db"
    space = open_space(file)
    changes: list[AnyChange] = [
        EntityCreated(i, name, "t", PLACEHOLDER if name == "Ghost" else "activo") for i, name in enumerate(PEOPLE, 1)
    ]
    changes += [RelationCreated(i, *triple) for i, triple in enumerate(triples, 1)]
    changes += [RelationEnded(i) for i in ended if i <= len(triples)]
    space.commit(lambda graph: Plan(changes))
    space.settle()
    views = (space.graph(), SqlView(apsw.Connection(str(file))))

    for start, goal, size in product(PEOPLE[:4], PEOPLE[:4], (1, 2, 4)):
        for tool, arguments in (
            ("find_path", (start, goal)),
            ("find_all_paths", (start, goal, size, size)),
            ("extract_subgraph", ([goal, start], size - 1, 0, size)),
            ("get_neighbors", (start, "both", "", size)),
            ("get_neighbors", (start, "out", "knows", size)),
            ("get_neighbors", (start, "in", "", size)),
        ):
            one, other = (REGISTRY[tool].function(view, *arguments) for view in views)
            assert one == other
    one, other = (view.glance(3, 3) for view in views)
    assert one == other
    space.close()
