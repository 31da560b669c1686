"""What can be read by its address: the whole memory, one entity, a type, what is new, what there is.

A resource fits a model's context or says how to get the rest. What is read is stored text: data, never
instructions. The official profile has one resource, and writes it as that server does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.facts import NotNow
from mcp_memory.wire import marks

if TYPE_CHECKING:
    from mcp_memory.facts import Relation
    from mcp_memory.graph import Graph
    from mcp_memory.space import Space
    from mcp_memory.tools.registry import Tool

URI = "memory://knowledge-graph"
RECENT, STATS = "memory://recent", "memory://stats"
MIME = "application/json"
SCHEME = "memory://"
# About 25,000 tokens, which is what hosts take from one answer. No memory of more facts is even tried.
MOST_BYTES, MOST_FACTS = 100_000, 2_000
LEAST_BYTES = 40  # of a relation
SHOWN_TYPES, SHOWN_HUBS, SHOWN_RECENT, SHOWN_OBSERVATIONS = 40, 25, 20, 3
# Looking through so many entities for hubs is no work for a loop that others wait for.
MOST_AT_ONCE = 5_000

Reader = Callable[..., Any]


class Resources:
    """The resources a client is offered."""

    # What no write changes, only another choice of tools: each is made for whoever is offered these.
    unchanging: Mapping[str, Callable[[Collection[str]], dict[str, Any]]] = {}
    names: tuple[str, ...] = (URI,)

    def listed(self) -> list[dict[str, Any]]:
        return [WHOLE]

    def templates(self) -> list[dict[str, Any]]:
        return []

    def read(self, uri: str, space: Space, at_once: bool = False) -> dict[str, Any] | None:
        """The contents of a resource; None where there is none."""
        if uri != URI:
            return None
        # As JSON.stringify(graph, null, 2) writes it.
        text = msgspec.json.format(msgspec.json.encode(_asked(space, knowledge_graph, at_once)), indent=2)
        return {"uri": URI, "mimeType": MIME, "text": text.decode()}

    def can_change(self, uri: str) -> bool:
        """Is it something that one can subscribe to?"""
        return uri == URI

    def place(self, uri: str) -> Hashable:
        """Where a resource stands, however its address is spelled; None for what any write changes."""
        return None

    def mark(self, place: Any, space: Space, at_once: bool = False) -> Any:
        """What differs when the resource at this place does."""
        return None


class MemoryResources(Resources):
    """Everything there is to read in the profiles of our own."""

    def __init__(self) -> None:
        from mcp_memory.wire.skills import SKILL_URI, contents

        self.unchanging = {SKILL_URI: contents}
        self.names = (URI, RECENT, STATS, *(template["uriTemplate"] for template in TEMPLATES), SKILL_URI)

    def listed(self) -> list[dict[str, Any]]:
        from mcp_memory.wire.skills import listed

        return [{**WHOLE, "description": WHOLE_OR_MAP}, *LISTED, listed()]

    def templates(self) -> list[dict[str, Any]]:
        return TEMPLATES

    def read(self, uri: str, space: Space, at_once: bool = False) -> dict[str, Any] | None:
        found = _reader_of(uri)
        said = None if found is None else _asked(space, found[0], at_once, *found[1:])
        return None if said is None else {"uri": uri, "mimeType": MIME, "text": said.decode()}

    def can_change(self, uri: str) -> bool:
        return _reader_of(uri) is not None

    def place(self, uri: str) -> Hashable:
        return None if uri in READERS else _reader_of(uri)

    def mark(self, place: Any, space: Space, at_once: bool = False) -> Any:
        reader, value = place
        return _asked(space, MARKERS[reader], at_once, value)


def _asked(space: Space, question: Reader, at_once: bool, *values: Any) -> Any:
    if at_once and question in LOOKING_AROUND and not space.is_small(MOST_AT_ONCE):
        raise NotNow
    # Read as a tool reads, so that no change can come in between.
    return space.call(_as_tool(question), values, at_once=at_once)


@cache
def _as_tool(question: Reader) -> Tool:
    from mcp_memory.tools.registry import Tool

    return Tool(question)


def _reader_of(uri: str) -> tuple[Any, ...] | None:
    """What answers for an address, and the value in it."""
    if uri in READERS:
        return (READERS[uri],)
    if not uri.startswith(SCHEME):
        return None
    kind, slash, value = uri[len(SCHEME) :].partition("/")
    if not slash or not value or kind not in TEMPLATED:
        return None
    from urllib.parse import unquote

    try:
        return TEMPLATED[kind], unquote(value, errors="strict")
    except UnicodeDecodeError:
        return None


# ── what is read ─────────────────────────────────────────────────────────────────────────────────


def knowledge_graph(graph: Graph) -> dict[str, Any]:
    """All that is believed now, without ids and history."""
    from mcp_memory.tools.dialects import plain_entity, plain_relation

    return {
        "entities": [plain_entity(entity) for entity in graph.entities()],
        "relations": [plain_relation(graph, relation) for relation in graph.active_relations()],
    }


def memory(graph: Graph) -> bytes:
    """Everything, where that fits; else a map of it."""
    if graph.entity_count + graph.observation_count + graph.relation_count <= MOST_FACTS:
        whole = msgspec.json.encode(knowledge_graph(graph))
        if len(whole) <= MOST_BYTES:
            return whole
    return msgspec.json.encode(
        {
            "map": "This memory is too large to be shown whole. These are its kinds and its most connected entities.",
            "howToGetTheRest": f"search_nodes and search_semantic find, open_nodes shows by name, read_graph pages "
            f"with limit and offset; {SCHEME}entity/NAME is one entity, {SCHEME}type/TYPE all of a type.",
            **_summary(graph),
            "hubs": _hubs(graph),
            "recent": [entity.name for entity in _recent(graph)],
        }
    )


def stats(graph: Graph) -> bytes:
    """How much there is, of which kinds."""
    return msgspec.json.encode({**_summary(graph), "reflections": len(graph.reflections)})


def recent(graph: Graph) -> bytes:
    """What was learnt last."""
    shown = [
        {
            "name": entity.name,
            "entityType": entity.entity_type,
            "updated_at": entity.updated_at,
            "observations": entity.texts()[-SHOWN_OBSERVATIONS:],
        }
        for entity in _recent(graph)
    ]
    return msgspec.json.encode({"recent": shown})


# What stands around the text of an observation: id, kind, time.
AROUND_A_TEXT = 100


def entity(graph: Graph, name: str) -> bytes | None:
    """All about one entity, as describe_entity tells it; observations and relations as far as they fit."""
    from mcp_memory.tools.dialects import shown_relation
    from mcp_memory.tools.recall import detailed_entity

    found = graph.find(name)
    if found is None:
        return None
    seen, relations = found.active(), graph.relations_of(found.id)
    fitting, size = 0, 0
    while fitting < len(seen) and (size := size + len(seen[fitting].text) + AROUND_A_TEXT) <= MOST_BYTES // 2:
        fitting += 1
    told: dict[str, Any] = {"entity": detailed_entity(graph, found, seen[:fitting]), "degree": len(relations)}
    if fitting < len(seen):
        told |= {"totalObservations": len(seen), "cut": "describe_entity shows the rest"}
    return _as_far_as_it_fits(
        told, "relations", (shown_relation(graph, each) for each in relations), "describe_entity shows the rest"
    )


def of_type(graph: Graph, entity_type: str) -> bytes | None:
    """The entities of a type, as far as they fit."""
    from mcp_memory.tools.dialects import plain_entity

    ids = graph.ids_of_type(entity_type)
    if not ids:
        return None
    told = {"entityType": entity_type, "count": len(ids)}
    how = "read_graph with this entityType and an offset shows the rest"
    return _as_far_as_it_fits(told, "entities", (plain_entity(graph.by_id[each]) for each in ids), how)


def of_relation(graph: Graph, relation_type: str) -> bytes | None:
    """The relations of a type, as far as they fit."""
    from mcp_memory.tools.dialects import shown_relation

    relations, count = graph.relation_page(relation_type, 0, MOST_BYTES // LEAST_BYTES)
    if not count:
        return None

    def shown(relation: Relation) -> dict[str, Any]:
        return shown_relation(graph, relation)

    how = "search_relations with this relationType shows the rest"
    told = {"relationType": relation_type, "count": count}
    return _as_far_as_it_fits(told, "relations", map(shown, relations), how)


def _as_far_as_it_fits(told: dict[str, Any], name: str, items: Any, how: str) -> bytes:
    size = len(msgspec.json.encode(told))
    parts: list[msgspec.Raw] = []
    for item in items:
        part = msgspec.json.encode(item)
        size += len(part) + 1
        if size > MOST_BYTES and parts:
            told["cut"] = how
            break
        parts.append(msgspec.Raw(part))
    return msgspec.json.encode({**told, name: parts})


def _summary(graph: Graph) -> dict[str, Any]:
    return {
        "entities": graph.entity_count,
        "observations": graph.observation_count,
        "relations": graph.relation_count,
        "entityTypes": dict(graph.type_counts.most_common(SHOWN_TYPES)),
        "relationTypes": dict(graph.relation_type_counts.most_common(SHOWN_TYPES)),
    }


def _recent(graph: Graph) -> list[Any]:
    from mcp_memory.search.recent import Recent

    return graph.index(Recent).first(SHOWN_RECENT)


class Hubs:
    """The entities with the most relations, looked for when they are asked for after a write."""

    def __init__(self, graph: Graph) -> None:
        self._seq = -1
        self._found: list[tuple[int, int]] = []

    def first(self, graph: Graph) -> list[tuple[int, int]]:
        if self._seq != graph.seq:
            from heapq import nlargest

            ids = (each for each in graph.by_id if each not in graph.placeholders)
            self._found = nlargest(SHOWN_HUBS, ((graph.degree(each), -each) for each in ids))
            self._seq = graph.seq
        return self._found


def _hubs(graph: Graph) -> list[dict[str, Any]]:
    found = ((graph.by_id[-each], degree) for degree, each in graph.index(Hubs).first(graph) if degree)
    return [{"name": hub.name, "entityType": hub.entity_type, "relations": degree} for hub, degree in found]


# ── how they introduce themselves ────────────────────────────────────────────────────────────────

WHOLE = {
    "uri": URI,
    "name": "knowledge-graph",
    "title": "Knowledge Graph",
    "description": "Everything remembered: all entities with their observations, and all relations",
    "mimeType": MIME,
}
WHOLE_OR_MAP = "Everything remembered; of a large memory a map: kinds, counts, hubs, and how to get the rest"


def _described(address: str, name: str, title: str, description: str) -> dict[str, Any]:
    return {"uri": address, "name": name, "title": title, "description": description, "mimeType": MIME}


def _template(kind: str, value: str, title: str, description: str) -> dict[str, Any]:
    address = f"{SCHEME}{kind}/{{{value}}}"
    return {"uriTemplate": address, "name": kind, "title": title, "description": description, "mimeType": MIME}


LISTED = [
    _described(RECENT, "recent", "Recent", f"The {SHOWN_RECENT} entities that were changed last, newest first"),
    _described(STATS, "stats", "Statistics", "How much is remembered, and of which types"),
]
TEMPLATES = [
    _template("entity", "name", "Entity", "One entity by its exact name: observations, relations, reflections"),
    _template("type", "entityType", "Entities of a type", "The entities of one type with their observations"),
    _template("relation", "relationType", "Relations of a type", "The relations of one type"),
]
LOOKING_AROUND = (memory, recent)
READERS: dict[str, Reader] = {URI: memory, RECENT: recent, STATS: stats}
TEMPLATED: dict[str, Reader] = {"entity": entity, "type": of_type, "relation": of_relation}
MARKERS: dict[Reader, Reader] = {entity: marks.of_entity, of_type: marks.of_type, of_relation: marks.of_relation}
