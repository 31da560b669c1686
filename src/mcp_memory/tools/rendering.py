"""Answers kept ready as bytes: an entity's JSON by itself, and everything in pages.

A large answer is then a join of bytes and not an encoding of objects. The graph drops what a change
spoils; nothing here needs to know when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from mcp_memory.facts import Relation
from mcp_memory.graph import PAGE_BITS, Graph
from mcp_memory.tools.dialects import plain_entity, shown_relation

# A fragment is about 200 bytes: beyond this many the hot ones are found again soon enough.
MOST_FRAGMENTS = 65_536

# msgspec, not orjson: what is kept must not hold an over-allocated buffer (164 MB for 12.8, measured).
encode = msgspec.json.encode


def entity_json(graph: Graph, name: str) -> msgspec.Raw:
    """An entity as all three predecessors write it; UnknownEntity if there is none."""
    return graph.fragments.get(name) or _fragment(graph, name)


def _fragment(graph: Graph, name: str) -> msgspec.Raw:
    if len(graph.fragments) >= MOST_FRAGMENTS:
        graph.fragments.clear()
    made = graph.fragments[name] = msgspec.Raw(encode(plain_entity(graph[name])))
    return made


def entities_json(graph: Graph, entity_ids: Iterable[int]) -> msgspec.Raw:
    """These entities as a list, in this order."""
    name_of = graph.name_of
    return _listed(bytes(entity_json(graph, name_of(entity_id))) for entity_id in entity_ids)


def relations_json(graph: Graph, relations: Iterable[Relation]) -> msgspec.Raw:
    return msgspec.Raw(encode([shown_relation(graph, relation) for relation in relations]))


def everything_json(graph: Graph) -> dict[str, msgspec.Raw]:
    """All entities and all relations."""
    return {"entities": _listed(_entity_pages(graph)), "relations": all_relations_json(graph)}


def all_relations_json(graph: Graph) -> msgspec.Raw:
    return _listed(_relation_pages(graph))


def _listed(pieces: Iterable[bytes]) -> msgspec.Raw:
    return msgspec.Raw(b"".join((b"[", b",".join([piece for piece in pieces if piece]), b"]")))


def _entity_pages(graph: Graph) -> list[bytes]:
    pages: dict[int, Any] = graph.entity_pages
    found = []
    for number in range((graph.next_entity >> PAGE_BITS) + 1):
        page = pages.get(number)
        if page is None:
            start = number << PAGE_BITS
            entities = graph.by_id.between(start, start + (1 << PAGE_BITS))
            page = pages[number] = encode([plain_entity(e) for e in entities if not e.is_placeholder])[1:-1]
        found.append(page)
    return found


def _relation_pages(graph: Graph) -> list[bytes]:
    pages: dict[int, Any] = graph.relation_pages
    found = []
    for number in range((graph.next_relation >> PAGE_BITS) + 1):
        page = pages.get(number)
        if page is None:
            start = number << PAGE_BITS
            relations = graph.relations.between(start, start + (1 << PAGE_BITS))
            page = pages[number] = encode([shown_relation(graph, r) for r in relations if r.is_active])[1:-1]
        found.append(page)
    return found
