"""Everything that follows from the feed, made from it anew: the tables, and what stands beside its entries.

Inside a transaction of the caller: it happens whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import apsw

from mcp_memory.changes import AnyChange, EntityRestored, Entry, ReflectionRestored, RelationRestored, encode_was
from mcp_memory.graph import Graph
from mcp_memory.history.examining import subjects
from mcp_memory.history.images import was
from mcp_memory.stores.sqlite import checking
from mcp_memory.stores.sqlite.projection import Projector
from mcp_memory.stores.sqlite.queries import Queries
from mcp_memory.stores.sqlite.rows import entry_of

FEED = Queries("feed")
SQL = Queries("history")
PORTION = 1000  # facts that are written into the tables at a time


def facts_of(graph: Graph) -> Iterator[tuple[AnyChange, int]]:
    """Every fact as the change that makes it, with how many facts it holds."""
    for entity in graph.by_id.values():
        yield EntityRestored(entity), 1 + len(entity.observations)
    for relation in graph.relations.values():
        yield RelationRestored(relation), 1
    for reflection in graph.reflections.values():
        yield ReflectionRestored(reflection), 1


def portions(facts: Iterator[tuple[AnyChange, int]], most: int) -> Iterator[list[AnyChange]]:
    """As much as an entry may hold. Observations count too: SQLite limits a row to a gigabyte."""
    changes: list[AnyChange] = []
    size = 0
    for change, weight in facts:
        if changes and size + weight > most:
            yield changes
            changes, size = [], 0
        changes.append(change)
        size += weight
    if changes:
        yield changes


def index(connection: apsw.Connection, entry: Entry) -> None:
    """Note which entities an entry is about."""
    connection.executemany(SQL.index_subject, [(entity_id, entry.seq) for entity_id in sorted(subjects(entry))])


def replay(connection: apsw.Connection) -> Graph:
    """Replay the feed, and note anew what each entry altered, whom it is about, and who is gone."""
    connection.execute(SQL.empty_subjects)
    connection.execute(SQL.empty_gone)
    graph = Graph()
    floor = connection.execute(SQL.floor).get
    indexed = connection.execute(FEED.projected).get
    names: dict[int, str] = {}
    entries = map(entry_of, connection.execute(FEED.some_news, (0, -1)).fetchall())
    for _, call in groupby(entries, key=lambda entry: entry.call):
        pieces = list(call)
        for entry in pieces:
            if entry.seq <= floor:
                continue
            found = was(graph, entry.changes)
            if found != entry.was:
                connection.execute(SQL.set_was, (None if found is None else encode_was(found), entry.seq))
                entry.was = found
            names.update((entity.id, entity.name) for entity in (found.entities if found else ()))
            if entry.seq <= indexed:
                index(connection, entry)
        graph.apply(pieces)
    connection.executemany(SQL.bury_under, [pair for pair in names.items() if pair[0] not in graph.by_id])
    return graph


def rebuild(connection: apsw.Connection, has_vectors: bool) -> int:
    """Make the tables anew; the entry they stand at. Foreign keys are off: usage of living entities stays."""
    checking.empty_projections(connection)
    last: int = connection.execute(FEED.last).get
    connection.execute(FEED.set_projected, (last,))
    graph = replay(connection)
    for changes in portions(facts_of(graph), PORTION):
        projector = Projector(connection, has_vectors)
        projector.project(Entry(last, "", changes))
        projector.finish()
    checking.drop_orphans(connection)
    return last
