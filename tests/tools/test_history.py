"""Who changed what and when: of everything, of an entity, of a relation; page by page; found by who, when and words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mcp_memory.space import Space
from tests.conftest import Caller, link, person


def by(call: Caller, origin: str, tool: str, /, **arguments: Any) -> None:
    answer = call.desk.call(call.desk.tools[tool], msgspec.json.encode(arguments), origin=origin)
    assert not answer.is_error, answer.text


def numbers(call: Caller, **wanted: Any) -> list[int]:
    return [one["call"] for one in call("history", **wanted)["calls"]]


@pytest.fixture
def lived(keep: Caller, sqlite_space: Space) -> Caller:
    """Seven calls of three clients, a day each."""
    days = iter(range(1, 20))
    sqlite_space.clock = lambda: f"2026-03-{next(days):02} 12:00:00"
    by(keep, "cursor/2.1 stdio", "create_entities", entities=[person("Ada", "likes tea"), person("Bob"), person("Cy")])
    by(
        keep,
        "cursor/2.1 stdio",
        "create_relations",
        relations=[link("Ada", "knows", "Bob"), link("Bob", "knows", "Cy")],
    )
    by(keep, "zed/0.9 http as team", "add_observations", name="Ada", observations=["x" * 500 + " Rome at last"])
    by(keep, "zed/1.0 tcp 127.0.0.7", "end_relation", relation_id=1)
    by(keep, "zed/1.0 tcp 127.0.0.7", "create_relations", relations=[link("Ada", "knows", "Bob")])
    by(keep, "cursor/2.1 stdio", "add_observations", name="Cy", observations=["heard of (relation 1)"])
    by(keep, "cursor/2.1 stdio", "delete_entities", entityNames=["Bob"])
    return keep


def test_everything_is_told_newest_first_and_page_by_page(lived: Caller) -> None:
    assert numbers(lived) == [7, 6, 5, 4, 3, 2, 1]
    pages, before = [], None
    while True:
        page = lived("history", limit=3, **({"before": before} if before else {}))
        pages.append([one["call"] for one in page["calls"]])
        before = page.get("before")
        if before is None:
            break
    assert pages == [[7, 6, 5], [4, 3, 2], [1]]


def test_an_entity_has_a_history_of_its_own_also_when_it_is_gone(lived: Caller) -> None:
    assert numbers(lived, name="Cy") == [7, 6, 2, 1]
    assert numbers(lived, name="Bob") == [7, 5, 4, 2, 1]
    assert lived("history", name="Bob", limit=1)["calls"][0]["did"] == ["deleted Bob with 2 relations"]
    assert "No entity is or was named" in lived.refusal("history", name="Dee")


def test_a_relation_has_a_history_from_its_making_to_the_end_of_what_it_joined(lived: Caller) -> None:
    told = lived("history", relation_id=1)["calls"]

    assert [(one["call"], one["tool"]) for one in told] == [
        (7, "delete_entities"),
        (5, "create_relations"),
        (4, "end_relation"),
        (2, "create_relations"),
    ]
    assert told[-1]["did"] == ["Ada knows Bob (relation 1)"]
    assert numbers(lived, relation_id=99) == []


@pytest.mark.parametrize(
    ("wanted", "calls"),
    [
        ({"by": "ZED"}, [5, 4, 3]),
        ({"by": "zed/1.0"}, [5, 4]),
        ({"by": "127.0.0.7"}, [5, 4]),
        ({"by": "as team"}, [3]),
        ({"by": "nobody"}, []),
        ({"tool": "end_relation"}, [4]),
        ({"since": "2026-03-06"}, [7, 6]),
        ({"until": "2026-03-02"}, [2, 1]),
        ({"since": "2026-03-03 12:00", "until": "2026-03-04"}, [4, 3]),
        ({"query": "likes TEA"}, [1]),
        ({"query": "rome at last"}, [3]),  # far behind where a line is cut
        ({"name": "Ada", "by": "zed", "query": "knows"}, [5, 4]),
    ],
)
def test_it_is_found_by_who_when_and_what(lived: Caller, wanted: dict[str, Any], calls: list[int]) -> None:
    assert numbers(lived, **wanted) == calls


def test_a_call_says_who_made_it_and_all_that_it_did(lived: Caller) -> None:
    (told,) = lived("history", call=3)["calls"]

    assert (told["by"], told["tool"], told["at"]) == ("zed/0.9 http as team", "add_observations", "2026-03-03 12:00:00")
    assert told["did"][0].startswith('Ada + "xxx') and len(told["did"][0]) < 140
