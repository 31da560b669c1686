"""What an upgrade of the schema has to work out: SQL alone cannot.

Inside the transaction of the upgrade, so it happens whole or not at all, and once."""

from __future__ import annotations

from itertools import groupby

import apsw

from mcp_memory.changes import encode_was
from mcp_memory.graph import Graph
from mcp_memory.history.images import was
from mcp_memory.stores.sqlite import history
from mcp_memory.stores.sqlite.queries import Queries
from mcp_memory.stores.sqlite.rows import entry_of

FEED = Queries("feed")


def remember_what_was(connection: apsw.Connection) -> None:
    """To 2: replay the feed once and note beside each entry what it altered, as it was, and whom it is about."""
    graph = Graph()
    floor = connection.execute(history.SQL.floor).get
    projected = connection.execute(FEED.projected).get
    names: dict[int, str] = {}
    entries = map(entry_of, connection.execute(FEED.some_news, (0, -1)).fetchall())
    for _, call in groupby(entries, key=lambda entry: entry.call):
        pieces = list(call)
        for entry in pieces:
            if entry.seq <= floor:
                continue
            entry.was = was(graph, entry.changes)
            if entry.was is not None:
                connection.execute(history.SQL.set_was, (encode_was(entry.was), entry.seq))
                names.update((entity.id, entity.name) for entity in entry.was.entities)
            if entry.seq <= projected:
                history.index(connection, entry)
        graph.apply(pieces)
    for entity_id, name in names.items():
        if entity_id not in graph.by_id:
            connection.execute(history.SQL.bury_under, (entity_id, name))
