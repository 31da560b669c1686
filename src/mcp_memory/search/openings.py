"""Who was opened or related, until it is written down: what is in use is not stale, searched for or not.

Only the documented counts of access grow by it. The ranking weighs what followed a search (`search/usage.py`), and
what is noted there is not counted here again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from mcp_memory.search.uses import USES

# Written down so often at most, or when there are so many: whether something is stale is told by days.
WRITTEN_EVERY, MOST_WAITING = 60.0, 1000


class Openings:
    """What waits to be written. Any thread may note."""

    def __init__(self, clock: Callable[[], float], wake: Callable[[], None]) -> None:
        """`wake` asks for a quiet moment, in which somebody takes them."""
        self._clock = clock
        self._wake = wake
        self._names: list[str] = []
        self._woke = -inf

    def note(self, names: Iterable[str]) -> None:
        self._names += names  # one step, whatever other threads do
        now = self._clock()
        if self._names and (now - self._woke > WRITTEN_EVERY or len(self._names) > MOST_WAITING):
            self._woke = now
            self._wake()

    def waiting(self) -> Counter[str]:
        return Counter(self._names)

    def take(self) -> Counter[str]:
        names, self._names = self._names, []
        return Counter(names)


def used_by(tool: Any, values: tuple[Any, ...]) -> list[str]:
    """The entities that a call opened, extended or related."""
    names_in = USES.get(tool.name)
    if names_in is None:
        return []
    return names_in(dict(zip(tool.names, values, strict=True)))
