"""Making a file ours: a new one gets the schema, an older one is brought forward, a newer one refused.

Everything happens in one transaction under the write lock, so it happens once however many processes
open the file at the same moment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import apsw

from mcp_memory.stores.sqlite.queries import read_sql
from mcp_memory.stores.sqlite.vectors import bring_vectors, vectors_wanted
from mcp_memory.stores.store import StoreDamaged, StoreTooNew

VERSION = 2
# What brings a file from the version before to this one: a file of schema/, run in one transaction, and
# what SQL alone cannot do.
UPGRADES: dict[int, str] = {2: "0004_history.sql"}

# What a file can be when it is opened.
NEW, ADOPTABLE, OURS = "new", "adoptable", "ours"

STATEMENT = re.compile(r"^CREATE (VIRTUAL TABLE|TABLE|INDEX) (\w+)[^;]*", re.MULTILINE)


class Piece(NamedTuple):
    """One table or index."""

    kind: str
    name: str
    sql: str


def documented() -> list[Piece]:
    """Everything the data model document describes, except the two vector tables."""
    return pieces_of("0001_documented.sql")


def pieces_of(file: str) -> list[Piece]:
    """The tables and indexes that a file of schema/ makes."""
    found = STATEMENT.finditer(read_sql("schema", file))
    return [Piece(match[1].lower(), match[2], match[0]) for match in found]


def recognise(connection: apsw.Connection, path: str) -> str:
    """What this file is. A stranger's and a newer one are refused before anything of them is touched."""
    names = table_names(connection)
    if {"change", "space_state", "db_metadata"} <= names:
        version = schema_version(connection)
        if version > VERSION:
            raise StoreTooNew(
                f"{path} was written by a newer mcp-memory (schema {version}, this one knows {VERSION}). "
                "Upgrade mcp-memory; the file was left as it is."
            )
        return OURS
    if not names:
        return NEW
    if {"entities", "observations", "relations"} <= names:
        return ADOPTABLE
    raise StoreDamaged(
        f"{path} is an SQLite database of some other program; it was left as it is. Choose another --memory-file."
    )


def prepare(connection: apsw.Connection, path: str, has_vectors: bool) -> None:
    """Make this file a space of the current schema."""
    state = recognise(connection, path)
    if state == NEW:
        _create(connection, has_vectors)
    elif state == ADOPTABLE:
        from mcp_memory.stores.sqlite.adoption import adopt

        adopt(connection, path, has_vectors)
    if schema_version(connection) < VERSION:
        _upgrade(connection)
    if has_vectors and vectors_wanted(connection):
        # Born, or adopted, on a machine without sqlite-vec.
        with transaction(connection):
            bring_vectors(connection)


def schema_version(connection: apsw.Connection) -> int:
    found = connection.execute("select value from db_metadata where key = 'schema_version'").get
    if found is not None and str(found).isdigit():
        return int(found)
    # Somebody removed it: what the second version brought tells.
    return 1 + bool(connection.execute("select count(*) from pragma_table_info('change') where name = 'was'").get)


def table_names(connection: apsw.Connection) -> set[str]:
    return {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """All of it or nothing, alone among the writers from the first statement on."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _create(connection: apsw.Connection, has_vectors: bool) -> None:
    with transaction(connection):
        if "change" not in table_names(connection):  # another process may have been faster
            connection.execute(read_sql("schema", "0001_documented.sql"))
            if has_vectors:
                bring_vectors(connection)
            connection.execute(read_sql("schema", "0003_feed.sql"))
            bring_forward(connection)


def _upgrade(connection: apsw.Connection) -> None:
    with transaction(connection):
        is_empty = not connection.execute("select max(seq) from change").get
        version = schema_version(connection)
        bring_forward(connection)
        if version < 2 and not is_empty:
            from mcp_memory.stores.sqlite.refeeding import replay

            replay(connection)


def bring_forward(connection: apsw.Connection) -> None:
    """The tables of every version after this file's. Inside a transaction."""
    for version in range(schema_version(connection) + 1, VERSION + 1):
        connection.execute(read_sql("schema", UPGRADES[version]))
        connection.execute("update db_metadata set value = ? where key = 'schema_version'", (str(version),))
