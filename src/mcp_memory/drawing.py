"""A whole graph as a drawing: Mermaid or DOT text in which every name, whatever it holds, stays a name.

The law: no line is made by itself. Names are quoted all at once, between NULs, which no name keeps here,
and lines of a kind come from one template, thousands at a time: 120,000 of them in 25 ms, one by one it was 60."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain, count, islice
from typing import Any

from mcp_memory.graph import Graph
from mcp_memory.pace import spend

NUL = "\0"
# Between so many relations or lines others get their turn.
RELATIONS_AT_ONCE = LINES_AT_ONCE = 4096
# What would break a line of the drawing, or is no character that anything could draw.
UNDRAWABLE = re.compile("[\x01-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")

# Mermaid takes #name; and #number; for a character, also in quotes. So is written what means something to
# it there, to the HTML of its labels, or to its directives, which it finds anywhere.
MERMAID_CODES = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "%": "#37;"}
# Directions of writing turn around what stands after them, also in the source: they stand as their codes.
TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# It also sees a direction wherever one is named, and a style where a colon comes before a code.
MERMAID_DIRECTION = re.compile(r"d(?=irection\W+(?:TB|BT|RL|LR|TD))")
# A relation type like this one stands without quotes, as the Rust server wrote it. Words with spaces can
# be commands: `direction LR`.
MERMAID_PLAIN = re.compile(r"\w+(?:-\w+)*")

# Graphviz takes &name; and &#number; for a character.
DOT_ENTITY = re.compile(r"&(?=#?\w+;)")

Edges = tuple[Sequence[int], list[str], Sequence[int]]  # tail, type and head of every relation


def mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart."""
    names, (tails, types, heads) = _columns(graph)
    used = list(dict.fromkeys(types))
    kinds = {
        kind: kind if MERMAID_PLAIN.fullmatch(kind) else f'"{quoted}"'
        for kind, quoted in zip(used, _mermaid_quoted(used), strict=True)
    }
    nodes = _lines('  n%d["%s"]\n', count(), _mermaid_quoted(names))
    edges = _lines("  n%d -->|%s| n%d\n", tails, map(kinds.__getitem__, types), heads)
    return f"graph LR\n{nodes}{edges}"


def dot(graph: Graph) -> str:
    """The graph in the language of Graphviz."""
    names, (tails, types, heads) = _columns(graph)
    used = list(dict.fromkeys(types))
    kinds = dict(zip(used, _dot_quoted(used), strict=True))
    nodes = _lines('  n%d [label="%s"];\n', count(), _dot_quoted(names))
    edges = _lines('  n%d -> n%d [label="%s"];\n', tails, heads, map(kinds.__getitem__, types))
    return f"digraph G {{\n{nodes}{edges}}}\n"


def _columns(graph: Graph) -> tuple[list[str], Edges]:
    """The names of the entities in order, and the relations between their places in it."""
    ids, _ = graph.entity_page("", 0, graph.entity_count)
    # An array by id: the ends of relations are looked up in no order, and a dictionary of 40,000 is slow at that.
    places = array("q", [-1]) * (graph.next_entity + 1)
    for place, entity_id in enumerate(ids):
        places[entity_id] = place
    unseen = graph.placeholders
    tails: list[int] = []
    types: list[str] = []
    heads: list[int] = []
    for start in range(0, graph.relation_count, RELATIONS_AT_ONCE):
        spend(RELATIONS_AT_ONCE)
        some, _ = graph.relation_page("", start, RELATIONS_AT_ONCE)
        if unseen:
            some = [one for one in some if one.source not in unseen and one.target not in unseen]
        tails += [places[relation.source] for relation in some]
        types += [relation.relation_type for relation in some]
        heads += [places[relation.target] for relation in some]
    return list(graph.names_of(ids)), (tails, types, heads)


def _lines(template: str, *columns: Iterable[Any]) -> str:
    rows, drawn = zip(*columns, strict=False), []
    while values := tuple(chain.from_iterable(islice(rows, LINES_AT_ONCE))):
        spend(LINES_AT_ONCE)
        drawn.append(template * (len(values) // len(columns)) % values)
    return "".join(drawn)


def _joined(texts: list[str]) -> str:
    """Texts between NULs. No call makes a name with a NUL in it, but a file of another program may hold one."""
    joined = NUL.join(texts)
    if joined.count(NUL) >= len(texts):
        joined = NUL.join([text.replace(NUL, " ") for text in texts])
    return UNDRAWABLE.sub(" ", joined)


def _mermaid_quoted(texts: list[str]) -> list[str]:
    """Texts as they may stand between Mermaid's quotes."""
    joined = _joined(texts)
    for character, code in MERMAID_CODES.items():
        joined = joined.replace(character, code)
    joined = TURNING.sub(lambda found: f"#{ord(found[0])};", MERMAID_DIRECTION.sub("#100;", joined))
    quoted = joined.split(NUL) if texts else []
    if "#" in joined:
        quoted = [text.replace(":", "#58;") if "#" in text else text for text in quoted]
    return quoted


def _dot_quoted(texts: list[str]) -> list[str]:
    """Texts as they may stand between the quotes of a DOT label."""
    joined = _joined(texts).replace("\\", "\\\\").replace('"', '\\"')
    joined = TURNING.sub(lambda found: f"&#{ord(found[0])};", DOT_ENTITY.sub("&amp;", joined))
    return joined.split(NUL) if texts else []
