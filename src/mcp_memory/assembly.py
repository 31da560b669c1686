"""How the parts become a server: a file gets its store, a store its space, a space its desk.

Nothing is opened here. A store opens its file at the first call that needs it, so a client has its
answer to `initialize` before a fact is read, and a file in trouble is told about in an answer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mcp_memory.errand import Turns
from mcp_memory.facts import Customs, Limits
from mcp_memory.space import KEEP_ALL, Space
from mcp_memory.stores.formats import format_of
from mcp_memory.stores.store import Retention, Store, StoreFault

if TYPE_CHECKING:
    from mcp_memory.desk import Desk
    from mcp_memory.settings import Settings
    from mcp_memory.tools.registry import Tool


def store_for(path: str, durability: str = "normal") -> Store:
    """The store that this file is, or will be."""
    return store_of(format_of(path), path, durability)


def store_of(kind: str, path: str, durability: str = "normal", **options: Any) -> Store:
    """A store of this format, whatever the name of the file says."""
    match kind:
        case "jsonl":
            from mcp_memory.stores.jsonl import JsonlStore

            return JsonlStore(path, durability=durability, **options)
        case "journal":
            from mcp_memory.stores.journal import JournalStore

            return JournalStore(path, durability=durability, **options)
        case "history":
            raise StoreFault(
                f"{path} is an export with history, not a memory to work with. Take it over into one: "
                f"mcp-memory -f memory.db import {path}"
            )
        case "remains":
            raise StoreFault(
                f"{path} is what was taken out of a damaged journal, not a memory to work with. What of it is records "
                f"can be taken over into one: mcp-memory -f memory.mcpmem import {path}"
            )
        case _:
            from mcp_memory.stores.sqlite import SqliteStore

            return SqliteStore(path, durability=durability, **options)


def open_space(
    path: str | os.PathLike[str],
    *,
    durability: str = "normal",
    limits: Limits | None = None,
    roots: tuple[str, ...] = (),
    keeps_usage: bool = True,
    query_log: int = 5000,
    retention: Retention = KEEP_ALL,
    model: str = "auto",
    flags: bool = False,
    customs: Customs | None = None,
    heavy: Turns | None = None,
    requires_model: bool = False,
) -> Space:
    """The space kept in this file, which is created when something is first written to it.

    `flags`: observations that repeat what an entity knows are flagged behind the calls."""
    store = store_for(os.path.abspath(os.fspath(path)), durability)
    return Space(
        store,
        limits=limits,
        roots=roots,
        keeps_usage=keeps_usage,
        query_log=query_log,
        retention=retention,
        model=model,
        flags=flags,
        customs=customs,
        heavy=heavy,
        requires_model=requires_model,
    )


def space_for(settings: Settings) -> Space:
    return open_space(
        settings.path,
        durability=settings.durability,
        limits=settings.limits,
        roots=settings.allowed_roots,
        keeps_usage=not settings.read_only,
        query_log=0 if settings.no_query_log else settings.query_log,
        flags=settings.profile != "official" and not settings.read_only,
        retention=Retention(settings.history_days, settings.history_calls),
        customs=settings.customs,
        heavy=Turns(settings.heavy_tool_max_concurrency, settings.heavy_tool_acquire_timeout_seconds),
        model=settings.model,
        requires_model=settings.require_model,
    )


def tools_for(settings: Settings) -> dict[str, Tool]:
    """What these settings offer, by every name it may be called by."""
    from mcp_memory.tools.catalog import ALSO_KNOWN_AS, catalog

    tools = catalog(settings.profile, settings.tools, settings.read_only)
    return tools | {alias: tools[name] for alias, name in ALSO_KNOWN_AS.items() if name in tools}


def desk_for(settings: Settings) -> Desk:
    """The space of these settings, and the tools they offer on it."""
    from mcp_memory.desk import Desk

    tools = tools_for(settings)
    space = space_for(settings)
    space.meaning.follows_writes = any(tool.is_search for tool in tools.values())
    return Desk(space, tools, settings.limits, plain_errors=settings.profile == "official")
