"""Answers as bytes: an entity's JSON kept ready by itself, and everything in pages.

A large answer is one join of bytes and not an encoding of objects. The graph drops what a change
spoils; nothing here needs to know when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from mcp_memory.desk import Pieces
from mcp_memory.facts import Relation, UnknownEntity
from mcp_memory.graph import PAGE_BITS, Graph
from mcp_memory.pace import spend
from mcp_memory.tools.dialects import plain_entity, shown_relations
from mcp_memory.views import View

# A fragment is about 200 bytes: beyond this many the hot ones are found again soon enough.
MOST_FRAGMENTS = 65_536

# A page is about 50 kB, twice: what is kept of a very large graph is bounded.
MOST_PAGES = 2000

# msgspec, not orjson: what is kept must not hold an over-allocated buffer (164 MB for 12.8, measured).
encode = msgspec.json.encode


def entity_json(graph: View, name: str) -> bytes:
    """An entity as all three predecessors write it; UnknownEntity if there is none."""
    return graph.fragments.get(name) or make_fragment(graph, name)


def make_fragment(graph: View, name: str) -> bytes:
    if len(graph.fragments) >= MOST_FRAGMENTS:
        graph.fragments.clear()
    made = graph.fragments[name] = encode(plain_entity(graph[name]))
    return made


def entity_or_null(graph: View, name: str) -> bytes:
    try:
        return make_fragment(graph, name)
    except UnknownEntity:
        return b"null"


def entities_json(graph: View, entity_ids: Iterable[int]) -> list[bytes]:
    """These entities, in this order."""
    ready = graph.fragments.get
    return [ready(name) or make_fragment(graph, name) for name in graph.names_of(entity_ids)]


def relations_json(graph: View, relations: Sequence[Relation]) -> list[bytes]:
    """These relations, comma between comma, in one piece."""
    return [encode(shown_relations(graph, relations))[1:-1]] if relations else []


def graph_json(entities: Sequence[bytes], relations: Sequence[bytes], **more: Any) -> bytes:
    """`{"entities": […], "relations": […], …}` in one join: of 20 MB, each copy less is 2 ms."""
    left = [piece for piece in entities if piece] or [b""]
    right = [piece for piece in relations if piece] or [b""]
    left[0] = b'{"entities":[' + left[0]
    right[-1] += b"]" + (b"," + encode(more)[1:] if more else b"}")
    seam = left.pop() + b'],"relations":[' + right[0]
    return b",".join([*left, seam, *right[1:]])


class Page(NamedTuple):
    """Some facts, comma between comma: as JSON, and as that JSON stands inside a JSON string."""

    plain: bytes
    escaped: bytes


NO_FACTS = Page(b"", b"")


def page_of(shown: list[dict[str, Any]]) -> Page:
    plain = encode(shown)[1:-1]
    return Page(plain, encode(plain.decode())[1:-1]) if plain else NO_FACTS


def everything_json(graph: Graph) -> Pieces:
    """All entities and all relations, in pieces that are kept ready both for the object and for the text."""
    plain, escaped = [b'{"entities":['], [b'{\\"entities\\":[']
    for pages, seam in ((_entity_pages(graph), b'],"relations":['), (_relation_pages(graph), b"]}")):
        told = [page for page in pages if page.plain]
        for page in told:
            plain += (page.plain, b",")
            escaped += (page.escaped, b",")
        if told:
            plain.pop()
            escaped.pop()
        plain.append(seam)
        escaped.append(seam.replace(b'"', b'\\"'))
    return Pieces(plain, escaped)


def _entity_pages(graph: Graph) -> Iterator[Page]:
    return _pages(
        graph.entity_pages,
        graph.next_entity,
        lambda first, last: [plain_entity(e) for e in graph.by_id.between(first, last) if not e.is_placeholder],
    )


def _relation_pages(graph: Graph) -> Iterator[Page]:
    return _pages(
        graph.relation_pages,
        graph.next_relation,
        lambda first, last: shown_relations(graph, [r for r in graph.relations.between(first, last) if r.is_active]),
    )


def _pages(ready: dict[int, Page], end: int, shown: Callable[[int, int], list[dict[str, Any]]]) -> Iterator[Page]:
    for number in range((end >> PAGE_BITS) + 1):
        page = ready.get(number)
        if page is None:
            spend(1 << PAGE_BITS)
            start = number << PAGE_BITS
            page = page_of(shown(start, start + (1 << PAGE_BITS)))
            if len(ready) < MOST_PAGES:
                ready[number] = page
        yield page


def is_everything(graph: Graph, entity_ids: Sequence[int]) -> bool:
    """Are these all entities, in order of creation?"""
    return len(entity_ids) == graph.entity_count and sorted(entity_ids) == entity_ids
