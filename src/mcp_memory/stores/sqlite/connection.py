"""Opening the file: pragmas as documented, sqlite-vec where it is, and SQLite's errors in plain words."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import apsw

from mcp_memory.stores.store import StoreDamaged, StoreFault, StoreFull, StoreLocked, StoreReadOnly

BUSY_MILLISECONDS = 10_000

PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA cache_size = -64000",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA foreign_keys = ON",
    # A checkpoint inside a commit costs tens of milliseconds; ours run in quiet moments. This one is
    # a net for the day nothing is ever quiet: 40 MB of WAL.
    "PRAGMA wal_autocheckpoint = 10000",
    # macOS: what is flushed before the file is written over must have left the drive's own memory too.
    "PRAGMA checkpoint_fullfsync = ON",
)
SYNC_PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # the same for every commit; other systems flush through the drive anyway
)


def connect(
    path: str,
    durability: str,
    examine: Callable[[apsw.Connection, str], object] | None = None,
    patience: int = BUSY_MILLISECONDS,
) -> apsw.Connection:
    """A connection with every documented pragma, for reading and writing.

    `examine` looks at the file first and may refuse it: the pragmas below turn any database into a WAL one.
    `patience` is how long SQLite waits for others, in milliseconds."""
    connection = apsw.Connection(path)
    try:
        connection.execute(f"PRAGMA busy_timeout = {patience}")
        if examine is not None:
            examine(connection, path)
        for pragma in (*PRAGMAS, *(SYNC_PRAGMAS if durability == "sync" else ())):
            connection.execute(pragma).get  # noqa: B018  (reading the answer runs the statement to its end)
    except BaseException:
        discard(connection)
        raise
    return connection


def without_checkpoint(connection: apsw.Connection) -> None:
    """Closing this connection will write nothing: what stands in the -wal stays there."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def discard(connection: apsw.Connection) -> None:
    """Close a connection to a file that cannot be used, and leave the file as it is."""
    without_checkpoint(connection)
    connection.close()


def connect_read_only(path: str) -> tuple[apsw.Connection, bool]:
    """A connection to a file that may only be read, and whether it takes part in SQLite's locks.

    It does while others have the file open. Otherwise it reads without the help files that WAL wants and
    nobody may make there; what stands in a -wal is indexed in memory, so nothing committed is missed."""
    if os.path.exists(path + "-shm"):
        with suppress(apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError):
            return _probed(path, "mode=ro"), True
    with suppress(OSError):
        if os.path.getsize(path + "-wal"):
            lockless = "win32-none" if os.name == "nt" else "unix-none"
            return _probed(path, f"mode=ro&vfs={lockless}", "PRAGMA locking_mode = EXCLUSIVE"), False
    return _probed(path, "immutable=1"), False


def _probed(path: str, how: str, pragma: str = "") -> apsw.Connection:
    from urllib.parse import quote

    place = ("/" + path.replace("\\", "/")) if os.name == "nt" else path
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file://{quote(place)}?{how}", flags=flags)
    try:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.execute(pragma).get  # noqa: B018
        connection.execute("select count(*) from sqlite_master").get  # noqa: B018
    except BaseException:
        connection.close()
        raise
    return connection


def load_vectors(connection: apsw.Connection) -> bool:
    """Teach a connection vec0 tables. False where sqlite-vec is not to be had: all else goes on."""
    # sqlite_vec itself imports numpy (97 ms) only to find this file.
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        return False
    try:
        connection.enable_load_extension(True)
        connection.load_extension(os.path.join(spec.submodule_search_locations[0], "vec0"))
    except (apsw.Error, AttributeError):
        return False
    connection.enable_load_extension(False)
    return True


@contextmanager
def plain_words(path: str) -> Iterator[None]:
    """SQLite's errors as faults a caller understands."""
    try:
        yield
    except apsw.Error as error:
        raise translated(error, path) from error
    except UnicodeDecodeError as error:  # a text in it is none
        raise StoreDamaged(DAMAGED.format(path=path, error=error)) from error


DAMAGED = (
    "The memory file {path} is damaged or is not a memory file ({error}). It was left as it is; put a backup in its "
    "place and remove the -wal and -shm files beside it, or start with another --memory-file."
)
EMPTIED = (
    "The memory file {path} is empty, yet there are changes to it in {path}-wal: its content was lost. Both were left "
    "as they are; put a backup in its place and remove the -wal and -shm files, or start with another --memory-file."
)
LOCKED = "The memory file {path} is locked by another program. Nothing was changed; try again in a moment."
REPLACED = "The memory file {path} was replaced during this call; nothing was changed in the new one. Try again."
FULL = "The disk of {path} is full. Nothing was changed; free some space and try again."
READ_ONLY = (
    "The memory file {path} may not be written. Nothing was changed; "
    "check its permissions and its folder's, or start with another --memory-file."
)
UNADOPTED = (
    "The memory file {path} must be brought to this version's form before it can be read, and it may not be written. "
    "Allow writing to it and to its folder, or copy it elsewhere."
)
FAULTS: tuple[tuple[type[apsw.Error], type[StoreFault], str], ...] = (
    (apsw.BusyError, StoreLocked, LOCKED),
    (apsw.LockedError, StoreLocked, LOCKED),
    (apsw.FullError, StoreFull, FULL),
    (apsw.ReadOnlyError, StoreReadOnly, READ_ONLY),
    (apsw.NotADBError, StoreDamaged, DAMAGED),
    (apsw.CorruptError, StoreDamaged, DAMAGED),
    (apsw.CantOpenError, StoreFault, "The memory file {path} cannot be opened; check that its folder may be written."),
    (
        apsw.IOError,
        StoreFull,
        "The disk of {path} failed ({error}). Nothing was changed; check the disk and try again.",
    ),
    (apsw.Error, StoreFault, "The memory file {path} refused: {error}. Nothing was changed."),
)


def translated(error: apsw.Error, path: str) -> StoreFault:
    kind, text = next((kind, text) for cause, kind, text in FAULTS if isinstance(error, cause))
    return kind(text.format(path=path, error=error))
