"""A database that is not ours to open: read as it is now, through a copy, and left exactly as it is.

Opening it would make it ours: a predecessor's file is upgraded in place, and every file gets help files."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory

import apsw

from mcp_memory.graph import Graph
from mcp_memory.stores.sqlite.connection import connect_read_only, plain_words
from mcp_memory.stores.sqlite.store import SqliteStore
from mcp_memory.stores.store import StoreFault

PAGES_PER_STEP = 4096


def read_apart(path: str) -> Graph:
    """Everything in a database of ours or of the Python predecessor."""
    if not os.path.isfile(path):
        raise StoreFault(f"{path} cannot be read: there is no such file. Check the path.")
    with TemporaryDirectory(prefix="mcp-memory-", ignore_cleanup_errors=True) as folder:
        place = os.path.join(folder, "copy.db")
        with plain_words(path):
            _copy(path, place)
        store = SqliteStore(place)
        try:
            return store.load()
        except StoreFault as fault:
            raise type(fault)(str(fault).replace(place, path)) from fault
        finally:
            store.close()


def _copy(path: str, place: str) -> None:
    source, _ = connect_read_only(path)
    try:
        target = apsw.Connection(place)
        try:
            with target.backup("main", source, "main") as copying:
                while not copying.done:
                    copying.step(PAGES_PER_STEP)
        finally:
            target.close()
    finally:
        source.close()
