"""A file as it is now, copied through SQLite: beside it before it is altered, or wherever a backup is kept.

The live file is never opened by other means: closing such a handle would drop SQLite's locks on it."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import Any

import apsw

from mcp_memory.stores.sqlite.connection import connect_read_only, plain_words
from mcp_memory.stores.store import StoreBusy, StoreDamaged, StoreFault
from mcp_memory.stores.wholefile import flush_to_disk

PAGES_PER_STEP = 4096
PARTIAL = ".partial"
CLOSING_MILLISECONDS = 2000  # a server that is just ending is waited for


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
        discard_file(place + suffix)


def discard_file(path: str) -> None:
    with suppress(OSError):
        os.remove(path)


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


# ── backups that are asked for ───────────────────────────────────────────────────────────────────


def copy_online(path: str, place: str) -> None:
    """Copy the committed state of this file, in one reading: whoever writes to it meanwhile does not wait."""
    if not os.path.isfile(path):
        raise StoreFault(f"{path} cannot be read: there is no such file. Check the path.")
    with plain_words(path):
        source, _ = connect_read_only(path)
        try:
            writable = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
            with _opened(place, writable) as target, target.backup("main", source, "main") as copying:
                copying.step(-1)
        finally:
            source.close()


def into_one_file(path: str) -> None:
    """Leave a database as one plain file, without the help files that WAL wants, and on the disk."""
    with plain_words(path), _opened(path, apsw.SQLITE_OPEN_READWRITE) as connection:
        connection.execute("pragma journal_mode = delete").get  # noqa: B018  (reading the answer runs it)
    with open(path, "rb+") as file:
        flush_to_disk(file.fileno())


class Held:
    """A database that is to be replaced, which nobody else can have meanwhile."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)

    def take(self) -> bool:
        """Keep everybody out, and have in the file what stood in the -wal; False if SQLite cannot read it."""
        run = self._connection.execute
        try:
            self._connection.set_busy_timeout(CLOSING_MILLISECONDS)
            run("pragma locking_mode = exclusive").get  # noqa: B018
            run("pragma journal_mode = delete").get  # noqa: B018  (needs the file for itself)
            run("select count(*) from sqlite_master").get  # noqa: B018  (from here on nobody can commit)
        except (apsw.BusyError, apsw.LockedError) as error:
            raise StoreBusy(
                f"The memory file {self._path} is in use by a server or another program. Nothing was changed; end it "
                "and try again."
            ) from error
        except apsw.FullError:
            raise
        except apsw.Error:
            return False
        return True

    def copy(self, place: str) -> bool:
        """Copy it whole; False if SQLite cannot read it."""
        writable = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        try:
            with _opened(place, writable) as target, target.backup("main", self._connection, "main") as copying:
                copying.step(-1)
        except (apsw.CorruptError, apsw.NotADBError):
            discard(place)
            return False
        if os.name == "nt":
            self.close()  # what is open cannot be replaced there, and whoever opens it now keeps it from being so
        return True

    def close(self) -> None:
        self._connection.close()


@contextmanager
def held(path: str) -> Iterator[Held | None]:
    """Keep a database from everybody else until it is replaced. Refused while anybody has it open.

    None for one that is damaged: whoever could read it would be refused above."""
    with plain_words(path):
        database = Held(path)
    try:
        with plain_words(path):
            is_whole = database.take()
        if not is_whole:
            database.close()
        yield database if is_whole else None
    finally:
        database.close()
