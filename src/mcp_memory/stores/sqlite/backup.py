"""A file as it is now, copied beside it through SQLite and read back before anyone relies on it.

The live file is never opened by other means: closing such a handle would drop SQLite's locks on it."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import Any

import apsw

from mcp_memory.stores.store import StoreDamaged, StoreFault

PAGES_PER_STEP = 4096
PARTIAL = ".partial"


def back_up(path: str, label: str) -> str:
    """Copy the committed state of this file to `<file>.<label>-<time>.backup`; answers that name.

    The caller holds the write lock: nothing changes meanwhile, and nobody else makes this copy."""
    for left_behind in glob.glob(f"{glob.escape(path)}.{label}-*{PARTIAL}*"):  # by a process that was killed
        with suppress(OSError):
            os.remove(left_behind)
    place = _unused(f"{path}.{label}-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}")
    partial = place + PARTIAL
    try:
        _copy(path, partial)
        _verify(path, partial)
        os.replace(partial, place)
    except BaseException:
        discard(partial)
        raise
    return place


def discard(place: str) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
        with suppress(OSError):
            os.remove(place + suffix)


def _unused(beginning: str) -> str:
    place, number = f"{beginning}.backup", 1
    while os.path.exists(place):
        number += 1
        place = f"{beginning}-{number}.backup"
    return place


@contextmanager
def _opened(path: str, flags: int) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(path, flags=flags)
    try:
        yield connection
    finally:
        connection.close()


def _copy(path: str, partial: str) -> None:
    # A connection of its own: one that has begun to write cannot be the source of a backup.
    with _opened(path, apsw.SQLITE_OPEN_READONLY) as source:
        writable = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        with _opened(partial, writable) as target, target.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(PAGES_PER_STEP)


def _verify(path: str, partial: str) -> None:
    """Is the copy whole, and sound as far as SQLite can tell? Full text can be made again: it does not count."""
    with _opened(partial, apsw.SQLITE_OPEN_READWRITE) as copy:
        # One plain file, without the help files that WAL wants.
        copy.execute("pragma journal_mode = delete").get  # noqa: B018  (reading the answer runs it)
        wrong = [text for (text,) in copy.execute("pragma integrity_check(5)") if text != "ok" and "FTS5" not in text]
        if wrong:
            raise StoreDamaged(
                f"The memory file {path} is damaged: {wrong[0]}. It was left as it is; "
                "put a backup in its place, or rescue what is in it with the .recover command of sqlite3."
            )
        with _opened(path, apsw.SQLITE_OPEN_READONLY) as source:
            if _contents(copy) != _contents(source):
                raise StoreFault(f"The backup of {path} does not say what the file says. Nothing was changed.")


def _contents(connection: apsw.Connection) -> list[tuple[str, Any]]:
    """Every ordinary table with the number of its rows."""
    names: list[Any] = connection.execute(
        "select name from sqlite_master where type = 'table' and sql not like 'CREATE VIRTUAL%' order by name"
    ).fetchall()
    return [
        (name, connection.execute('select count(*) from "{}"'.format(name.replace('"', '""'))).get) for (name,) in names
    ]
