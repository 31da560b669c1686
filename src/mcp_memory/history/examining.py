"""Is a feed in order? One pass over it, which is also its replay.

It must go on without a gap, calls must be whole, and what stands beside an entry must be what it altered."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from mcp_memory.changes import Entry, encode_was
from mcp_memory.graph import Graph
from mcp_memory.history.images import was
from mcp_memory.history.telling import Telling

MIX = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


class Examination:
    """The graph that a feed leads to, what is wrong with the feed, and the fingerprint its index must have."""

    def __init__(self, floor: int, indexed: int) -> None:
        """`floor`: the last entry of the beginning; `indexed`: the last one that the index by entity must know."""
        self.graph = Graph()
        self.wrong: list[str] = []
        self.stale: list[int] = []  # entries beside which something else stands than what they altered
        self.fingerprint = Fingerprint()
        self._floor = floor
        self._indexed = indexed
        self._last: int | None = None

    def take(self, feed: Iterable[Entry]) -> None:
        for number, pieces in groupby(feed, key=lambda entry: entry.call):
            self._take_call(number, list(pieces))

    def _take_call(self, number: int, pieces: list[Entry]) -> None:
        for part, entry in enumerate(pieces):
            if self._last is not None and entry.seq != self._last + 1:
                self.wrong.append(f"entry {entry.seq} follows entry {self._last}")
            self._last = entry.seq
            if entry.part != part:
                self.wrong.append(f"call {number} has piece {entry.part} where piece {part} belongs")
            elif (entry.tool, entry.origin, entry.at) != (pieces[0].tool, pieces[0].origin, pieces[0].at):
                self.wrong.append(f"call {number} has a piece that is of another call")
            if entry.seq > self._floor:
                self._compare(entry)
        self.graph.apply(pieces)

    def _compare(self, entry: Entry) -> None:
        found = was(self.graph, entry.changes)
        if (found is None) != (entry.was is None) or (found and encode_was(found) != encode_was(entry.was)):
            self.stale.append(entry.seq)
        if entry.seq <= self._indexed:
            for entity_id in subjects(entry):
                self.fingerprint.add(entity_id, entry.seq)


def subjects(entry: Entry) -> set[int]:
    """The entities that an entry is about."""
    telling = Telling(entry, str)
    return {entity_id for change in entry.changes for entity_id in telling.subjects(change)}


class Fingerprint:
    """A set of pairs in two numbers, in whatever order they come."""

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0

    def add(self, entity_id: int, seq: int) -> None:
        self.count += 1
        mixed = ((entity_id * MIX) ^ (seq * 0xC2B2AE3D27D4EB4F)) & MASK
        self.sum = (self.sum + ((mixed ^ (mixed >> 29)) * MIX & MASK)) & MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fingerprint) and (self.count, self.sum) == (other.count, other.sum)

    __hash__ = None  # type: ignore[assignment]
