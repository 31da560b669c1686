"""When what is told at an address was changed last, for those who want to hear of it.

The law: to see that nothing has changed costs no look at what is told. A mark says when, not what: two marks are
equal only if nothing happened between them; another graph has other marks."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_memory.graph import Graph

# How many entities and types are remembered as changed. Beyond, all of them count as changed once more.
MOST_REMEMBERED = 100_000
_numbers: Iterator[int] = count(1)


class Marks:
    """An index of a graph: what was changed since somebody first asked, and in which order."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._news: set[int | str] = set()
        graph.onlookers.append(self._news)
        self._begin()

    def _begin(self) -> None:
        self._before = next(_numbers)  # the mark of everything that has not changed since
        self._entities: dict[int, int] = {}
        self._types: dict[str, int] = {}
        self._relation_types: dict[str, int] = {}

    def refresh(self) -> None:
        """Take in what was changed."""
        if not self._news:
            return
        news = list(self._news)
        self._news.clear()
        if len(self._entities) + len(news) > MOST_REMEMBERED:
            self._begin()
            return
        now = next(_numbers)
        for what in news:
            if isinstance(what, str):
                self._relation_types[what] = now
                continue
            self._entities[what] = now
            entity = self._graph.by_id.get(what)
            if entity is not None:
                self._types[entity.entity_type] = now

    def entity(self, entity_id: int) -> int:
        return self._entities.get(entity_id, self._before)

    def type(self, entity_type: str) -> int:
        return self._types.get(entity_type, self._before)

    def relation_type(self, relation_type: str) -> int:
        return self._relation_types.get(relation_type, self._before)


def _marks(graph: Graph) -> Marks:
    marks = graph.index(Marks)
    marks.refresh()
    return marks


def of_entity(graph: Graph, name: str) -> tuple[int, ...]:
    entity_id = graph.id_of(name)
    return () if entity_id is None else (entity_id, _marks(graph).entity(entity_id))


def of_type(graph: Graph, entity_type: str) -> tuple[int, ...]:
    # An entity that left is seen by the count; one that came brings its type along.
    there = graph.type_counts.get(entity_type, 0)
    return (there, _marks(graph).type(entity_type)) if there else ()


def of_relation(graph: Graph, relation_type: str) -> tuple[int, ...]:
    there = graph.relation_type_counts.get(relation_type, 0)
    return (there, _marks(graph).relation_type(relation_type)) if there else ()
