"""A place in the file for what is kept beside the facts and follows no feed: usage, trials, tuned constants.

Guests use the projections' connection under the file's lock, for milliseconds, and never while a call waits
for another process: who finds the file locked gives everything back and tries again."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import apsw

from mcp_memory.stores.sqlite.connection import BUSY_MILLISECONDS, LOCKED, READ_ONLY, REPLACED, plain_words
from mcp_memory.stores.sqlite.opening import OpenFile, roll_back
from mcp_memory.stores.store import StoreBusy, StoreReadOnly

ATTEMPTS, PAUSE = 40, 0.005


class Guest:
    """Somebody with a connection for a moment."""

    wants_endings = False  # usage refers to the rows of entities, and goes with them

    def __init__(self, file: OpenFile) -> None:
        self._file = file

    @property
    def has_vectors(self) -> bool:
        """Can the documented vector tables be touched?"""
        self._file.ready()
        return self._file.has_vectors

    def mark(self) -> object:
        """Another thing when the file was opened anew: then what was read from it must be read again."""
        return self._file.calls

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        file = self._file
        with file.lock, plain_words(file.path):
            file.ready()
            connection = file.another() if file.read_only else file.projecting()
            try:
                with connection:
                    yield connection
            finally:
                if file.read_only:
                    connection.close()

    def metadata(self) -> dict[str, str]:
        """What stands in db_metadata now. The settler holds the file's lock for milliseconds after every search, so
        this asks the connection for calls, which whoever holds the space has to itself."""
        from mcp_memory.stores.sqlite.usage import metadata

        with plain_words(self._file.path):
            return metadata(self._file.ready())

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """A connection inside a transaction, committed at the end."""
        file = self._file
        with plain_words(file.path):
            connection = self._begin()
            try:
                yield connection
                connection.execute("commit")
            except BaseException:
                roll_back(connection)
                raise
            finally:
                file.lock.release()

    def bring(self, connection: apsw.Connection, names: Sequence[str]) -> None:
        """Nothing to do: the file knows every entity itself."""

    def _begin(self) -> apsw.Connection:
        """Begin a transaction and keep the file's lock."""
        file = self._file
        for _ in range(ATTEMPTS):
            file.lock.acquire()
            try:
                return self._begin_now()
            except apsw.BusyError:
                file.lock.release()
            except BaseException:
                file.lock.release()
                raise
            time.sleep(PAUSE * (0.5 + random.random()))
        raise StoreBusy(LOCKED.format(path=file.path))

    def _begin_now(self) -> apsw.Connection:
        file = self._file
        file.ready()
        if file.read_only:
            raise StoreReadOnly(READ_ONLY.format(path=file.path))
        connection = file.projecting()
        if not file.is_current():
            raise StoreBusy(REPLACED.format(path=file.path))
        connection.set_busy_timeout(0)
        try:
            connection.execute("begin immediate")
        finally:
            connection.set_busy_timeout(BUSY_MILLISECONDS)
        return connection
