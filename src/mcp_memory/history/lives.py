"""When a relation was true before it ended and became true again: a relation keeps one life, the feed all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from mcp_memory.changes import RelationRevived
from mcp_memory.stores.store import Calls

if TYPE_CHECKING:
    from mcp_memory.facts import Relation
    from mcp_memory.stores.store import History

# Of an entity that was changed more often only the latest changes are looked through.
MOST_LOOKED_THROUGH = 2000


def earlier_lives(history: History, entity: int) -> dict[int, list[dict[str, Any]]]:
    """Of the relations of this entity that became true again: from when to when they were true before, and why."""
    begun: dict[int, list[tuple[str, Relation]]] = {}  # when each began again, and as what it had ended; newest first
    for entry in islice(history.calls(Calls(entities={entity})), MOST_LOOKED_THROUGH):
        ended = {one.id: one for one in entry.was.relations} if entry.was is not None else {}
        for change in entry.changes:
            if isinstance(change, RelationRevived) and change.id in ended:
                begun.setdefault(change.id, []).append((entry.at, ended[change.id]))
    return {relation: list(_told(again[::-1])) for relation, again in begun.items()}


def _told(again: list[tuple[str, Relation]]) -> Iterator[dict[str, Any]]:
    start = again[0][1].created_at
    for at, ended in again:
        yield {"from": start, "to": ended.ended_at, **({"context": ended.context} if ended.context else {})}
        start = at
