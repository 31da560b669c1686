"""A space in one SQLite file. The synchronous part of a write is one row of the feed; the documented
tables and full text follow in quiet moments, in the same transaction as the mark how far they came.

Two connections: one for calls, one for the projections, which run in a thread of their own. Within a
process a lock keeps the two from waiting for each other inside SQLite, whose waiting is coarse.

The law: what was acknowledged stands in the file that bears the name when the answer is given."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from itertools import count
from typing import Any

import apsw

from mcp_memory.base import Base
from mcp_memory.changes import Entry, encode_changes, encode_was
from mcp_memory.graph import Graph
from mcp_memory.packing import Packer
from mcp_memory.sections import no_pause
from mcp_memory.stores.sqlite import checking, history, loading
from mcp_memory.stores.sqlite.backup import back_up
from mcp_memory.stores.sqlite.connection import BUSY_MILLISECONDS, LOCKED, REPLACED, plain_words, translated
from mcp_memory.stores.sqlite.guest import Guest
from mcp_memory.stores.sqlite.opening import PASSING, OpenFile, roll_back
from mcp_memory.stores.sqlite.projection import Projector
from mcp_memory.stores.sqlite.queries import Queries
from mcp_memory.stores.sqlite.refeeding import index, rebuild
from mcp_memory.stores.sqlite.rows import entry_of
from mcp_memory.stores.sqlite.schema import transaction
from mcp_memory.stores.sqlite.snapshot import HUGE, LARGE, Snapshot
from mcp_memory.stores.sqlite.view import SqlView
from mcp_memory.stores.store import Finding, StoreBusy, StoreFault, StoreLocked

log = logging.getLogger("mcp_memory")

FEED = Queries("feed")
VIEW = Queries("view")

# Waiting for a locked file: as documented, within an overall deadline.
RETRIES = 5
FIRST_DELAY, LONGEST_DELAY, JITTER = 0.1, 2.0, 0.1
DEADLINE_SECONDS = 15.0

# Projections hold the write lock this long at most, so that a write never waits longer for them.
BATCH_SECONDS = 0.01
BATCH_ENTRIES = 256
CHECKPOINT_BYTES = 4 << 20
SETTLING_PAUSE = 0.005
# At the end of a process another one is not waited for longer than its own batch takes.
LAST_SECONDS = 0.1
# So often, at least, the disk is flushed while projections catch up with calls that go on.
LONGEST_UNFLUSHED = 1.0
# A snapshot this many entries old is replaced: replaying them costs about 10 us each.
SNAPSHOT_EVERY = 2000
# Making one, calls get their turn this long after every few hundred facts.
SNAPSHOT_PAUSE = 0.0005


MENDING = "before-repair"  # the label of the copy that is made first


class LeftOff(Exception):
    """What was made for the next start is not finished: this process ends."""


class Write:
    """One write, from the lock to the commit. A class: as generators three nested contexts took 6 us a call."""

    __slots__ = ("_connection", "_store", "_wait")

    def __init__(self, store: SqliteStore, wait: bool) -> None:
        self._store = store
        self._wait = wait
        self._connection: apsw.Connection

    def __enter__(self) -> None:
        self._connection = self._store.begin_write(self._wait)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._store.end_write(self._connection, error)


class SqliteStore:
    """Opens its file at the first question, and again whenever it was closed or replaced."""

    def __init__(self, path: str, *, durability: str = "normal") -> None:
        self.path = os.path.abspath(path)
        self.quick = durability != "sync"
        self._file = OpenFile(self.path, durability)
        self.guest = Guest(self._file)  # for what is kept beside the facts
        self.history = history.FeedHistory(self._file)
        self._loaded_from: apsw.Connection | None = None
        self._in_write = False
        self._version = -1
        self._known_seq = -1
        self._projected = 0
        self._snapshot = Snapshot(self.path)
        self._snapshot_seq = 0
        self._size = 0
        self._is_ending = False
        self._unflushed = False  # is there an acknowledged write that only the system's memory has?
        self._flushed_at = 0.0

    @property
    def read_only(self) -> bool:
        return self._file.read_only

    def close(self) -> None:
        """Checkpoint and let go. Without our own connections SQLite removes its help files."""
        self._file.close()

    # ── writing ──────────────────────────────────────────────────────────────────────────────────

    def append(self, entry: Entry) -> bool:
        file = self._file
        with file.lock:
            connection = file.calls
            if connection is None or connection is not self._loaded_from or file.read_only or not file.is_current():
                return False
            try:
                connection.set_busy_timeout(0)
                try:
                    connection.execute(FEED.append_next, _row(entry))
                finally:
                    connection.set_busy_timeout(BUSY_MILLISECONDS)
            except (apsw.BusyError, apsw.LockedError):
                return False
            except apsw.Error as error:
                self._gave(error)
                raise translated(error, self.path) from error
            if not connection.changes():
                return False
            self._known_seq = entry.seq
            self._unflushed = self.quick
            self._refuse_if_replaced()
        return True

    def begin(self, wait: bool = True) -> AbstractContextManager[None]:
        return Write(self, wait)

    def begin_write(self, wait: bool) -> apsw.Connection:
        """Begin a write: the file for us alone, in this process and among all."""
        lock = self._file.lock
        if not lock.acquire(wait):
            raise StoreLocked(LOCKED.format(path=self.path))
        try:
            if not wait and self._file.calls is None:  # opening it may take long
                raise StoreLocked(LOCKED.format(path=self.path))
            connection = self._begin_on_the_current_file(wait)
        except BaseException as error:
            lock.release()
            if isinstance(error, apsw.Error):
                raise translated(error, self.path) from error
            raise
        self._in_write = True
        return connection

    def end_write(self, connection: apsw.Connection, error: BaseException | None) -> None:
        """End a write: commit it, unless there was an error."""
        try:
            if error is None:
                try:
                    connection.execute("commit")
                except apsw.Error as refused:
                    error = refused
            self._in_write = False
            if error is not None:
                roll_back(connection)
                self._gave(error)
                if isinstance(error, apsw.Error):
                    raise translated(error, self.path) from error
            else:
                self._unflushed = self.quick
                self._refuse_if_replaced()
        finally:
            self._file.lock.release()

    def _refuse_if_replaced(self) -> None:
        if not self._file.is_current():
            self._file.leave()
            raise StoreBusy(REPLACED.format(path=self.path))

    def _begin_on_the_current_file(self, wait: bool) -> apsw.Connection:
        while True:
            connection = self._file.ready_to_write()
            try:
                if wait:
                    self._take_lock(connection)
                else:
                    self._take_free_lock(connection)
            except apsw.Error as error:
                self._gave(error)
                raise
            if self._file.is_current():
                return connection
            roll_back(connection)
            self._file.leave()

    def _gave(self, error: BaseException) -> None:
        """After an error that may lie in the connection, the next question opens the file afresh."""
        if isinstance(error, apsw.Error) and not isinstance(error, PASSING) and not self._in_write:
            self._file.forget()

    def _take_lock(self, connection: apsw.Connection) -> None:
        """BEGIN IMMEDIATE, patiently: SQLite's own waiting first, then retries with growing pauses."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        delay = FIRST_DELAY
        for attempt in range(RETRIES + 1):
            try:
                connection.execute("begin immediate")
                return
            except (apsw.BusyError, apsw.LockedError):
                left = deadline - time.monotonic()
                if attempt == RETRIES or left <= 0:
                    raise
                time.sleep(min(delay * (1 + random.random() * JITTER), left))
                delay = min(delay * 2, LONGEST_DELAY)
                left = max(deadline - time.monotonic(), 0.0)
                connection.set_busy_timeout(min(BUSY_MILLISECONDS, int(left * 1000)))
            finally:
                if attempt:
                    connection.set_busy_timeout(BUSY_MILLISECONDS)

    def _take_free_lock(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(0)
        try:
            connection.execute("begin immediate")
        finally:
            connection.set_busy_timeout(BUSY_MILLISECONDS)

    def write(self, entries: list[Entry]) -> None:
        connection = self._file.ready()
        for entry in entries:
            connection.execute(FEED.append, _row(entry))
        self._known_seq = entries[-1].seq

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    def news_since(self, graph: Graph) -> list[Entry] | None:
        file = self._file
        # Inside a write the name was looked at after the lock was taken, and is looked at again at its end.
        if not self._in_write and file.calls is not None and not file.is_current():
            file.leave()
        connection = file.ready()
        if connection is not self._loaded_from:
            return None
        try:
            version = connection.execute("PRAGMA data_version").get
            if version == self._version and graph.seq >= self._known_seq:
                return []
            news = [entry_of(row) for row in connection.execute(FEED.news, (graph.seq,))]
            if news and graph.seq < connection.execute(history.SQL.floor).get:
                return None  # what this graph has not seen was made a part of the beginning
        except apsw.Error as error:
            self._gave(error)
            raise translated(error, self.path) from error
        self._version = version
        self._known_seq = news[-1].seq if news else graph.seq
        return news

    def load(self) -> Graph:
        connection = self._file.ready()
        with plain_words(self.path):
            try:
                # A savepoint is a read transaction of its own, and also fits inside a write.
                with connection:
                    graph = self._load(connection)
                    self._version = connection.execute("PRAGMA data_version").get
            except apsw.Error as error:
                self._gave(error)
                raise
        self._known_seq = graph.seq
        self._loaded_from = connection
        return graph

    def _load(self, connection: apsw.Connection, pause: Callable[[], None] = no_pause) -> Graph:
        """The snapshot, or the tables, and then what the feed says since. `pause` may end it by raising."""
        base = self._snapshot.read(connection)
        if base is None and not self._file.read_only and connection.execute(VIEW.size).get > HUGE:
            self._snapshot.write(connection, pause)
            base = self._snapshot.read(connection)
        self._snapshot_seq = -1 if base is None else base.counts.seq
        graph = Graph(base or Base(loading.pack(connection, packer=Packer(pause=pause))))
        self._projected = connection.execute(FEED.projected).get
        graph.apply(entry_of(row) for row in connection.execute(FEED.news, (graph.seq,)))
        self._size = graph.entity_count
        return graph

    def view(self) -> SqlView | None:
        """The tables themselves, where loading a graph would keep a caller waiting and they are up to date."""
        connection = self._file.ready()
        with plain_words(self.path):
            if connection.execute(VIEW.size).get < LARGE:
                return None
            is_settled = connection.execute(FEED.last).get == connection.execute(FEED.projected).get
        return SqlView(connection) if is_settled else None

    def load_apart(self) -> tuple[Graph, object]:
        """As `load`, beside the calls of another thread; `accept` tells whether it still fits."""
        token = self._file.ready()
        with plain_words(self.path):
            connection = self._file.another()
            try:
                with connection:
                    graph = self._load(connection, self._stop_if_ending)
            finally:
                connection.close()
        return graph, token

    def accept(self, graph: Graph, token: object) -> bool:
        """Is a graph that was loaded apart the one to go on with?"""
        if token is not self._file.calls:
            return False
        self._loaded_from = self._file.calls
        self._version = -1
        self._known_seq = graph.seq
        return True

    def feed(self) -> Iterator[Entry]:
        with plain_words(self.path):
            for row in self._file.ready().execute(FEED.some_news, (0, -1)):
                yield entry_of(row)

    # ── projections ──────────────────────────────────────────────────────────────────────────────

    def behind(self) -> int:
        return max(self._known_seq - self._projected, 0)

    def settle(self, seconds: float | None = None) -> None:
        if self._file.calls is None or self._file.read_only:
            return
        began = time.monotonic()
        deadline = began + (DEADLINE_SECONDS if seconds is None else seconds)
        self._flush()
        with plain_words(self.path):
            more = True
            while more:
                if time.monotonic() > self._flushed_at + LONGEST_UNFLUSHED:
                    self._flush()
                try:
                    more = self._settle_some()
                except apsw.BusyError:
                    if time.monotonic() > (min(deadline, began + LAST_SECONDS) if self._is_ending else deadline):
                        raise
                    # Calls go first: the lock is not held while another process is waited for.
                    time.sleep(SETTLING_PAUSE * (0.5 + random.random()))
                if seconds is not None and time.monotonic() > deadline:
                    return
            self._checkpoint()
            if seconds is None and self.wants_snapshot():
                self._take_snapshot()

    def _flush(self) -> None:
        """Bring what was acknowledged to the disk. Projections can be made again, and need not be there."""
        self._flushed_at = time.monotonic()
        if not self._unflushed:
            return
        self._unflushed = False
        try:
            self._file.flush()
        except OSError as error:
            self._unflushed = True
            log.warning("%s could not be flushed to the disk, the next quiet moment tries again: %s", self.path, error)

    def wants_snapshot(self) -> bool:
        """Would the next start gain from a new one?"""
        old = self._projected - self._snapshot_seq
        return self._size >= LARGE and (self._snapshot_seq < 0 or old > SNAPSHOT_EVERY)

    def _take_snapshot(self) -> None:
        # On a connection of its own and without the lock: calls go on meanwhile.
        with self._file.lock:
            connection = self._file.another() if self._file.calls is not None else None
        if connection is not None:
            try:
                seq = self._snapshot.write(connection, self.give_way)
                # One that failed is not tried at once again.
                self._snapshot_seq = self._projected if seq is None else seq
            except LeftOff:
                log.debug("the snapshot of %s is left to the next process", self.path)
            finally:
                connection.close()

    def give_way(self) -> None:
        """Let calls go first, in the middle of what can wait; what they write meanwhile does not wait for it.

        Raises LeftOff where this process ends."""
        self._stop_if_ending()
        if time.monotonic() > self._flushed_at + LONGEST_UNFLUSHED:
            self._flush()
        time.sleep(SNAPSHOT_PAUSE)

    def _stop_if_ending(self) -> None:
        if self._is_ending:
            raise LeftOff

    def leave_off(self) -> None:
        self._is_ending = True

    def _settle_some(self) -> bool:
        """Project one batch under the write lock; is there more?"""
        with self._file.lock:
            if self._file.calls is None or not self._file.is_current():  # closed meanwhile, or for a call to notice
                return False
            connection = self._file.projecting()
            if connection.execute(FEED.last).get == connection.execute(FEED.projected).get:
                return False
            connection.set_busy_timeout(0)
            try:
                connection.execute("begin immediate")
                done = connection.execute(FEED.projected).get
                more = self._project_batch(connection, done)
                connection.execute("commit")
            except BaseException:
                roll_back(connection)
                raise
            finally:
                connection.set_busy_timeout(BUSY_MILLISECONDS)
        return more

    def _project_batch(self, connection: apsw.Connection, done: int) -> bool:
        """A few entries; more where what they brought refers to what only the next ones bring."""
        until = time.monotonic() + BATCH_SECONDS
        # An observation may have replaced one that came after it: rows refer ahead, and all is there at the commit.
        connection.execute("PRAGMA defer_foreign_keys = ON")
        projector = Projector(connection, self._file.has_vectors)
        floor, last = connection.execute(history.SQL.floor).get, connection.execute(FEED.last).get
        is_over = False
        while not is_over:
            for row in connection.execute(FEED.some_news, (done, BATCH_ENTRIES)).fetchall():
                entry = entry_of(row)
                projector.project(entry)
                if entry.seq > floor:
                    index(connection, entry)
                done = entry.seq
                if time.monotonic() > until and not _refers_ahead(connection):
                    break
            is_over = done == last or not _refers_ahead(connection)
        projector.finish()
        connection.execute(FEED.set_projected, (done,))
        self._projected = done
        return bool(done < last)

    def _checkpoint(self) -> None:
        try:
            large = os.stat(self.path + "-wal").st_size > CHECKPOINT_BYTES
        except OSError:
            return
        if large:
            # On a connection of its own and without the lock: a checkpoint waits for the disk, calls need not.
            with self._file.lock:
                if self._file.calls is None or not self._file.is_current():
                    return
                connection = self._file.another()
            with closing(connection), suppress(apsw.BusyError):  # another process may be at it already
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    @contextmanager
    def _maintaining(self) -> Iterator[apsw.Connection]:
        """The file in its present form, to ourselves as far as this process goes."""
        self._file.ready()
        self.settle()
        with self._file.lock, plain_words(self.path):
            yield self._file.projecting()

    def rebuild(self) -> None:
        """Make every projection anew from the feed; usage and trials of living entities stay.

        A copy of the file as it is comes first: what somebody wrote into the tables by hand is in no feed."""
        with self._file.lock, plain_words(self.path):
            connection = self._file.projecting()
            # Emptying the tables must not cascade into usage; SQLite only listens outside a transaction.
            connection.execute("PRAGMA foreign_keys = OFF")
            try:
                with transaction(connection):
                    kept = back_up(self.path, MENDING)
                    log.warning("%s is made anew from its feed; the file as it was: %s", self.path, kept)
                    self._projected = rebuild(connection, self._file.has_vectors)
            finally:
                connection.execute("PRAGMA foreign_keys = ON")

    def check(self, repair: bool) -> list[Finding]:
        connection = self._file.ready()
        if self._file.read_only:
            with plain_words(self.path):
                return checking.check(connection, self._file.has_vectors, False)
        with self._maintaining() as connection:
            return checking.check(connection, self._file.has_vectors, repair)

    def compact(self, progress: Callable[[int, int | None], None] | None = None) -> None:
        """Write the file anew without its gaps; `progress` is asked on the way, and what it raises calls that off."""
        steps = count(1)

        def look() -> bool:
            if progress is not None:
                progress(next(steps), None)
            return False

        with self._maintaining() as connection:
            connection.set_progress_handler(look, STEPS_BETWEEN_LOOKS)
            try:
                connection.execute("vacuum")
            finally:
                connection.set_progress_handler(None)
            _shorten(connection)


def _shorten(connection: apsw.Connection) -> None:
    """Give back what was gained. Where somebody still reads old pages, or checkpoints himself, a later one does it."""
    until = time.monotonic() + SHORTEN_SECONDS
    connection.set_busy_timeout(SHORTEN_MILLISECONDS)
    try:
        while True:
            try:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                return
            except apsw.BusyError:  # at once, where somebody else checkpoints: SQLite does not wait for that
                if time.monotonic() > until:
                    return
                time.sleep(FIRST_DELAY)
    finally:
        connection.set_busy_timeout(BUSY_MILLISECONDS)


SHORTEN_SECONDS, SHORTEN_MILLISECONDS = 1.0, 200
# Of SQLite's own steps: some ten looks a second while a file is written anew.
STEPS_BETWEEN_LOOKS = 100_000


def _row(entry: Entry) -> tuple[Any, ...]:
    was = None if entry.was is None else encode_was(entry.was)
    return entry.seq, entry.at, entry.origin, entry.tool, entry.part, encode_changes(entry.changes), was


__all__ = ["SqliteStore", "StoreFault"]


def _refers_ahead(connection: apsw.Connection) -> bool:
    """Does a row refer to one that is not there yet? Such a transaction cannot be committed."""
    return connection.status(apsw.SQLITE_DBSTATUS_DEFERRED_FKS)[0] > 0
