"""Taking over a database written by the Python predecessor: any of its shapes becomes a space of ours.

In one transaction under the write lock, once, after a backup beside the file: the tables get their
documented form, rows the documents do not allow are mended, and the whole state becomes the beginning of
the feed. A failure at any point, a killed process included, leaves the file as it was."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import apsw
import msgspec

from mcp_memory.changes import (
    AnyChange,
    EntityRestored,
    ReflectionRestored,
    RelationRestored,
    decode_changes,
    encode_changes,
)
from mcp_memory.space import CHANGES_PER_ENTRY, utc_now
from mcp_memory.stores.sqlite import loading
from mcp_memory.stores.sqlite.backup import back_up, discard
from mcp_memory.stores.sqlite.checking import SQL as CHECK
from mcp_memory.stores.sqlite.leftovers import Leftovers
from mcp_memory.stores.sqlite.mending import mend
from mcp_memory.stores.sqlite.projection import SQL as PROJECT
from mcp_memory.stores.sqlite.queries import Queries, read_sql
from mcp_memory.stores.sqlite.refeeding import portions
from mcp_memory.stores.sqlite.reshaping import Reshaping
from mcp_memory.stores.sqlite.schema import ADOPTABLE, bring_forward, recognise, transaction
from mcp_memory.stores.sqlite.vectors import bring_vectors
from mcp_memory.stores.store import StoreFault, StoreFull

log = logging.getLogger("mcp_memory")

SQL = Queries("adopt")
HISTORY = Queries("history")
LABEL = "before-mcp-memory"
TOOL = "adopt"


def adopt(connection: apsw.Connection, path: str, has_vectors: bool) -> None:
    """Make the predecessor's file ours, or leave it exactly as it is."""
    began = time.monotonic()
    backup: str | None = None
    with _failures_told(path), _loose_rules(connection):
        try:
            with transaction(connection):
                if recognise(connection, path) != ADOPTABLE:
                    return  # another process was faster
                backup = back_up(path, LABEL)
                leftovers = _take_over(connection, has_vectors)
                taken = connection.execute(SQL.counts).fetchall()[0]
        except BaseException:
            if backup is not None:  # of a file that is as it was
                discard(backup)
            raise
    log.warning(
        "%s was written by an earlier memory server and has been taken over in %.1f s: %d entities, %d relations, "
        "%d reflections. The file as it was: %s",
        path,
        time.monotonic() - began,
        *taken,
        backup,
    )
    if leftovers.count:
        log.warning(
            "%d rows of %s could not stay as they were; they are written down in its table adoption_leftovers",
            leftovers.count,
            path,
        )


def _take_over(connection: apsw.Connection, has_vectors: bool) -> Leftovers:
    leftovers = Leftovers(connection)
    reshaping = Reshaping(connection, leftovers)
    reshaping.begin()
    reshaping.shape()
    mend(connection, leftovers)
    leftovers.keep("db_metadata", "key in ('schema_version', 'space_id')", "this key is ours")
    connection.execute(SQL.free_keys)
    connection.execute(read_sql("schema", "0003_feed.sql"))
    bring_forward(connection)
    _index(connection)
    if has_vectors:
        bring_vectors(connection)
        connection.executemany(PROJECT.forget_vector, connection.execute(CHECK.orphan_vectors).fetchall())
        orphans = connection.execute(SQL.orphan_reflection_vectors).fetchall()
        connection.executemany(SQL.forget_reflection_vector, orphans)
    _begin_feed(connection)
    reshaping.finish()
    return leftovers


def _index(connection: apsw.Connection) -> None:
    """Fill full text from the facts, as the projections keep it."""
    connection.executemany(PROJECT.index_text, connection.execute(SQL.entity_ids).fetchall())
    connection.executemany(PROJECT.index_reflection, connection.execute(SQL.reflection_texts).fetchall())


def _begin_feed(connection: apsw.Connection) -> None:
    """Write the whole state as entries of the feed, which the tables already say."""
    at, seq = utc_now(), 0
    for part, changes in enumerate(portions(_facts(connection), CHANGES_PER_ENTRY)):
        seq = part + 1
        body = encode_changes(changes)
        decode_changes(body)  # a feed that cannot be read back must not be committed
        connection.execute(loading.FEED.append, (seq, at, "", TOOL, part, body, None))
    connection.execute(loading.FEED.set_projected, (seq,))
    connection.execute(HISTORY.set_floor, (seq,))


def _facts(connection: apsw.Connection) -> Iterator[tuple[AnyChange, int]]:
    """Every fact as a change, with how many facts it holds."""
    for entity in loading.entities(connection):
        yield EntityRestored(entity), 1 + len(entity.observations)
    for relation in loading.relations(connection):
        yield RelationRestored(relation), 1
    for reflection in loading.reflections(connection):
        yield ReflectionRestored(reflection), 1


@contextmanager
def _loose_rules(connection: apsw.Connection) -> Iterator[None]:
    """Tables can be replaced without cascades, and renamed without rewriting who refers to them.

    SQLite listens to the first only outside a transaction."""
    connection.execute("pragma foreign_keys = off")
    connection.execute("pragma legacy_alter_table = on")
    try:
        yield
    finally:
        connection.execute("pragma legacy_alter_table = off")
        connection.execute("pragma foreign_keys = on")


@contextmanager
def _failures_told(path: str) -> Iterator[None]:
    """What prevented the adoption, and what to do. Locks, missing rights and damage are told by the store."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError, apsw.CorruptError, apsw.NotADBError):
        raise
    except apsw.FullError as error:
        raise StoreFull(
            f"The disk of {path} is too full to bring the file to this version's form and keep a backup beside it. "
            f"Nothing was changed; free about {_megabytes(path)} MB and try again."
        ) from error
    except (apsw.Error, OSError, msgspec.MsgspecError) as error:
        raise StoreFault(
            f"{path} was written by an earlier memory server and could not be brought to this version's form: "
            f"{error}. Nothing was changed."
        ) from error


def _megabytes(path: str) -> int:
    """The backup, and the tables and the feed in the write-ahead log."""
    return 1 + 4 * os.stat(path).st_size // 1_000_000
