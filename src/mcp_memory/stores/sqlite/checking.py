"""What SQLite and plain SQL can say about a file's health, and the repair of what is derived."""

from __future__ import annotations

from typing import Any

import apsw

from mcp_memory.stores.sqlite import completing
from mcp_memory.stores.sqlite.projection import SQL as PROJECT
from mcp_memory.stores.sqlite.queries import Queries
from mcp_memory.stores.store import MENDED, REBUILT, RESTORED, Finding

SQL = Queries("check")
PROJECTED = ("reflections", "relations", "observations", "entities")


def check(connection: apsw.Connection, has_vectors: bool, repair: bool) -> list[Finding]:
    lost = completing.check(connection, repair)
    if lost and not repair:
        return lost  # what else there is cannot be told without it
    return lost + _check_what_is_there(connection, has_vectors, repair)


def _check_what_is_there(connection: apsw.Connection, has_vectors: bool, repair: bool) -> list[Finding]:
    with connection:
        # FTS5 checks what it remembers of an index, and forgets what others have changed only when it is asked.
        connection.execute(SQL.wake_texts).get  # noqa: B018
        connection.execute(SQL.wake_reflections).get  # noqa: B018
        # Full text can be made again; anything else that SQLite finds cannot be trusted to tell what it held.
        findings = [
            Finding(f"SQLite: {text}", remedy=REBUILT if "FTS5" in text else RESTORED)
            for (text,) in connection.execute(SQL.integrity)
            if text != "ok"
        ]
    # Facts come from the feed; a row of usage that belongs to nothing is taken out with the same.
    findings += [
        Finding(f"{table} row {rowid} refers to a missing row of {parent}", remedy=REBUILT)
        for table, rowid, parent, _ in connection.execute(SQL.foreign_keys)
    ]
    with connection:
        findings += _check_texts(connection, repair)
        findings += _check_reflections(connection, repair)
        if has_vectors:
            orphans = connection.execute(SQL.orphan_vectors).fetchall()
            if repair:
                connection.executemany(PROJECT.forget_vector, orphans)
            findings += _told(orphans, "vectors belong to no entity", repair)
    return findings


def _told(rows: list[tuple[Any, ...]], what: str, repaired: bool) -> list[Finding]:
    if not rows:
        return []
    ids = ", ".join(str(row[0]) for row in rows[:5]) + (", …" if len(rows) > 5 else "")
    return [Finding(f"{len(rows)} {what} (ids {ids})", repaired, remedy=MENDED)]


def _check_texts(connection: apsw.Connection, repair: bool) -> list[Finding]:
    stale = connection.execute(SQL.stale_texts).fetchall()
    orphans = connection.execute(SQL.orphan_texts).fetchall()
    if repair and (stale or orphans):
        connection.executemany(PROJECT.forget_text, stale + orphans)
        connection.executemany(PROJECT.index_text, stale)
    return _told(stale, "entities have stale full text", repair) + _told(
        orphans, "full-text rows belong to no entity", repair
    )


def _check_reflections(connection: apsw.Connection, repair: bool) -> list[Finding]:
    stale = connection.execute(SQL.stale_reflections).fetchall()
    orphans = connection.execute(SQL.orphan_reflections).fetchall()
    if repair and (stale or orphans):
        connection.executemany(SQL.forget_reflection, [row[:1] for row in stale + orphans])
        connection.executemany(PROJECT.index_reflection, stale)
    return _told(stale, "reflections have stale full text", repair) + _told(
        orphans, "full-text rows belong to no reflection", repair
    )


def empty_projections(connection: apsw.Connection) -> None:
    completing.renew_texts(connection)
    for table in (*PROJECTED, "change_subject", "gone_entity"):
        connection.execute(f"delete from {table}")


def drop_orphans(connection: apsw.Connection) -> None:
    """Remove usage of entities that are no more, after foreign keys were off."""
    for table, rowid, _, _ in connection.execute(SQL.foreign_keys).fetchall():
        connection.execute(f"delete from {table} where rowid = ?", (rowid,))
