"""The two vector tables. Only a connection with sqlite-vec can touch them, so they are looked after apart
from the rest: when a file is made, when it is adopted, or later, when sqlite-vec is there at last."""

from __future__ import annotations

import re
from typing import Any

import apsw

from mcp_memory.stores.sqlite.queries import read_sql

STATEMENT = re.compile(r"^CREATE VIRTUAL TABLE (\w+)[^;]*", re.MULTILINE)
SIZE = re.compile(r"float\[\d+\]")
COSINE = re.compile(r"distance_metric\s*=\s*cosine")


def _documented() -> dict[str, str]:
    return {match[1]: match[0] for match in STATEMENT.finditer(read_sql("schema", "0002_vectors.sql"))}


def _wanting(connection: apsw.Connection) -> dict[str, str | None]:
    """The vector tables that are missing (None) or compare otherwise than by cosine (their statement)."""
    there = dict(
        connection.execute(
            "select name, sql from sqlite_master where name in ('entity_embeddings', 'reflection_embeddings')"
        )
    )
    return {name: there.get(name) for name in _documented() if not COSINE.search(there.get(name, ""))}


def vectors_wanted(connection: apsw.Connection) -> bool:
    return bool(_wanting(connection))


def bring_vectors(connection: apsw.Connection) -> None:
    """Create what is missing; give the predecessor's reflection vectors (L2) the documented metric.

    Inside a transaction. Vectors stay as they are, and so does their dimension, which is the model's."""
    documented = _documented()
    for name, old in _wanting(connection).items():
        vectors: list[Any] = []
        statement = documented[name]
        if old is not None:
            # Held in memory meanwhile: sqlite-vec has no renaming, and there are few reflections.
            vectors = connection.execute(f"select rowid, embedding from {name}").fetchall()
            connection.execute(f"drop table {name}")
            if size := SIZE.search(old):
                statement = SIZE.sub(size[0], statement)
        connection.execute(statement)
        connection.executemany(f"insert into {name} (rowid, embedding) values (?, ?)", vectors)


def fit_vectors(connection: apsw.Connection, dimension: int) -> None:
    """Empty tables for vectors of so many numbers. Inside a transaction."""
    for name, statement in _documented().items():
        connection.execute(f"drop table if exists {name}")
        connection.execute(SIZE.sub(f"float[{dimension}]", statement))
