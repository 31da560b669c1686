"""Every walk equals a naive one on random graphs, asks little, and ends however tangled the graph is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.walks import reach, shortest, simple_paths

Edge = tuple[int, int]


class Toy:
    """A view of a few edges; it counts how often it was asked."""

    def __init__(self, edges: Iterable[Edge], directed: bool = False) -> None:
        self.beside: dict[int, dict[int, None]] = {}
        self.asked = 0
        for one, other in edges:
            self.beside.setdefault(one, {})
            self.beside.setdefault(other, {})
            if one != other:
                self.beside[one][other] = None
                if not directed:
                    self.beside[other][one] = None

    def neighbours(self, entity_ids: Iterable[int]) -> Iterator[tuple[int, Sequence[int]]]:
        self.asked += 1
        for here in entity_ids:
            yield here, tuple(self.beside.get(here, ()))


def all_ways(toy: Toy, path: list[int], goal: int, max_edges: int) -> Iterator[list[int]]:
    """Every simple path, in the order of a plain search that goes on by itself until it must turn back."""
    if path[-1] == goal:
        yield path
    elif len(path) <= max_edges:
        for there in toy.beside.get(path[-1], ()):
            if there not in path:
                yield from all_ways(toy, [*path, there], goal, max_edges)


def naive_paths(toy: Toy, start: int, goal: int, max_edges: int) -> list[list[int]]:
    return sorted(all_ways(toy, [start], goal, max_edges), key=len)


def naive_reach(toy: Toy, seeds: list[int], depth: int) -> list[int]:
    distance = dict.fromkeys(seeds, 0)
    queue = list(distance)
    for here in queue:
        for there in toy.beside.get(here, ()):
            if there not in distance and distance[here] < depth:
                distance[there] = distance[here] + 1
                queue.append(there)
    return queue


nodes = st.integers(0, 9)
edges = st.lists(st.tuples(nodes, nodes), max_size=22)


@given(edges, nodes, nodes)
def test_the_shortest_path_is_the_first_that_a_plain_search_finds(pairs: list[Edge], start: int, goal: int) -> None:
    toy = Toy(pairs)
    expected = next(iter(naive_paths(toy, start, goal, 10)), None)

    assert shortest(toy, start, goal) == expected
    if expected is not None:
        assert toy.asked <= len(expected)


@given(edges, nodes, nodes, st.integers(1, 10), st.integers(1, 60))
def test_simple_paths_are_all_there_are_in_order(
    pairs: list[Edge], start: int, goal: int, max_edges: int, max_paths: int
) -> None:
    expected = naive_paths(Toy(pairs), start, goal, max_edges)

    assert simple_paths(Toy(pairs), start, goal, max_edges, max_paths) == (
        expected[:max_paths],
        len(expected) > max_paths,
    )


@given(edges, st.booleans(), st.lists(nodes, max_size=4), st.integers(0, 16), st.integers(0, 12))
def test_what_is_reached_is_reached_in_order_and_up_to_the_limit(
    pairs: list[Edge], directed: bool, seeds: list[int], depth: int, limit: int
) -> None:
    toy = Toy(pairs, directed)
    expected = naive_reach(toy, seeds, depth)

    assert reach(toy, seeds, depth, limit) == (expected[:limit], len(expected) > limit)
    assert toy.asked <= depth


def test_between_equally_short_paths_the_older_relation_wins() -> None:
    assert shortest(Toy([(1, 2), (1, 3), (3, 4), (2, 4)]), 1, 4) == [1, 2, 4]
    assert shortest(Toy([(1, 3), (1, 2), (3, 4), (2, 4)]), 1, 4) == [1, 3, 4]


def test_a_path_may_be_very_long() -> None:
    chain = Toy((here, here + 1) for here in range(5000))

    assert shortest(chain, 0, 5000) == list(range(5001))


def test_a_path_is_met_in_the_middle() -> None:
    """From one end a tree of 2**16 would be asked for all of it."""

    class Counting(Toy):
        named = 0

        def neighbours(self, entity_ids: Iterable[int]) -> Iterator[tuple[int, Sequence[int]]]:
            for found in super().neighbours(entity_ids):
                self.named += 1
                yield found

    tree = Counting((here, child) for here in range(1, 2**15) for child in (2 * here, 2 * here + 1))

    path = shortest(tree, 2**15, 2**16 - 1)

    assert path is not None and len(path) == 31
    assert tree.named < 2**10


@pytest.mark.parametrize("max_paths", [1, 1000])
def test_in_a_dense_graph_paths_are_cut_at_their_number(max_paths: int) -> None:
    dense = Toy(combinations(range(200), 2))

    paths, cut = simple_paths(dense, 0, 199, 16, max_paths)

    assert (len(paths), cut) == (max_paths, True)
    assert [len(path) for path in paths] == sorted(len(path) for path in paths)


def test_a_tangle_beside_the_way_is_not_searched() -> None:
    tangle = list(combinations(range(10, 60), 2))

    assert simple_paths(Toy([(1, 10), (1, 2), *tangle]), 1, 2, 16, 50) == ([[1, 2]], False)


def test_a_search_that_became_too_large_ends_and_says_so() -> None:
    tangle = list(combinations(range(10, 60), 2))

    assert simple_paths(Toy([(1, 10), (10, 2), *tangle]), 1, 2, 16, 50) == ([[1, 10, 2]], True)
