"""A space in one SQLite file. The synchronous part of a write is one row of the feed; the documented
tables and full text follow in quiet moments, in the same transaction as the mark how far they came.

Two connections: one for calls, one for the projections, which run in a thread of their own. Within a
process a lock keeps the two from waiting for each other inside SQLite, whose waiting is coarse."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from mcp_memory.base import Base
from mcp_memory.changes import Entry, decode_changes, encode_changes
from mcp_memory.graph import Graph
from mcp_memory.stores.sqlite import checking, loading
from mcp_memory.stores.sqlite.connection import (
    BUSY_MILLISECONDS,
    connect,
    connect_read_only,
    load_vectors,
    plain_words,
)
from mcp_memory.stores.sqlite.projection import Projector
from mcp_memory.stores.sqlite.queries import Queries
from mcp_memory.stores.sqlite.schema import OURS, prepare, recognise
from mcp_memory.stores.store import Finding, StoreFault, StoreReadOnly

log = logging.getLogger("mcp_memory")

FEED = Queries("feed")

# Waiting for a locked file: as documented, within an overall deadline.
RETRIES = 5
FIRST_DELAY, LONGEST_DELAY, JITTER = 0.1, 2.0, 0.1
DEADLINE_SECONDS = 15.0

# Projections hold the write lock this long at most, so that a write never waits longer for them.
BATCH_SECONDS = 0.01
BATCH_ENTRIES = 256
CHECKPOINT_BYTES = 4 << 20


class SqliteStore:
    """Opens its file at the first question, and again whenever it was closed or replaced."""

    def __init__(self, path: str, *, durability: str = "normal") -> None:
        self.path = os.path.abspath(path)
        self.durability = durability
        self.read_only = False
        self._calls: apsw.Connection | None = None
        self._projections: apsw.Connection | None = None
        self._has_vectors = False
        self._identity: tuple[int, int] | None = None
        self._version = -1
        self._known_seq = -1
        self._projected = 0
        self._writing = threading.RLock()

    # ── opening and closing ──────────────────────────────────────────────────────────────────────

    def _ready(self) -> apsw.Connection:
        return self._calls or self._open()

    def _open(self) -> apsw.Connection:
        with self._writing, plain_words(self.path):
            _make_folder(os.path.dirname(self.path))
            try:
                connection = self._open_for_writing()
                self.read_only = False
            except (apsw.ReadOnlyError, apsw.CantOpenError):
                if not os.path.exists(self.path):
                    raise
                connection = self._open_for_reading()
                self.read_only = True
            self._calls = connection
            self._identity = _identity(self.path)
            self._version = -1
            return connection

    def _open_for_writing(self) -> apsw.Connection:
        connection = connect(self.path, self.durability, recognise)
        try:
            self._has_vectors = load_vectors(connection)
            prepare(connection, self.path, self._has_vectors)
            self._projected = connection.execute(FEED.projected).get
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_for_reading(self) -> apsw.Connection:
        connection = connect_read_only(self.path)
        try:
            if recognise(connection, self.path) != OURS:
                raise StoreReadOnly(
                    f"The memory file {self.path} must be brought to this version's form before it can be read, "
                    "and it may not be written. Allow writing to it and to its folder, or copy it elsewhere."
                )
            self._has_vectors = load_vectors(connection)
            self._projected = connection.execute(FEED.projected).get
        except BaseException:
            connection.close()
            raise
        return connection

    def _projecting(self) -> apsw.Connection:
        if self._projections is None:
            self._ready()
            connection = connect(self.path, "normal")
            load_vectors(connection)
            self._projections = connection
        return self._projections

    def close(self) -> None:
        """Checkpoint and let go. Without our own connections SQLite removes its help files."""
        with self._writing:
            calls, self._calls = self._calls, None
            projections, self._projections = self._projections, None
            for connection in (projections, calls):
                if connection is None:
                    continue
                try:
                    connection.close()
                except apsw.Error as error:
                    log.warning("closing %s: %s", self.path, error)

    def _forget(self) -> None:
        """Let go of a file that failed or is no longer ours, so that the next question opens it afresh."""
        with self._writing:
            for connection in (self._projections, self._calls):
                if connection is not None:
                    connection.close(True)
            self._projections = self._calls = None

    # ── writing ──────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def begin(self) -> Iterator[None]:
        with self._writing:
            connection = self._ready()
            if self.read_only:
                self._forget()  # perhaps it may be written by the next try
                raise StoreReadOnly(
                    f"The memory file {self.path} may not be written. Nothing was changed; check its permissions."
                )
            with plain_words(self.path):
                self._take_lock(connection)
                try:
                    yield
                    connection.execute("commit")
                except apsw.Error:
                    self._roll_back(connection)
                    self._forget()
                    raise
                except BaseException:
                    self._roll_back(connection)
                    raise

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

    @staticmethod
    def _roll_back(connection: apsw.Connection) -> None:
        if connection.in_transaction:
            connection.execute("rollback")

    def write(self, entries: list[Entry]) -> None:
        connection = self._ready()
        for entry in entries:
            connection.execute(
                FEED.append,
                (entry.seq, entry.at, entry.origin, entry.tool, entry.part, encode_changes(entry.changes)),
            )
        self._known_seq = entries[-1].seq

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    def news_since(self, graph: Graph) -> list[Entry] | None:
        if self._calls is None or self._identity != _identity(self.path):
            if self._calls is not None:
                log.warning("%s was replaced by another file; reading it anew", self.path)
                self._forget()
            self._ready()
            return None
        with plain_words(self.path):
            try:
                version = self._calls.execute("PRAGMA data_version").get
                if version == self._version and graph.seq >= self._known_seq:
                    return []
                news = [_entry(row) for row in self._calls.execute(FEED.news, (graph.seq,))]
            except apsw.Error:
                self._forget()
                raise
            self._version = version
            self._known_seq = news[-1].seq if news else graph.seq
            return news

    def load(self) -> Graph:
        connection = self._ready()
        with plain_words(self.path):
            try:
                # A savepoint is a read transaction of its own, and also fits inside a write.
                with connection:
                    graph = Graph(Base(loading.pack(connection)))
                    graph.apply(_entry(row) for row in connection.execute(FEED.news, (graph.seq,)))
                    self._version = connection.execute("PRAGMA data_version").get
            except apsw.Error:
                if not connection.in_transaction:
                    self._forget()
                raise
        self._known_seq = graph.seq
        return graph

    def feed(self) -> Iterator[Entry]:
        with plain_words(self.path):
            for row in self._ready().execute(FEED.news, (0,)):
                yield _entry(row)

    # ── projections ──────────────────────────────────────────────────────────────────────────────

    def behind(self) -> int:
        return max(self._known_seq - self._projected, 0)

    def settle(self, seconds: float | None = None) -> None:
        deadline = None if seconds is None else time.monotonic() + seconds
        if self.read_only or (self._calls is None and not os.path.exists(self.path)):
            return
        with plain_words(self.path):
            while self._settle_some():
                if deadline is not None and time.monotonic() > deadline:
                    return
            self._checkpoint()

    def _settle_some(self) -> bool:
        """Project one batch under the write lock; is there more?"""
        with self._writing:
            connection = self._projecting()
            if connection.execute(FEED.last).get == connection.execute(FEED.projected).get:
                return False
            connection.execute("begin immediate")
            try:
                done = connection.execute(FEED.projected).get
                more = self._project_batch(connection, done)
                connection.execute("commit")
            except BaseException:
                self._roll_back(connection)
                raise
        return more

    def _project_batch(self, connection: apsw.Connection, done: int) -> bool:
        until = time.monotonic() + BATCH_SECONDS
        projector = Projector(connection, self._has_vectors)
        rows = connection.execute(FEED.some_news, (done, BATCH_ENTRIES)).fetchall()
        more = len(rows) == BATCH_ENTRIES
        for row in rows:
            entry = _entry(row)
            projector.project(entry)
            done = entry.seq
            if time.monotonic() > until:
                more = True
                break
        projector.finish()
        connection.execute(FEED.set_projected, (done,))
        self._projected = done
        return more

    def _checkpoint(self) -> None:
        try:
            large = os.stat(self.path + "-wal").st_size > CHECKPOINT_BYTES
        except OSError:
            return
        if large:
            self._projecting().wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def rebuild(self) -> None:
        """Make every projection anew from the feed; usage and trials of living entities stay."""
        with self._writing, plain_words(self.path):
            connection = self._projecting()
            # Emptying the tables must not cascade into usage; SQLite only listens outside a transaction.
            connection.execute("PRAGMA foreign_keys = OFF")
            try:
                with connection:
                    checking.empty_projections(connection)
                    projector = Projector(connection, self._has_vectors)
                    last = 0
                    for row in connection.execute(FEED.news, (0,)).fetchall():
                        entry = _entry(row)
                        projector.project(entry)
                        last = entry.seq
                    projector.finish()
                    connection.execute(FEED.set_projected, (last,))
                    checking.drop_orphans(connection)
            finally:
                connection.execute("PRAGMA foreign_keys = ON")
            self._projected = last

    def check(self, repair: bool) -> list[Finding]:
        self.settle()
        with self._writing, plain_words(self.path):
            return checking.check(self._projecting(), self._has_vectors, repair)

    def compact(self, progress: Callable[[int, int], None] | None = None) -> None:
        self.settle()
        with self._writing, plain_words(self.path):
            connection = self._projecting()
            connection.execute("vacuum")
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _entry(row: tuple[Any, ...]) -> Entry:
    seq, at, body, origin, tool, part = row
    return Entry(seq, at, decode_changes(body), origin, tool, part)


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise StoreFault(
            f"The folder {folder} cannot be made ({error.strerror}). Make it, or start with another --memory-file."
        ) from error


def _identity(path: str) -> tuple[int, int] | None:
    """Which file bears this name now: a restored or removed one must not go unnoticed."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


__all__ = ["SqliteStore", "StoreFault"]
