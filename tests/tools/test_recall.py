"""What is known is shown: by name, in pages, in detail."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.space import Space
from tests.conftest import Caller, link, person


@pytest.fixture
def club(call: Caller) -> Caller:
    call("create_entities", entities=[person("Ada", "a"), person("Bob"), {"name": "Chess", "entityType": "Game"}])
    call(
        "create_relations",
        relations=[link("Ada", "plays", "Chess"), link("Bob", "plays", "Chess"), link("Ada", "knows", "Bob")],
    )
    return call


def test_the_whole_graph_is_read_in_order_of_creation(club: Caller) -> None:
    graph = club("read_graph")

    assert [entity["name"] for entity in graph["entities"]] == ["Ada", "Bob", "Chess"]
    assert [relation["id"] for relation in graph["relations"]] == [1, 2, 3]


def test_a_page_of_the_graph_has_only_relations_inside_it(club: Caller) -> None:
    page = club("read_graph", limit=2)

    assert [entity["name"] for entity in page["entities"]] == ["Ada", "Bob"]
    assert page["relations"] == [{"id": 3, **link("Ada", "knows", "Bob")}]
    assert (page["total"], page["nextOffset"]) == (3, 2)
    last = club("read_graph", offset=2, limit=2)
    assert [entity["name"] for entity in last["entities"]] == ["Chess"]
    assert "nextOffset" not in last


def test_the_graph_can_be_read_by_type(club: Caller) -> None:
    assert [entity["name"] for entity in club("read_graph", entityType="Game")["entities"]] == ["Chess"]
    assert club("read_graph", entityType="Nothing") == {"entities": [], "relations": []}
    assert club("read_graph", entityType="Person", limit=0)["entities"] == []


def test_nodes_are_opened_in_the_order_asked_for(club: Caller) -> None:
    opened = club("open_nodes", names=["Bob", "Nobody", "Ada", "Bob"])

    assert [entity["name"] for entity in opened["entities"]] == ["Bob", "Ada"]
    assert [relation["id"] for relation in opened["relations"]] == [1, 2, 3]


def test_opening_in_detail_shows_ids_and_kinds(club: Caller) -> None:
    (ada,) = club("open_nodes", names=["Ada"], detail=True)["entities"]

    assert (ada["id"], ada["name"], ada["status"]) == (1, "Ada", "activo")
    (seen,) = ada["observations"]
    assert (seen["id"], seen["content"], seen["kind"]) == (1, "a", "generic")


def test_an_entity_is_described_with_all_that_touches_it(club: Caller) -> None:
    described = club("describe_entity", name="Ada")

    assert described["degree"] == 2
    assert described["neighbors"] == ["Chess", "Bob"]
    assert described["relations"] == [
        {"id": 1, **link("Ada", "plays", "Chess"), "direction": "out"},
        {"id": 3, **link("Ada", "knows", "Bob"), "direction": "out"},
    ]
    assert club("describe_entity", name="Chess")["relations"][0]["direction"] == "in"
    assert club.refusal("describe_entity", name="Nobody") == "Entity not found: Nobody"


def test_a_relation_to_itself_counts_once_and_is_no_neighbour(call: Caller) -> None:
    call("create_entities", entities=[person("Ada")])
    call("create_relations", relations=[link("Ada", "knows", "Ada")])

    described = call("describe_entity", name="Ada")

    assert (described["degree"], described["neighbors"]) == (1, [])


def test_several_entities_are_got_with_null_for_the_missing(club: Caller) -> None:
    assert club("batch_get_entities", names=["Bob", "Nobody", "Bob"])["entities"] == [
        person("Bob"),
        None,
        person("Bob"),
    ]
    assert club.refusal("get_entity", name="Nobody") == "Entity not found: Nobody"
    assert "51 > 50" in club.refusal("batch_get_entities", names=["x"] * 51)


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, [1, 2, 3]),
        ({"from": "Ada"}, [1, 3]),
        ({"to": "Chess"}, [1, 2]),
        ({"from": "Ada", "to": "Chess"}, [1]),
        ({"relationType": "plays"}, [1, 2]),
        ({"from": "", "to": "", "relationType": ""}, [1, 2, 3]),
        ({"from": "Nobody"}, []),
        ({"relationType": "nothing"}, []),
        ({"offset": 1, "limit": 1}, [2]),
    ],
)
def test_relations_are_found_by_their_ends_and_type(club: Caller, filters: dict[str, object], ids: list[int]) -> None:
    assert [relation["id"] for relation in club("search_relations", **filters)["relations"]] == ids


def test_what_came_back_from_a_deletion_is_shown_as_it_was(sqlite_space: Space, database: Path) -> None:
    keep = Caller(sqlite_space)
    keep("create_entities", entities=[person("Ada"), person("Bob"), person("Cy")])
    keep("create_relations", relations=[link("Ada", "knows", "Bob"), link("Bob", "knows", "Cy")])
    keep("delete_relations", relations=[link("Ada", "knows", "Bob")])
    sqlite_space.settle()
    again = open_space(database)  # what it finds is newer than what will come back
    later = Caller(again)
    later("read_graph")

    later("undo", call=3)

    assert later("search_relations", to="Bob")["relations"] == [{"id": 1, **link("Ada", "knows", "Bob")}]
    assert [one["id"] for one in later("open_nodes", names=["Bob"])["relations"]] == [1, 2]
    assert again.check() == []
    again.close()


def test_types_are_ranked_by_use(club: Caller) -> None:
    assert club("list_entity_types") == {"types": [{"type": "Person", "count": 2}, {"type": "Game", "count": 1}]}
    assert club("list_relation_types") == {"types": [{"type": "plays", "count": 2}, {"type": "knows", "count": 1}]}


@pytest.mark.parametrize("tool", ["list_entity_types", "list_relation_types"])
def test_types_come_by_pages_where_one_is_asked_for(call: Caller, tool: str) -> None:
    call("create_entities", entities=[{"name": str(n), "entityType": f"T{n % 4}"} for n in range(10)])
    call("create_relations", relations=[link(str(n), f"T{n % 4}", "0") for n in range(10)])
    everything = call(tool)
    assert [found["count"] for found in everything["types"]] == [3, 3, 2, 2]
    assert set(everything) == {"types"}

    first = call(tool, limit=3)
    second = call(tool, limit=3, offset=first["nextOffset"])

    assert first["types"] + second["types"] == everything["types"]
    assert (first["total"], "total" in second, call(tool, offset=9)) == (4, False, {"types": []})


def test_stats_follow_every_change(club: Caller) -> None:
    before = club("graph_stats")
    assert (before["entities"], before["relations"], before["totalObservations"]) == (3, 3, 1)

    club("create_entities", entities=[person("Dee", "one two", "two three")])

    after = club("graph_stats")
    assert after["entities"] == 4
    assert after["totalObservations"] == 3
    assert after["searchIndexEntries"] == before["searchIndexEntries"] + 5  # dee person one two three
    club("delete_entities", entityNames=["Dee"])
    again = club("graph_stats")
    counted = ("entities", "relations", "totalObservations", "searchIndexEntries")
    assert [again[key] for key in counted] == [before[key] for key in counted]


# ── what has grown large ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def hub(call: Caller) -> Caller:
    """Everybody knows Ada, of whom much is told."""
    call("create_entities", entities=[person("Ada", *(f"fact {n}" for n in range(60)))])
    for start in range(0, 1100, 50):
        names = [f"P{n}" for n in range(start, start + 50)]
        call("create_entities", entities=[person(name) for name in names])
        call("create_relations", relations=[link(name, "knows", "Ada") for name in names])
    return call


@pytest.mark.parametrize(("tool", "asked"), [("open_nodes", {"names": ["Ada"]}), ("search_nodes", {"query": "fact 7"})])
def test_an_answer_carries_so_many_relations_and_says_where_the_others_are(
    hub: Caller, tool: str, asked: dict[str, object]
) -> None:
    found = hub(tool, **asked)

    assert [entity["name"] for entity in found["entities"]] == ["Ada"]
    assert (len(found["relations"]), found["cut"]) == (1000, True)
    assert found["hint"].startswith("100 more relations") and "search_relations" in found["hint"]
    others = hub("search_relations", to="Ada", offset=1000)["relations"]
    assert [r["id"] for r in [*found["relations"], *others]] == list(range(1, 1101))


def test_an_entity_is_described_by_pages(hub: Caller) -> None:
    pages = [hub("describe_entity", name="Ada", limit=50)]
    while "nextOffset" in pages[-1]:
        pages.append(hub("describe_entity", name="Ada", limit=50, offset=pages[-1]["nextOffset"]))

    told = [seen["content"] for page in pages for seen in page["entity"]["observations"]]
    assert told == [f"fact {n}" for n in range(60)]
    assert [name for page in pages for name in page["neighbors"]] == [f"P{n}" for n in range(1100)]
    assert [r["id"] for page in pages for r in page["relations"]] == list(range(1, 1101))
    assert all(page["degree"] == 1100 for page in pages)
    assert (pages[0]["totalObservations"], pages[0]["nextOffset"]) == (60, 50)
    assert len(hub("describe_entity", name="Ada")["relations"]) == 200
