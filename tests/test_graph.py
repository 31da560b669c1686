"""A graph is its feed: however it came to be what it is, it answers every question the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from hypothesis import given, settings

from mcp_memory.checkup import contradictions, differences
from mcp_memory.graph import Graph
from mcp_memory.tools.rendering import entities_json, everything_json
from mcp_memory.walks import reach, shortest, simple_paths
from tests.histories import KINDS, NAMES, TEXTS, TYPES, History, Step, again, histories, loaded, packed

QUERIES = [*NAMES, *TEXTS, *TYPES, "e", "tea ", "kes t", "7", "%", "ada chess", "ñ"]


def said_of_facts(graph: Graph) -> Any:
    """Every answer about single facts, and the order in which they come."""
    return {
        "seq": graph.seq,
        "next": (graph.next_entity, graph.next_observation, graph.next_relation, graph.next_reflection),
        "counts": (graph.entity_count, graph.observation_count, graph.relation_count),
        "types": (graph.type_counts, graph.relation_type_counts),
        "facts": (list(graph.by_id), list(graph.by_id.values()), list(graph.relations), list(graph.relations.values())),
        "lengths": (len(graph.by_id), len(graph.relations), len(graph.ids)),
        "entities": [entity.id for entity in graph.entities()],
        "active": [relation.id for relation in graph.active_relations()],
        "placeholders": graph.placeholders,
        "reflections": (graph.reflections, [graph.reflections_on(i) for i in range(1, graph.next_entity)]),
        "find": [(graph.find(name), graph.id_of(name), graph.named(name), name in graph) for name in NAMES],
        "names": [graph.name_of(i) for i in graph.by_id],
        "of type": [list(graph.ids_of_type(kind)) for kind in [*TYPES, "never"]],
        "entity pages": paged(graph.entity_page, ["", *TYPES], [entity.id for entity in graph.entities()]),
        "pages of relations": paged(graph.relation_page, ["", *KINDS, "never"], list(graph.active_relations())),
        "pages": [[e.id for e in graph.by_id.between(i, i + 4)] for i in range(0, graph.next_entity, 3)],
        "relation pages": [[r.id for r in graph.relations.between(i, i + 4)] for i in range(0, graph.next_relation, 3)],
    }


def paged(page: Callable[[str, int, int], tuple[list[Any], int]], kinds: list[str], every: list[Any]) -> Any:
    """What the pages of each kind hold; "" is any kind."""
    found = {kind: [page(kind, offset, size) for size in (1, 3) for offset in range(len(every) + 1)] for kind in kinds}
    assert page("", 0, len(every)) == (every, len(every))
    for kind, pages in found.items():
        whole, total = page(kind, 0, len(every))
        assert (len(whole), [one for some, _ in pages[: len(every) + 1] for one in some]) == (total, whole)
    return found


def said_of_links(graph: Graph) -> Any:
    """Every answer about who is linked with whom."""
    ids = list(graph.by_id)
    shown = [i for i in ids if i not in graph.placeholders]
    near = dict(graph.neighbours([*ids, graph.next_entity + 5]))
    return {
        "incident": [graph.incident_to(i) for i in ids],
        "of": [graph.relations_of(i) for i in ids],
        "degree": [graph.degree(i) for i in range(1, graph.next_entity + 2)],
        "touching": [graph.relations_touching(some) for some in (ids, ids[::2], ids[:1] * 2, [])],
        "among": [graph.relations_among(some) for some in (shown, shown[::2], shown[:1], shown[:3], [])],
        "triples": [graph.relation(*triple) for triple in product(ids, ids, KINDS)],
        "neighbours": {here: list(there) for here, there in near.items()},
        "shortest": [shortest(graph, one, other) for one, other in product(shown[:3], shown)],
        "paths": [simple_paths(graph, one, other, 4, 20) for one, other in zip(shown, shown[::-1], strict=True)],
        "reach": [reach(graph, [one], depth, 50) for one in shown for depth in (1, 2)],
    }


def said_of_texts(graph: Graph, queries: Sequence[str] = QUERIES) -> Any:
    """What searches find, and answers as bytes."""
    everything = everything_json(graph)
    return {
        "literal": [graph.texts.literal(query) for query in queries],
        "search": [graph.texts.search(query) for query in queries],
        "typed": [graph.texts.search(query, TYPES[0]) for query in queries],
        "size": (graph.texts.documents, graph.texts.total_length, graph.texts.pairs),
        "everything": (b"".join(everything.plain), b"".join(everything.escaped)),
        "fragments": entities_json(graph, [entity.id for entity in graph.entities()]),
    }


ALL: list[Callable[[Graph], Any]] = [said_of_facts, said_of_links, said_of_texts]


def assert_equal(one: Graph, other: Graph, questions: list[Callable[[Graph], Any]] = ALL) -> None:
    for question in questions:
        left, right = question(one), question(other)
        for key in left:
            assert left[key] == right[key], key


@settings(max_examples=150, deadline=None)
@given(histories)
def test_a_graph_that_stands_on_a_packed_one_answers_as_one_that_lived_through_it(steps: list[Step]) -> None:
    history = History()
    standing = Graph(packed(Graph()))
    for number, step in enumerate(steps):
        entry = history.take(step)
        if entry is None:
            continue
        if step.packs:
            standing = Graph(packed(standing, with_words=number % 2 == 0))
        # Asked before and after: what is kept ready must not outlive what it tells. A few of the queries at each
        # step, and all of them at the end: searching is most of what this test takes.
        some = QUERIES[number // 3 % 6 :: 6]
        asked = (said_of_facts, said_of_links, partial(said_of_texts, queries=some))[number % 3]
        asked(standing)
        standing.apply([again(entry)])
        assert_equal(history.graph, standing, [asked])

    assert_equal(history.graph, standing)
    assert list(contradictions(standing)) == []
    assert list(contradictions(history.graph)) == []


@settings(max_examples=100, deadline=None)
@given(histories)
def test_a_fresh_process_finds_the_graph_that_another_one_has(steps: list[Step]) -> None:
    history = History().play(steps)
    fresh = loaded(history.entries)

    assert list(differences(history.graph, fresh)) == []
    assert list(contradictions(fresh)) == []
    assert_equal(history.graph, fresh)


@settings(max_examples=50, deadline=None)
@given(histories)
def test_packing_a_graph_and_the_tables_gives_the_same_bytes(steps: list[Step]) -> None:
    history = History().play(steps)

    assert_equal(Graph(packed(history.graph)), loaded(history.entries))
