"""The nine tools without a wire: they leave a sound space, in every store, and search finds what it must."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory import open_space
from mcp_memory.changes import Entry
from mcp_memory.desk import Answer, Desk
from mcp_memory.facts import OFFICIAL_LIMITS, Entity
from mcp_memory.graph import Graph
from mcp_memory.tools.official import _matching, create_entities, official_tools
from mcp_memory.tools.official_shapes import NewEntity, OfficialTool
from tests.official.recorded import CONVERSATIONS, ODD_NAMES, QUERIES, create, entity, relate, relation

TOOLS = official_tools()
MOST_BYTES = 11_000


def desk(file: Path) -> Desk:
    return Desk(open_space(file, limits=OFFICIAL_LIMITS), TOOLS, OFFICIAL_LIMITS, plain_errors=True)


def ask(desk: Desk, step: Any) -> Answer:
    params = step["params"]
    return desk.call(TOOLS[params["name"]], json.dumps(params.get("arguments", {})).encode())


def calls(title: str) -> list[Any]:
    """The calls of a recorded conversation."""
    steps = [step for step in CONVERSATIONS[title] if isinstance(step, dict) and step["method"] == "tools/call"]
    return [
        step
        for step in steps
        if isinstance(step["params"].get("arguments", {}), dict) and step["params"].get("name") in [*TOOLS]
    ]


@pytest.mark.parametrize("title", [title for title in CONVERSATIONS if calls(title)])
def test_every_store_gives_the_same_answers_and_is_sound_after_every_call(title: str, tmp_path: Path) -> None:
    desks = [desk(tmp_path / "memory.jsonl"), desk(tmp_path / "memory.db")]
    for number, step in enumerate(calls(title)):
        one, other = (ask(it, step) for it in desks)
        assert one == other
        if number < 40:  # all of most conversations, and the beginning of the longest
            assert [it.space.check() for it in desks] == [[], []]

    assert [it.space.check() for it in desks] == [[], []]
    for it in desks:
        it.space.close()


def test_an_answer_shows_nothing_that_has_ended_or_was_superseded(tmp_path: Path) -> None:
    from mcp_memory.changes import ObservationsAdded, ObservationSuperseded, Plan, RelationEnded

    desk_ = desk(tmp_path / "memory.db")
    ask(desk_, create(entity("A", "old"), entity("B")))
    ask(desk_, relate(relation("A", "B"), relation("B", "A")))
    changes: list[Any] = [ObservationsAdded(1, 2, ["new"]), ObservationSuperseded(1, 1, 2), RelationEnded(1)]
    desk_.space.commit(lambda graph: Plan(changes))

    for step in (
        {"params": {"name": "read_graph"}},
        {"params": {"name": "open_nodes", "arguments": {"names": ["A", "B"]}}},
        {"params": {"name": "search_nodes", "arguments": {"query": ""}}},
    ):
        shown = json.loads(ask(desk_, step).structured or b"")
        assert shown == {"entities": [entity("A", "new"), entity("B")], "relations": [relation("B", "A")]}
    assert b'"entities":[]' in (
        ask(desk_, {"params": {"name": "search_nodes", "arguments": {"query": "old"}}}).structured or b""
    )
    desk_.space.close()


def test_a_relation_that_had_ended_is_new_when_it_is_created_again(tmp_path: Path) -> None:
    from mcp_memory.changes import Plan, RelationEnded

    desk_ = desk(tmp_path / "memory.db")
    ask(desk_, relate(relation("A", "B")))
    desk_.space.commit(lambda graph: Plan([RelationEnded(1)]))

    assert (
        ask(desk_, relate(relation("A", "B"))).structured
        == b'{"relations":[{"from":"A","to":"B","relationType":"knows"}]}'
    )
    assert desk_.space.check() == []
    desk_.space.close()


def test_the_list_of_tools_is_small() -> None:
    listed = [tool.wire() for tool in TOOLS.values() if isinstance(tool, OfficialTool)]

    assert len(listed) == 9
    assert len(json.dumps({"tools": listed}, separators=(",", ":"), ensure_ascii=False).encode()) <= MOST_BYTES


# ── search: exactly the substrings, however they are found ───────────────────────────────────────────

# What folding turns into something else: accents, jamo, kana and their marks, sigmas, …
CLUSTERS = (
    *("か\u3099", "が", "\u3099", "\u1100\u1161\u11a8", "\u1100\u1161", "\u1161\u11a8", "가", "가\u11a8", "각"),
    *("क\u093c", "क", "\u094dक", "\u0bc6\u0bbe", "\u0bc6", "=\u0338", "=", "e\u0301", "é", "e\u0327\u0301", "\u0301"),
    *(
        "ß",
        "SS",
        "ſ",
        "K",
        "İ",
        "I",
        "ı",
        "i",
        "Σ",
        "σ",
        "ς",
        "ŉ",
        "ﬁ",
        "fi",
        "中",
        "_",
        " ",
        ".",
        "-",
        "1",
        "²",
        "😀",
        "a",
        "A",
    ),
)
tricky = st.lists(st.sampled_from(CLUSTERS), max_size=4).map("".join)


def graph_of(*texts: str) -> Graph:
    graph = Graph()
    new = [NewEntity(f"{number}", "", [text]) for number, text in enumerate(texts)]
    graph.apply([Entry(1, "", create_entities(graph, new).changes)])
    return graph


def scanned(graph: Graph, query: str) -> list[Entity]:
    """What the official server does: look at everything."""
    wanted = query.lower()
    return [
        one
        for one in graph.entities()
        if any(wanted in text.lower() for text in (one.name, one.entity_type, *one.texts()))
    ]


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.lists(tricky, min_size=1, max_size=4), st.data())
def test_a_search_finds_exactly_what_looking_at_everything_finds(texts: list[str], data: st.DataObject) -> None:
    graph = graph_of(*texts)
    text = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, len(text)))
    for query in (text[start : start + data.draw(st.integers(0, 4))], data.draw(tricky)):
        assert _matching(graph, query) == scanned(graph, query)


def test_every_recorded_query_finds_exactly_what_looking_at_everything_finds() -> None:
    graph = graph_of(*ODD_NAMES)
    for query in (*QUERIES, *ODD_NAMES, *(name[1:] for name in ODD_NAMES), *(name[:-1] for name in ODD_NAMES)):
        assert _matching(graph, query) == scanned(graph, query), query
