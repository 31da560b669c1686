"""How the parts become a server: a file gets its store, a store its space, a space its desk.

Nothing is opened here. A store opens its file at the first call that needs it, so a client has its
answer to `initialize` before any disk is touched, and a file in trouble is told about in an answer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mcp_memory.facts import Limits
from mcp_memory.space import Space
from mcp_memory.stores.store import Store, StoreFault

if TYPE_CHECKING:
    from mcp_memory.desk import Desk
    from mcp_memory.settings import Settings

SUFFIXES = {".jsonl": "jsonl", ".json": "jsonl", ".mcpmem": "journal"}
BEGINNINGS = ((b"SQLite format 3\0", "sqlite"), (b"MCPMEMV1", "journal"), (b"MCPMEMV2", "journal"), (b"{", "jsonl"))

# A process that closes a file it has read loses SQLite's locks on it (POSIX locks belong to the process),
# so the beginning of a file is read once, before any store of this process can have it open.
_recognised: dict[str, str] = {}


def format_of(path: str) -> str:
    """The format of this file: by what is in it, or by its suffix while there is nothing in it."""
    place = os.path.realpath(path)
    if place not in _recognised:
        _recognised[place] = _format_by_beginning(place) or SUFFIXES.get(os.path.splitext(place)[1].lower(), "sqlite")
    return _recognised[place]


def _format_by_beginning(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            beginning = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError:
        return None  # not there yet, or not readable: then the store can say why
    return next((kind for start, kind in BEGINNINGS if beginning.startswith(start)), None)


def store_for(path: str, durability: str = "normal") -> Store:
    """The store that this file is, or will be."""
    match format_of(path):
        case "jsonl":
            from mcp_memory.stores.jsonl import JsonlStore

            return JsonlStore(path, durability=durability)
        case "journal":
            raise StoreFault(
                f"{path} is a journal of the Rust server, which this version cannot open. It was not touched. "
                "Choose another --memory-file, ending in .db for a database or .jsonl for the official format."
            )
        case _:
            from mcp_memory.stores.sqlite import SqliteStore

            return SqliteStore(path, durability=durability)


def open_space(
    path: str | os.PathLike[str],
    *,
    durability: str = "normal",
    limits: Limits | None = None,
    roots: tuple[str, ...] = (),
) -> Space:
    """The space kept in this file, which is created when something is first written to it."""
    return Space(store_for(os.path.abspath(os.fspath(path)), durability), limits=limits, roots=roots)


def space_for(settings: Settings) -> Space:
    return open_space(
        settings.path, durability=settings.durability, limits=settings.limits, roots=settings.allowed_roots
    )


def desk_for(settings: Settings) -> Desk:
    """The space of these settings, and the tools they offer on it."""
    from mcp_memory.desk import Desk
    from mcp_memory.tools.catalog import catalog

    tools = catalog(settings.profile, settings.tools, settings.read_only)
    return Desk(space_for(settings), tools, settings.limits)
