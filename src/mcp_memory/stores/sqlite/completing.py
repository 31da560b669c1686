"""Every table and index that belongs to a memory, and the rows that say what the file is: what of it is missing,
and how it comes back.

The law: only what follows from the feed, or can begin anew, is made; the feed itself never is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import apsw

from mcp_memory.stores.sqlite.queries import Queries
from mcp_memory.stores.sqlite.schema import VERSION, Piece, pieces_of
from mcp_memory.stores.store import MENDED, Finding

SQL = Queries("check")
SCHEMA = ("0001_documented.sql", "0003_feed.sql", "0004_history.sql")
FEED = "change"
TEXTS = ("entity_fts", "reflection_fts")  # they hold nothing of their own: whatever state they are in, they may go


def whatever(value: object) -> bool:
    return True


# What should be said about the file: where, under which key, what it can be, and what says it again.
SAID: tuple[tuple[str, str, Callable[[str], bool], str, tuple[str, ...]], ...] = (
    ("db_metadata", "schema_version", str.isdigit, SQL.say_version, (str(VERSION),)),
    ("space_state", "projected_seq", whatever, SQL.say_projected, ()),
    ("space_state", "feed_floor", whatever, SQL.say_floor, ()),
)


def check(connection: apsw.Connection, repair: bool) -> list[Finding]:
    """What is missing; made again, if asked."""
    lost = [*(f"{piece.kind} {piece.name} is missing" for piece in _lost(connection)), *_unsaid(connection)]
    if lost and repair:
        with connection:
            complete(connection)
    return [Finding(text, repair, remedy=MENDED) for text in lost]


def complete(connection: apsw.Connection) -> None:
    """Make what is missing, with nothing in it. Inside a transaction."""
    for piece in _lost(connection):
        connection.execute(piece.sql)
    for _ in _unsaid(connection, says_it=True):
        pass


def renew_texts(connection: apsw.Connection) -> None:
    """Full text that may be damaged, begun anew. Inside a transaction."""
    for name in TEXTS:
        connection.execute(f"drop table if exists {name}")
    complete(connection)


def _lost(connection: apsw.Connection) -> list[Piece]:
    there = {name for (name,) in connection.execute("select name from sqlite_master")}
    required = [piece for file in SCHEMA for piece in pieces_of(file) if piece.name != FEED]
    return [piece for piece in required if piece.name not in there]


def _unsaid(connection: apsw.Connection, says_it: bool = False) -> Iterator[str]:
    tables = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
    for table, key, is_possible, statement, values in SAID:
        if table in tables:
            found = connection.execute(f"select value from {table} where key = ?", (key,)).get
            if found is None or not is_possible(str(found)):
                if says_it:
                    connection.execute(statement, values)
                yield f"{table} does not say its {key}"
