"""Reading the documented tables into a packed graph, as of the last projected entry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw

from mcp_memory.base import Base
from mcp_memory.facts import Entity, Observation, Reflection, Relation
from mcp_memory.graph import Graph
from mcp_memory.packing import Packer
from mcp_memory.stores.sqlite.queries import Queries

SQL = Queries("load")
FEED = Queries("feed")


def entities(connection: apsw.Connection) -> Iterator[Entity]:
    """Every entity with its observations, in order, one at a time."""
    observations = connection.execute(SQL.observations)
    ahead = next(observations, None)
    rows: Iterator[Any] = connection.execute(SQL.entities)
    for row in rows:
        seen = []
        while ahead is not None and ahead[0] <= row[0]:
            if ahead[0] == row[0]:  # a lower owner is none of ours: only a damaged file has observations of nobody
                seen.append(Observation(*ahead[1:]))
            ahead = next(observations, None)
        yield Entity(*(*row, seen))


def relations(connection: apsw.Connection) -> Iterator[Relation]:
    return (Relation(*row) for row in connection.execute(SQL.relations))


def reflections(connection: apsw.Connection) -> Iterator[Reflection]:
    return (Reflection(*row) for row in connection.execute(SQL.reflections))


def pack(connection: apsw.Connection, origin: str = "", packer: Packer | None = None) -> memoryview:
    """The tables as a packed graph, row by row: no fact is held, and in the end the bytes."""
    packer = packer or Packer()
    for entity in entities(connection):
        packer.add_entity(entity)
    for relation in relations(connection):
        packer.add_relation(relation)
    for reflection in reflections(connection):
        packer.add_reflection(reflection)
    counts = packer.counts
    counts.seq = connection.execute(FEED.projected).get
    # No id is ever given twice, not even that of a fact deleted last.
    used = dict(connection.execute(SQL.next_ids))
    counts.next_entity = max(counts.next_entity, used.get("entities", 0) + 1)
    counts.next_observation = max(counts.next_observation, used.get("observations", 0) + 1)
    counts.next_relation = max(counts.next_relation, used.get("relations", 0) + 1)
    counts.next_reflection = max(counts.next_reflection, used.get("reflections", 0) + 1)
    return packer.finish(origin)


def load(connection: apsw.Connection) -> Graph:
    return Graph(Base(pack(connection)))
