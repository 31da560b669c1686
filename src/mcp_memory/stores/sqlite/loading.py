"""Reading the documented tables into a graph, as of the last projected entry."""

from __future__ import annotations

import apsw

from mcp_memory.facts import Entity, Observation, Reflection, Relation
from mcp_memory.graph import Graph
from mcp_memory.stores.sqlite.queries import Queries

SQL = Queries("load")
FEED = Queries("feed")


def load(connection: apsw.Connection) -> Graph:
    graph = Graph()
    graph.seq = connection.execute(FEED.projected).get
    times: dict[str, str] = {}  # many facts share a second: one string each
    observed: dict[int, list[Observation]] = {}
    for owner, id_, text, at, kind, supersedes, superseded_at, flag in connection.execute(SQL.observations):
        at = times.setdefault(at, at)
        seen = Observation(id_, text, at, kind, supersedes, superseded_at, flag)
        observed.setdefault(owner, []).append(seen)
    for id_, name, entity_type, status, created, updated in connection.execute(SQL.entities):
        graph.insert(
            Entity(
                id_,
                name,
                times.setdefault(entity_type, entity_type),
                status,
                times.setdefault(created, created),
                times.setdefault(updated, updated),
                observed.pop(id_, []),
            )
        )
    for id_, source, target, relation_type, created, context, ended_at in connection.execute(SQL.relations):
        kind = times.setdefault(relation_type, relation_type)
        graph.keep(Relation(id_, source, target, kind, times.setdefault(created, created), context, ended_at))
    for row in connection.execute(SQL.reflections):
        graph.remember(Reflection(*row))
    _continue_ids(graph, connection)
    return graph


def _continue_ids(graph: Graph, connection: apsw.Connection) -> None:
    """No id is ever given twice, not even that of a fact deleted last."""
    used = dict(connection.execute(SQL.next_ids))
    graph.next_entity = max(graph.next_entity, used.get("entities", 0) + 1)
    graph.next_observation = max(graph.next_observation, used.get("observations", 0) + 1)
    graph.next_relation = max(graph.next_relation, used.get("relations", 0) + 1)
    graph.next_reflection = max(graph.next_reflection, used.get("reflections", 0) + 1)
