"""Making a file ours: a new one gets the schema, an older one is brought forward, a newer one refused.

Everything happens in one transaction under the write lock, so it happens once however many processes
open the file at the same moment."""

from __future__ import annotations

import apsw

from mcp_memory.stores.sqlite.queries import read_sql
from mcp_memory.stores.store import StoreDamaged, StoreFault

VERSION = 1


def prepare(connection: apsw.Connection, path: str, has_vectors: bool) -> None:
    """Make this file a space of the current schema."""
    names = _tables(connection)
    if "change" not in names:
        if not names:
            _create(connection, has_vectors)
        elif {"entities", "observations", "relations"} <= names:
            from mcp_memory.stores.sqlite.adoption import adopt

            adopt(connection, path, has_vectors)
        else:
            raise StoreDamaged(
                f"{path} is an SQLite database of some other program; it was left as it is. "
                "Choose another --memory-file."
            )
    version = schema_version(connection)
    if version > VERSION:
        raise StoreFault(
            f"{path} was written by a newer mcp-memory (schema {version}, this one knows {VERSION}). "
            "Upgrade mcp-memory; the file was left as it is."
        )
    if has_vectors and not {"entity_embeddings", "reflection_embeddings"} <= names and "change" in names:
        _add_vectors(connection)


def schema_version(connection: apsw.Connection) -> int:
    found = connection.execute("select value from db_metadata where key = 'schema_version'").get
    return int(found or 0)


def _tables(connection: apsw.Connection) -> set[str]:
    return {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}


def _create(connection: apsw.Connection, has_vectors: bool) -> None:
    connection.execute("begin immediate")
    try:
        if "change" not in _tables(connection):  # another process may have been faster
            create_tables(connection, has_vectors)
            connection.execute(read_sql("schema", "0003_feed.sql"))
        connection.execute("commit")
    except BaseException:
        connection.execute("rollback")
        raise


def create_tables(connection: apsw.Connection, has_vectors: bool) -> None:
    """The documented tables, in an empty file."""
    connection.execute(read_sql("schema", "0001_documented.sql"))
    if has_vectors:
        connection.execute(read_sql("schema", "0002_vectors.sql"))


def _add_vectors(connection: apsw.Connection) -> None:
    """A file born on a machine without sqlite-vec gets its vector tables."""
    connection.execute("begin immediate")
    try:
        if "entity_embeddings" not in _tables(connection):
            connection.execute(read_sql("schema", "0002_vectors.sql"))
        connection.execute("commit")
    except BaseException:
        connection.execute("rollback")
        raise
