"""One database file while it is open: the connections to it, and whether its name still means it.

The law: no file is ever read together with another one's help files. SQLite finds `-wal` and `-shm` by
name, so when another file has come under our name, the help files that were ours go before it is opened."""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from mcp_memory.pace import pause
from mcp_memory.stores.sqlite.connection import (
    BUSY_MILLISECONDS,
    DAMAGED,
    EMPTIED,
    REPLACED,
    UNADOPTED,
    connect,
    connect_read_only,
    discard,
    load_vectors,
    plain_words,
    translated,
    without_checkpoint,
)
from mcp_memory.stores.sqlite.schema import OURS, prepare, recognise
from mcp_memory.stores.store import StoreBusy, StoreDamaged, StoreFault, StoreReadOnly
from mcp_memory.stores.wholefile import flush_folder, flush_to_disk

log = logging.getLogger("mcp_memory")

# What says nothing against the connection it happened on.
PASSING = (apsw.BusyError, apsw.LockedError, apsw.FullError)
# What keeps a file from being written, but perhaps not from being read.
NOT_WRITABLE = (apsw.ReadOnlyError, apsw.CantOpenError, apsw.FullError, apsw.IOError)

# Where several processes create or leave the file in the same moment SQLite does not wait, it refuses.
OPENING_SECONDS = 15.0
OPENING_PAUSE = 0.02
# While a file is opened SQLite itself waits only so long: its waiting cannot be called off.
OPENING_MILLISECONDS = 20
CLOSING_SECONDS = 2.0

SMALLEST_PAGE = 512  # a database file is so many times its page size, which is so many times this


class OpenFile:
    """Opens its file when first asked, and again when it failed or was replaced."""

    def __init__(self, path: str, durability: str) -> None:
        self.path = path
        self.durability = durability
        self.lock = threading.RLock()  # whoever writes, projects, opens or closes
        self.calls: apsw.Connection | None = None
        self.read_only = False
        self.has_vectors = False
        self._projections: apsw.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._size = 0  # the largest seen: a database file only grows, unless it is compacted or cut
        self._was_cut = False
        self._why: apsw.Error | None = None  # it can only be read
        self._frozen: tuple[int, ...] | None = None  # how the file was when it was read without any locks
        # Our own hold on the -wal: while it lasts no other file can get the same inode.
        self._wal: int | None = None
        self._owes_names = False  # perhaps the folder was not flushed since the -wal got its name

    # ── opening ──────────────────────────────────────────────────────────────────────────────────

    def ready(self) -> apsw.Connection:
        """The connection for calls."""
        return self.calls or self._open()

    def ready_to_write(self) -> apsw.Connection:
        if self.read_only:
            self.forget()  # it may have become writable
        connection = self.ready()
        if self._why is not None:
            raise translated(self._why, self.path) from self._why
        return connection

    def projecting(self) -> apsw.Connection:
        """The connection for projections. Only for who holds the lock."""
        if self._projections is None:
            self.ready()
            if not self.is_current():
                raise StoreBusy(REPLACED.format(path=self.path))
            self._projections = connect(self.path, "normal")
            load_vectors(self._projections)
        return self._projections

    def another(self) -> apsw.Connection:
        """One more connection, for reading in a thread of its own. Whoever asks closes it."""
        if self.read_only:
            return connect_read_only(self.path)[0]
        if not self.is_current():
            raise StoreBusy(REPLACED.format(path=self.path))
        return connect(self.path, "normal")

    def _open(self) -> apsw.Connection:
        with self.lock, plain_words(self.path):
            if self.calls is not None:  # another thread was faster
                return self.calls
            _make_folder(os.path.dirname(self.path))
            if self._identity not in (None, _identity(self.path)):
                self._part_from_help_files()
                self._was_cut = False
            self._refuse_what_lost_its_end()
            connection = self._connect_patiently()
            self._look()
            self._hold_wal()
            self.calls = connection
            return connection

    def _refuse_what_lost_its_end(self) -> None:
        """What SQLite does not see: it takes an empty file for a new one, and fills half a page up with zeros."""
        size = _size(self.path)
        has_changes = bool(_size(self.path + "-wal"))
        if not size and has_changes:
            # SQLite would delete the -wal too, and with it the only changes that are left.
            raise StoreDamaged(EMPTIED.format(path=self.path))
        if size % SMALLEST_PAGE and not has_changes and not _size(self.path + "-journal"):
            raise StoreDamaged(DAMAGED.format(path=self.path, error="it ends in the middle of a page"))

    def _connect_patiently(self) -> apsw.Connection:
        began = time.monotonic()
        while True:
            try:
                return self._connect()
            except apsw.BusyError:
                waited = time.monotonic() - began
                if waited > OPENING_SECONDS or not pause(OPENING_PAUSE * random.random(), waited):
                    raise

    def _connect(self) -> apsw.Connection:
        self._why, self._frozen = None, None
        try:
            # SQLite would open it all the same, and leave help files behind that nobody may write either.
            if os.path.exists(self.path) and not os.access(self.path, os.W_OK):
                raise apsw.ReadOnlyError
            connection = self._for_writing()
        except NOT_WRITABLE as error:
            if not os.path.exists(self.path):
                raise
            self._why = error if isinstance(error, apsw.FullError | apsw.IOError) else apsw.ReadOnlyError()
            connection = self._for_reading()
        self.read_only = self._why is not None
        return connection

    def _for_writing(self) -> apsw.Connection:
        connection = connect(self.path, self.durability, recognise, OPENING_MILLISECONDS)
        try:
            self.has_vectors = load_vectors(connection)
            if self._was_cut:
                _check_pages(connection)
                self._was_cut = False
            prepare(connection, self.path, self.has_vectors)
            connection.set_busy_timeout(BUSY_MILLISECONDS)
        except BaseException:
            discard(connection)
            raise
        return connection

    def _for_reading(self) -> apsw.Connection:
        connection, has_locks = connect_read_only(self.path)
        try:
            if recognise(connection, self.path) != OURS:
                raise StoreReadOnly(UNADOPTED.format(path=self.path))
            self.has_vectors = load_vectors(connection)
        except BaseException:
            connection.close()
            raise
        if not has_locks:
            self._frozen = self._state()
        return connection

    # ── is it still the same? ────────────────────────────────────────────────────────────────────

    def is_current(self) -> bool:
        """Does the name still mean the file that is open, and is that whole? One system call."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        if (found.st_dev, found.st_ino) != self._identity or found.st_size < self._size:
            return False
        self._size = found.st_size
        return self._frozen is None or self._frozen == self._state()

    def _look(self) -> None:
        found = os.stat(self.path)
        self._identity, self._size = (found.st_dev, found.st_ino), found.st_size

    def _state(self) -> tuple[int, ...]:
        """What changes when others write: for readers without locks, whom SQLite does not tell."""
        state: list[int] = []
        for name in (self.path, self.path + "-wal"):
            with suppress(OSError):
                found = os.stat(name)
                state += found.st_mtime_ns, found.st_size
        return tuple(state)

    def leave(self) -> None:
        """Let go of a file that is not under its name any more, and of what stands beside it by that name."""
        with self.lock:
            if self._identity == _identity(self.path):
                self._was_cut = self._frozen is None
            else:
                log.warning("%s was replaced or removed; what is there now is read anew", self.path)
                with self._alone():
                    self._part_from_help_files()
            self.forget()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """As the only one of those who have the replaced file open, if that can be had."""
        connection = None if self.read_only else self.calls
        if connection is None:
            yield
            return
        with suppress(apsw.Error):  # what was not yet in the file belongs there, wherever it is by now
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        with suppress(apsw.Error):
            connection.execute("begin immediate")
        yield
        roll_back(connection)

    def _hold_wal(self) -> None:
        self._release_wal()
        if sys.platform != "win32":  # there an open file can neither be replaced nor removed
            with suppress(OSError):
                self._wal = os.open(self.path + "-wal", os.O_RDONLY)
                self._owes_names = True

    def flush(self) -> None:
        """Bring what was committed to the disk: the -wal, and once the names of what we have open.

        Beside everything else: the lock is held for a moment and not for the disk. On Windows, where we hold no -wal,
        the system decides when."""
        with self.lock:
            if self._wal is None:
                return
            held, owes_names, self._owes_names = os.dup(self._wal), self._owes_names, False
        try:
            flush_to_disk(held)
            if owes_names:
                flush_folder(os.path.dirname(self.path))
        except OSError:
            self._owes_names = self._owes_names or owes_names
            raise
        finally:
            os.close(held)

    def _release_wal(self) -> None:
        held, self._wal = self._wal, None
        if held is not None:
            os.close(held)

    def _part_from_help_files(self) -> None:
        """Remove help files of the file that was replaced, unless another process has done it already."""
        if self._wal is None:
            return
        beside = self.path + "-wal"
        with suppress(OSError):
            held = os.fstat(self._wal)
            if not os.path.samestat(held, os.stat(beside)):
                return
            if held.st_size:  # changes that did not reach the file they belong to: not ours to destroy
                os.replace(beside, beside + ".replaced")
            else:
                os.unlink(beside)
            os.unlink(self.path + "-shm")

    # ── letting go ───────────────────────────────────────────────────────────────────────────────

    def forget(self) -> None:
        """Let go of connections that failed, without another write; the next question opens the file afresh."""
        with self.lock:
            for connection in (self._projections, self.calls):
                if connection is not None:
                    with suppress(apsw.Error):
                        without_checkpoint(connection)
                    _shut(connection)
            self._projections = self.calls = None
            self.read_only, self._frozen = False, None

    def close(self) -> None:
        """Checkpoint and let go. Without other processes SQLite then removes its help files."""
        with self.lock:
            if self.calls is not None and not self.is_current():
                self.leave()
            for connection in (self._projections, self.calls):
                if connection is not None:
                    _shut(connection)
            self._projections = self.calls = None
            self._release_wal()
            self._identity = None


def roll_back(connection: apsw.Connection) -> None:
    """End a transaction that failed; whoever asks has a better error to tell than this one's."""
    with suppress(apsw.Error):
        if connection.in_transaction:
            connection.execute("rollback")


def _check_pages(connection: apsw.Connection) -> None:
    """A file that became smaller was compacted, or cut: what is missing then is zeros to SQLite."""
    found = connection.execute("PRAGMA quick_check(1)").get
    if found != "ok":
        raise apsw.CorruptError(found)


def _shut(connection: apsw.Connection) -> None:
    """Close a connection, after whatever another thread is still doing on it."""
    deadline = time.monotonic() + CLOSING_SECONDS
    while True:
        try:
            connection.close()
            return
        except apsw.ThreadingViolationError as error:
            if time.monotonic() > deadline:
                log.warning("%s stays open: %s", connection.filename, error)
                return
            time.sleep(0.002)
        except apsw.Error as error:
            log.warning("closing %s: %s", connection.filename, error)
            connection.close(True)
            return


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise StoreFault(
            f"The folder {folder} cannot be made ({error.strerror}). Make it, or start with another --memory-file."
        ) from error


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _identity(path: str) -> tuple[int, int] | None:
    """Which file bears this name now: a restored or removed one must not go unnoticed."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
