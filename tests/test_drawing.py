"""A drawing is read by Mermaid and Graphviz as what it was: every name, every relation, whatever they are called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory import drawing
from mcp_memory.changes import AnyChange, EntityCreated, Entry, RelationCreated, RelationEnded
from mcp_memory.facts import GENERIC_TYPE, PLACEHOLDER
from mcp_memory.graph import Graph
from tests.peers.drawings import Draughtsman, Seen

FORMS: dict[str, Callable[[Graph], str]] = {"mermaid": drawing.mermaid, "dot": drawing.dot}

NASTY = [
    'say "hi"',
    "']['",
    "a[b](c){d}",
    "left | right",
    "back\\slash\\",
    "\\N \\G \\l \\",
    'C:\\new\\"table"',
    "<b>bold</b><script>x</script>",
    "#quot; #35; # 1",
    "&lt; &amp; &#38; &",
    "one\ntwo\r\nthree\u2028four",
    "tab\tbell\x07",
    "nul\0and\0nul",
    "\0",
    "%%{init: {'theme':'dark'}}%%",
    "%% remark",
    "style n0 fill:#fff,stroke:#333;",
    "classDef x:y #1;",
    "`code` and `**bold**`",
    "end",
    "graph LR",
    "subgraph x",
    "direction TB",
    "style a: direction  LR; #",
    "~~~",
    "-->|x| n9",
    "a; b; } digraph G {",
    "// comment /* x */",
    "---",
    " ",
    "\u200b",
    "日本語 ✨ 👩‍👩‍👧",
    "עברית \u202e right to left",
    "naïve café",
    "x" * 300,
]


@pytest.fixture(scope="module")
def draughtsman() -> Iterator[Draughtsman]:
    draughtsman = Draughtsman()
    yield draughtsman
    draughtsman.close()


def graph_of(names: list[str], links: list[tuple[int, str, int]], *more: AnyChange) -> Graph:
    graph = Graph()
    changes: list[AnyChange] = [EntityCreated(i, name, "t") for i, name in enumerate(names, 1)]
    changes += [RelationCreated(i, tail + 1, head + 1, kind) for i, (tail, kind, head) in enumerate(links, 1)]
    graph.apply([Entry(1, "2026-01-01 00:00:00", [*changes, *more])])
    return graph


def looked_at(text: str) -> str:
    """A name as it can be drawn: on one line, without characters that have no look, and white space as it may be."""
    drawable = re.sub("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]", " ", text)
    return " ".join(re.split("[ \u00a0]+", drawable)).strip()


def expected(names: list[str], links: list[tuple[int, str, int]]) -> Seen:
    nodes = {f"n{i}": looked_at(name) for i, name in enumerate(names)}
    return Seen(nodes, sorted((f"n{tail}", looked_at(kind), f"n{head}") for tail, kind, head in links))


def seen(draughtsman: Draughtsman, form: str, graph: Graph) -> Seen:
    found = draughtsman.sees(form, FORMS[form](graph))
    nodes = {ident: looked_at(label) for ident, label in found.nodes.items()}
    return Seen(nodes, sorted((tail, looked_at(label), head) for tail, label, head in found.edges))


@pytest.mark.parametrize("form", FORMS)
def test_every_nasty_name_is_read_as_it_is(draughtsman: Draughtsman, form: str) -> None:
    links = [(i, kind, (i + 1) % len(NASTY)) for i, kind in enumerate(NASTY)]

    assert seen(draughtsman, form, graph_of(NASTY, links)) == expected(NASTY, links)


names = st.lists(
    st.text(
        st.one_of(
            st.sampled_from("\"'#&;<>|[](){}\\%`:-~/.,= \n"),
            st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
        ),
        min_size=1,
        max_size=12,
    ),
    min_size=1,
    max_size=6,
    unique=True,
)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=names, data=st.data())
def test_any_name_and_any_type_is_read_as_it_is(
    draughtsman: Draughtsman, form: str, names: list[str], data: st.DataObject
) -> None:
    place = st.integers(0, len(names) - 1)
    links = data.draw(st.lists(st.tuples(place, st.sampled_from(names), place), max_size=5, unique=True))

    assert seen(draughtsman, form, graph_of(names, links)) == expected(names, links)


def test_a_drawing_has_the_form_that_the_rust_server_gave_it() -> None:
    graph = graph_of(["Ada", "Chess club"], [(0, "plays_in", 1), (1, "well-known to", 0)])

    assert drawing.mermaid(graph) == (
        'graph LR\n  n0["Ada"]\n  n1["Chess club"]\n  n0 -->|plays_in| n1\n  n1 -->|"well-known to"| n0\n'
    )
    assert drawing.dot(graph) == (
        'digraph G {\n  n0 [label="Ada"];\n  n1 [label="Chess club"];\n'
        '  n0 -> n1 [label="plays_in"];\n  n1 -> n0 [label="well-known to"];\n}\n'
    )


def test_what_ended_and_what_was_never_created_is_not_drawn() -> None:
    ghost = EntityCreated(3, "Ghost", GENERIC_TYPE, PLACEHOLDER)
    haunting = RelationCreated(3, 3, 1, "haunts")
    graph = graph_of(["Ada", "Bob"], [(0, "knows", 1), (1, "knows", 0)], RelationEnded(1), ghost, haunting)

    assert drawing.mermaid(graph) == 'graph LR\n  n0["Ada"]\n  n1["Bob"]\n  n1 -->|knows| n0\n'


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_drawn_as_nothing(draughtsman: Draughtsman, form: str) -> None:
    assert seen(draughtsman, form, Graph()) == Seen({}, [])
