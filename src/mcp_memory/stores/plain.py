"""What the plain formats can hold: names, types, texts and triples, in order. JSONL and journal share this.

The law: what has no place is refused before anything is written, and when a whole space goes into a
plain file, everything that stays behind is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from mcp_memory.changes import (
    AnyChange,
    EntityAltered,
    EntityCreated,
    EntityRestored,
    Entry,
    ObservationFlagged,
    ObservationRestored,
    ObservationsAdded,
    ObservationSuperseded,
    ReflectionAdded,
    ReflectionRestored,
    RelationCreated,
    RelationEnded,
    RelationRestored,
    RelationRevived,
)
from mcp_memory.facts import ACTIVE, GENERIC_KIND, PLACEHOLDER, Entity, Observation
from mcp_memory.graph import Graph
from mcp_memory.stores.store import CannotHold
from mcp_memory.tools.inverses import AUTOMATIC

NO_PLACE = (
    "A {format} memory file has no place for {what}; nothing was changed. A SQLite memory has: "
    "set the memory file to a .db path and run `mcp-memory import {path}`."
)


def refuse_unkeepable(entries: list[Entry], format_name: str, path: str) -> None:
    """CannotHold for what no plain format has a place for."""
    for entry in entries:
        for change in entry.changes:
            judge = UNKEEPABLE.get(type(change))
            if judge is not None and (what := judge(change)) is not None:
                raise CannotHold(NO_PLACE.format(format=format_name, what=what, path=path))


def _status(status: str | None) -> str | None:
    return f"the status {status!r}" if status not in (None, ACTIVE, PLACEHOLDER) else None


def _kind(kind: str) -> str | None:
    return f"observations of kind {kind!r}" if kind != GENERIC_KIND else None


def _context(context: str | None) -> str | None:
    # An automatic one says nothing that the relation and its opposite do not.
    return "the context of a relation" if context and not context.startswith(AUTOMATIC) else None


def _observation(seen: Observation) -> str | None:
    if seen.supersedes is not None or seen.superseded_at is not None:
        return "superseded observations"
    return "flags of observations" if seen.similarity_flag else _kind(seen.kind)


def _entity(change: EntityRestored) -> str | None:
    return _status(change.fact.status) or next(filter(None, map(_observation, change.fact.observations)), None)


def _relation(change: RelationRestored) -> str | None:
    return "ended relations" if change.fact.ended_at is not None else _context(change.fact.context)


UNKEEPABLE: dict[type[AnyChange], Callable[[Any], str | None]] = {
    EntityCreated: lambda change: _status(change.status),
    EntityAltered: lambda change: _status(change.status),
    EntityRestored: _entity,
    ObservationsAdded: lambda change: _kind(change.kind),
    ObservationRestored: lambda change: _observation(change.fact),
    ObservationSuperseded: lambda change: "superseded observations",
    ObservationFlagged: lambda change: "flags of observations" if change.flag else None,
    RelationCreated: lambda change: _context(change.context),
    RelationRevived: lambda change: _context(change.context),
    RelationRestored: _relation,
    RelationEnded: lambda change: "ended relations",
    ReflectionAdded: lambda change: "reflections",
    ReflectionRestored: lambda change: "reflections",
}


# ── a whole space ────────────────────────────────────────────────────────────────────────────────


def plainly(graph: Graph, longest: int | None = None) -> tuple[Graph, dict[str, int]]:
    """What of a graph a plain file can hold, and how much of which kind it cannot.

    `longest`: the most bytes that a text may have there."""
    left: Counter[str] = Counter()
    plain = Graph()
    joined = {end for relation in graph.active_relations() for end in (relation.source, relation.target)}
    for entity in graph.by_id.values():
        if not entity.is_placeholder:
            plain.insert(_plain_entity(entity, longest, left))
        elif entity.id in joined:
            plain.insert(replace(entity))
    for relation in graph.relations.values():
        if relation.ended_at is not None:
            left["ended relations"] += 1
            continue
        left["contexts of relations"] += _context(relation.context) is not None
        plain.keep(replace(relation, context=None))
    left["reflections"] = len(graph.reflections)
    return plain, {what: count for what, count in left.items() if count}


def _plain_entity(entity: Entity, longest: int | None, left: Counter[str]) -> Entity:
    left["statuses of entities"] += entity.status != ACTIVE
    observations = []
    for seen in entity.observations:
        if seen.superseded_at is not None:
            left["superseded observations"] += 1
        elif longest is not None and len(seen.text) > longest // 4 and len(seen.text.encode()) > longest:
            left[f"observations of more than {longest:,} bytes"] += 1
        else:
            left["kinds of observations"] += seen.kind != GENERIC_KIND
            left["flags of observations"] += seen.similarity_flag != 0
            observations.append(Observation(seen.id, seen.text, seen.created_at))
    return replace(entity, status=ACTIVE, observations=observations)
