"""Tools about what was: who changed what and when, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

from msgspec import Meta

from mcp_memory.changes import Entry, Plan
from mcp_memory.facts import BadInput, MemoryFault
from mcp_memory.history.moments import beginning, end
from mcp_memory.history.past import Past
from mcp_memory.quoting import quoted
from mcp_memory.stores.store import Calls
from mcp_memory.tools.inputs import Count, Query
from mcp_memory.tools.registry import tool

# Lines told of one call in a list of calls, and of one call alone.
FEW_LINES, MANY_LINES = 5, 100
# A search for a text looks through so many calls, then says where it has come.
MOST_LOOKED_THROUGH = 2000
Page = Annotated[int, Meta(ge=1, le=200)]


@tool
def history(
    past: Past,
    name: str = "",
    relation_id: int | None = None,
    call: int | None = None,
    by: str = "",
    tool: str = "",
    query: Query = "",
    since: str = "",
    until: str = "",
    before: int | None = None,
    limit: Page = 20,
) -> dict[str, Any]:
    """Who changed what and when, newest first: everything, or about one entity (also a deleted one) or relation.
    by is a client's name, query a text; call shows one call in full. before goes on where an answer ended.
    Reading tools show the memory as it was with as_of: a call's number or a time (UTC)."""
    if call is not None:
        return {"calls": [_whole(past, call)]}
    about = _about(past, name, relation_id)
    wanted = _wanted(about, by, tool, since, until, before)
    found: list[dict[str, Any]] = []
    looked_through = 0
    words = query.casefold()
    last = None
    for entry in _one_a_call(past.calls(wanted)):
        if len(found) == limit or looked_through == MOST_LOOKED_THROUGH:
            return {"calls": found, "before": last}
        looked_through += 1
        last = entry.call
        lines = _first(past.lines(entry, about, relation_id))
        if relation_id is not None and not lines:
            continue
        if words and not past.says(entry, words, about, relation_id):
            continue
        found.append(_told(past, entry, lines))
    return {"calls": found}


def _about(past: Past, name: str, relation_id: int | None) -> set[int] | None:
    """The entities that are meant; None for everything."""
    about: set[int] | None = None
    if name:
        about = past.entities_named(name)
        if not about:
            raise MemoryFault(f"No entity is or was named {name!r}; search_nodes may find it under another name.")
    relation = None if relation_id is None else past.graph.relations.get(relation_id)
    if relation is not None:
        about = {relation.source} if about is None else about
    return about


def _wanted(about: set[int] | None, by: str, tool: str, since: str, until: str, before: int | None) -> Calls:
    return Calls(before, about, by, tool, beginning(since, "since"), end(until, "until"))


def _one_a_call(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Pieces of one call come one after the other: the first of them stands for it."""
    previous = None
    for entry in entries:
        if entry.call != previous:
            yield entry
        previous = entry.call


def _first(lines: Iterator[str]) -> list[str]:
    """As many as are told, and one that says there are more: a call can have done thousands of things."""
    return list(islice(lines, FEW_LINES + 1))


def _told(past: Past, entry: Entry, lines: list[str]) -> dict[str, Any]:
    """A call in a list: what it did, cut short."""
    told = {"call": entry.call, "at": entry.at, "by": entry.origin, "tool": entry.tool, "did": lines[:FEW_LINES]}
    size = past.history.size_of(entry)
    if len(lines) > FEW_LINES or entry.part or size > len(entry.changes):
        told["more"] = size - min(len(lines), FEW_LINES)
    return told


def _whole(past: Past, number: int) -> dict[str, Any]:
    entries = past.call(number)
    lines = list(islice((line for entry in entries for line in past.lines(entry)), MANY_LINES))
    first = entries[0]
    told = {"call": first.call, "at": first.at, "by": first.origin, "tool": first.tool, "did": lines}
    changes = sum(len(entry.changes) for entry in entries)
    return told | ({"more": changes - len(lines)} if changes > len(lines) == MANY_LINES else {})


@tool(destructive=True, scope="admin")
def undo(past: Past, call: int | None = None, last: Count = 1) -> Plan:
    """Take back the last call that changed something, the last n, or one by its number in history. An undo is a call
    too: undoing it brings everything back. Refused, with the reason, where later calls build on it."""
    if call is not None and last != 1:
        raise BadInput("Give call, to take back that one alone, or last, to take back so many; not both.")
    if call is not None:
        entry, changes = past.undoing(call)
        undone = [entry]
    else:
        undone, changes = past.undoing_last(last)
        _refuse_those_of_others(past, undone)
    told = [_told(past, entry, _first(past.lines(entry))) for entry in undone]
    return Plan(changes, {"undone": told, "call": past.graph.seq + 1})


def _refuse_those_of_others(past: Past, undone: list[Entry]) -> None:
    """Nobody takes back what somebody else did without knowing it."""
    for entry in undone:
        if entry.origin != past.origin:
            who = quoted(entry.origin) if entry.origin else "somebody unnamed"
            raise BadInput(
                f"Call {entry.call} ({entry.tool}, {entry.at}) was made by {who}, not "
                f"by you. To take it back all the same name it, with call: {entry.call}; history shows what it did."
            )
