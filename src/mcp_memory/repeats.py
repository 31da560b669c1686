"""A write that its client may send again, because it never saw the answer: was it made already?

The law: what says that a request was made is committed with what it made, or neither is. So whoever asks again after
a crash, or asks another process on the same memory, is told that it was made, and it is not made twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.changes import Plan, RequestNoted
from mcp_memory.facts import Interruption
from mcp_memory.search.times import seconds_of

if TYPE_CHECKING:
    from mcp_memory.graph import Graph
    from mcp_memory.stores.store import History

KEPT_SECONDS = 3600.0  # so long a request can be asked for again
MOST_ENTRIES = 1000  # and at most so many entries of the feed later
MADE_BEFORE = (
    "This call was made before, under the same mcp-memory/requestKey, and is not made again. What it answered is no "
    "longer known; the history tells what it changed, under the number of the call."
)

_here = threading.local()


class Request(NamedTuple):
    """What a client calls a write by, and what tells that it is the same one."""

    key: bytes
    fingerprint: bytes


class KeyReused(Interruption):
    """The key was used for another call."""


@contextmanager
def asked_as(request: Request) -> Iterator[None]:
    """Until this is left, what is committed in this thread is committed for this request."""
    _here.request = request
    try:
        yield
    finally:
        _here.request = None


def asked() -> Request | None:
    """The request that this thread works for, if its client gave it a key."""
    request: Request | None = getattr(_here, "request", None)
    return request


class Repeats:
    """The requests that were made lately, as the feed tells."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._seen = 0
        self._made: OrderedDict[bytes, tuple[bytes, int, str]] = OrderedDict()

    @property
    def is_ready(self) -> bool:
        """Has the feed been looked through? That takes a moment, once: 40 ms for the last 1,000 entries."""
        return self._seen > 0

    def once(self, planner: Callable[[Graph], Plan], request: Request, now: str) -> Callable[[Graph], Plan]:
        """The same planner; but what was made already is not planned again. To be called with the store at hand."""

        def plan(graph: Graph) -> Plan:
            made = self._find(request, now)
            if made is not None:
                return Plan([], made)
            proposed = planner(graph)
            if not proposed.changes:
                return proposed
            return Plan([*proposed.changes, RequestNoted(*request)], proposed.answer)

        return plan

    def _find(self, request: Request, now: str) -> object | None:
        self._catch_up()
        fingerprint, call, at = self._made.get(request.key, (b"", 0, ""))
        if not call or (seconds_of(at) or 0) < (seconds_of(now) or 0) - KEPT_SECONDS:
            return None
        if fingerprint != request.fingerprint:
            raise KeyReused
        return {"repeated": {"call": call, "at": at}, "note": MADE_BEFORE}

    def _catch_up(self) -> None:
        last = self._history.last
        if last < self._seen:  # another file is in the place of the one we knew
            self._seen = 0
            self._made.clear()
        for entry in self._history.noted(max(self._seen, last - MOST_ENTRIES)):
            for change in entry.changes:
                if isinstance(change, RequestNoted):
                    self._made[change.key] = (change.fingerprint, entry.call, entry.at)
                    self._made.move_to_end(change.key)
        self._seen = last
        while len(self._made) > MOST_ENTRIES:
            self._made.popitem(last=False)
