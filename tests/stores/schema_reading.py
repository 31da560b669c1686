"""What a database file says about its own schema, freed of layout."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.stores.sqlite.connection import load_vectors

# Tables that FTS5 and vec0 keep for themselves; their form belongs to those extensions.
SHADOWS = re.compile(
    r"(entity|reflection)_(fts_(data|idx|content|docsize|config)|embeddings_(info|chunks|rowids|vector_chunks\d\d))"
)


def flat(statement: str) -> str:
    """One spelling for all layouts of a statement."""
    statement = re.sub(r"\bIF NOT EXISTS\b", " ", statement)
    statement = re.sub(r"([(),=])", r" \1 ", statement)
    return " ".join(statement.split())


@contextmanager
def reading(path: Path) -> Iterator[apsw.Connection]:
    """A look at a file as any program may take it, through SQLite."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        load_vectors(connection)
        yield connection


def rows(path: Path, table: str, *names: str) -> list[tuple[Any, ...]]:
    """These columns of a table, in order."""
    with reading(path) as connection:
        found: list[Any] = connection.execute(f"select {', '.join(names)} from {table} order by 1, 2").fetchall()
        return found


def statements(path: Path) -> dict[str, str]:
    """Every table, index, view and trigger by name, with its statement."""
    with reading(path) as connection:
        found = connection.execute("select name, sql from sqlite_master where sql is not null").fetchall()
    return {
        str(name): flat(str(sql))
        for name, sql in found
        if not str(name).startswith("sqlite_") and not SHADOWS.fullmatch(str(name))
    }
