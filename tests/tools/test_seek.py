"""Search finds: the literal set first and exactly, then all the words, then what is most relevant."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.changes import EntityCreated, Entry
from mcp_memory.graph import Graph
from mcp_memory.search.folding import fold
from mcp_memory.search.words import searched as fields
from tests.conftest import Caller, link, person


@pytest.fixture
def told(call: Caller) -> Caller:
    call(
        "create_entities",
        entities=[
            person("Żółć", "likes tea", "100% wool_coat"),
            person("Café Ñandú", "serves tea and cake, likes dogs"),
            person("Bob", "met Żółć at the café", "writes C++ and node.js (at night)"),
            {"name": "Tea", "entityType": "Drink", "observations": ["hot"]},
        ],
    )
    call("create_relations", relations=[link("Bob", "drinks", "Tea"), link("Bob", "visits", "Café Ñandú")])
    return call


def names(answer: dict[str, Any]) -> list[str]:
    return [entity["name"] for entity in answer["entities"]]


def test_the_name_itself_comes_before_mentions(told: Caller) -> None:
    assert names(told("search_nodes", query="tea"))[0] == "Tea"
    assert set(names(told("search_nodes", query="tea"))) == {"Tea", "Żółć", "Café Ñandú"}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("ŻÓŁĆ", {"Żółć", "Bob"}),
        ("cafe", {"Café Ñandú", "Bob"}),
        ("nandu", {"Café Ñandú"}),
        ("ÑANDÚ", {"Café Ñandú"}),
        ("kes te", {"Żółć"}),
        ("%", {"Żółć"}),
        ("wool_c", {"Żółć"}),
        ("C++", {"Bob"}),
        ("node.js (at", {"Bob"}),
        ("DRINK", {"Tea"}),
        ("likes", {"Żółć", "Café Ñandú"}),
        ("ikes d", {"Café Ñandú"}),
        ("cake, likes", {"Café Ñandú"}),
        ("visits", set()),
    ],
)
def test_a_literal_piece_of_text_finds_exactly_who_has_it(told: Caller, query: str, found: set[str]) -> None:
    assert set(names(told("search_nodes", query=query))) == found


def test_words_in_another_order_find_who_has_them_all(told: Caller) -> None:
    assert names(told("search_nodes", query="tea likes")) == ["Café Ñandú", "Żółć"] or names(
        told("search_nodes", query="tea likes")
    ) == ["Żółć", "Café Ñandú"]
    assert names(told("search_nodes", query="dog cak")) == ["Café Ñandú"]


def test_a_question_finds_the_most_relevant(told: Caller) -> None:
    assert names(told("search_nodes", query="Who was it that writes things at night?"))[0] == "Bob"


def test_relations_touching_what_was_found_come_along(told: Caller) -> None:
    assert told("search_nodes", query="hot")["relations"] == [{"id": 1, **link("Bob", "drinks", "Tea")}]


def test_results_are_filtered_by_type_and_paged(told: Caller) -> None:
    assert names(told("search_nodes", query="tea", entityType="Drink")) == ["Tea"]
    everyone = names(told("search_nodes", query="tea"))
    first = told("search_nodes", query="tea", limit=2)
    assert (names(first), first["total"], first["nextOffset"]) == (everyone[:2], 3, 2)
    assert names(told("search_nodes", query="tea", offset=2)) == everyone[2:]


@pytest.mark.parametrize("query", ["", "   ", "zebra", '"', "AND OR NOT", "*", "(", "a" * 500])
def test_nothing_in_a_query_breaks_a_search(told: Caller, query: str) -> None:
    told("search_nodes", query=query)


def test_a_query_has_a_limit(told: Caller) -> None:
    assert "501 > 500" in told.refusal("search_nodes", query="a" * 501)


def test_search_follows_every_change(told: Caller) -> None:
    told("add_observations", name="Bob", observations=["plays the xylophone"])
    assert names(told("search_nodes", query="xylophone")) == ["Bob"]

    told("delete_observations", name="Bob", observations=["plays the xylophone"])
    assert names(told("search_nodes", query="xylophone")) == []

    told("delete_entities", entityNames=["Tea"])
    assert "Tea" not in names(told("search_nodes", query="tea"))


TEXTS = st.text(alphabet="aeéèñÑ bB-_.,%ßİΣσς가각🙂\n", max_size=12)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(TEXTS, max_size=3), min_size=1, max_size=6), TEXTS)
def test_the_literal_set_is_what_reading_everything_would_find(told: list[list[str]], query: str) -> None:
    graph = Graph()
    created = [
        EntityCreated(i, f"n{i}", "t", first=i * 10, texts=list(dict.fromkeys(texts)))
        for i, texts in enumerate(told, 1)
    ]
    graph.apply([Entry(1, "now", list(created))])

    folded = fold(query)
    everything = [e.id for e in graph.entities() if folded and any(folded in fold(text) for text in fields(e))]

    assert sorted(chain.from_iterable(graph.texts.literal(query))) == everything
