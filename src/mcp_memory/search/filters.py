"""What a search may find at all. Filters come before any cut, so they never starve an answer."""

from __future__ import annotations

import msgspec

from mcp_memory.facts import Entity, Observation
from mcp_memory.history.moments import beginning, end
from mcp_memory.search.times import seconds_of


class Filters(msgspec.Struct, frozen=True):
    """Each as the caller named it; "" means any."""

    entity_type: str = ""
    status: str = ""
    kind: str = ""  # of the observation
    after: float | None = None  # written then or later, in seconds since 1970
    before: float | None = None  # written then or earlier

    @staticmethod
    def of(entity_type: str, status: str, kind: str, after: str, before: str) -> Filters:
        """`after` and `before` as callers write times; BadInput says how."""
        since, until = seconds_of(beginning(after, "after")), seconds_of(end(before, "before"))
        return Filters(entity_type, status, kind, since, until)

    @property
    def ask_observations(self) -> bool:
        """Do they ask anything of an observation?"""
        return bool(self.kind) or self.after is not None or self.before is not None

    def let_pass(self, entity: Entity) -> bool:
        return self.entity_type in ("", entity.entity_type) and self.status in ("", entity.status)

    def let_in(self, seen: Observation) -> bool:
        if self.kind not in ("", seen.kind):
            return False
        if self.after is None and self.before is None:
            return True
        written = seconds_of(seen.created_at) or 0.0
        return (self.after is None or written >= self.after) and (self.before is None or written <= self.before)
