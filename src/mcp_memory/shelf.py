"""Facts by id, most of them packed: a graph of a million entities is bytes, not a million objects.

A shelf reads like a mapping in order of id. Packed facts are decoded when asked for and forgotten
again; a fact that was added or altered stays as an object over the packed one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from operator import attrgetter
from typing import Any, Generic, TypeVar

from mcp_memory.facts import Entity, Relation

F = TypeVar("F", Entity, Relation)

by_id = attrgetter("id")

# All facts are decoded so many at a time: half the time of one by one, and little more memory.
CHUNK = 4096


class Packed(Generic[F]):
    """Encoded facts, one after the other, with their ids in order and the offset at which each begins."""

    __slots__ = ("_decode", "_decode_list", "_first", "_is_dense", "blob", "ids", "offsets")

    def __init__(
        self,
        ids: Sequence[int],
        offsets: Sequence[int],
        blob: Any,
        decode: Callable[[Any], F],
        decode_list: Callable[[Any], list[F]],
    ) -> None:
        self.ids = ids
        self.offsets = offsets
        self.blob = blob
        self._decode: Callable[[Any], F] = decode
        self._decode_list: Callable[[Any], list[F]] = decode_list
        self._first = ids[0] if len(ids) else 0
        self._is_dense = len(ids) > 0 and ids[-1] - self._first + 1 == len(ids)

    def row(self, fact_id: int) -> int | None:
        """Where a fact stands, or None."""
        if self._is_dense:
            row = fact_id - self._first
            return row if 0 <= row < len(self.ids) else None
        row = bisect_left(self.ids, fact_id)
        return row if row < len(self.ids) and self.ids[row] == fact_id else None

    def at(self, row: int) -> F:
        fact: F = self._decode(self.blob[self.offsets[row] : self.offsets[row + 1]])
        return fact

    def between(self, first: int, last: int) -> list[F]:
        """The facts with first <= id < last, in order."""
        return self._rows(bisect_left(self.ids, first), bisect_left(self.ids, last))

    def every(self) -> Iterator[F]:
        """All of them, in order."""
        for start in range(0, len(self.ids), CHUNK):
            yield from self._rows(start, min(start + CHUNK, len(self.ids)))

    def _rows(self, start: int, end: int) -> list[F]:
        # Facts one after the other are a list but for its head: msgpack's mark of an array, and its length.
        head = b"\xdd" + (end - start).to_bytes(4, "big")
        facts: list[F] = self._decode_list(head + self.blob[self.offsets[start] : self.offsets[end]])
        return facts


class Shelf(Generic[F]):
    """Facts by id, in order of id."""

    __slots__ = ("_in_order", "_last", "covered", "live", "packed")

    def __init__(self, packed: Packed[F] | None = None) -> None:
        self.packed: Packed[F] | None = packed if packed is not None and len(packed.ids) else None
        self.live: dict[int, F] = {}
        self.covered: set[int] = set()  # packed ids that are live now, or gone
        self._last = 0
        self._in_order = True

    def get(self, fact_id: int, default: F | None = None) -> F | None:
        fact = self.live.get(fact_id)
        if fact is None and self.packed is not None and fact_id not in self.covered:
            row = self.packed.row(fact_id)
            if row is not None:
                return self.packed.at(row)
        return default if fact is None else fact

    def __getitem__(self, fact_id: int) -> F:
        fact = self.get(fact_id)
        if fact is None:
            raise KeyError(fact_id)
        return fact

    def __contains__(self, fact_id: int) -> bool:
        if fact_id in self.live:
            return True
        return self.packed is not None and fact_id not in self.covered and self.packed.row(fact_id) is not None

    def mutable(self, fact_id: int) -> F:
        """A fact to be altered in place: from now on it is kept as an object."""
        fact = self.live.get(fact_id)
        if fact is None:
            fact = self[fact_id]
            self.add(fact)
        return fact

    def add(self, fact: F) -> None:
        if fact.id < self._last:
            self._in_order = False
        else:
            self._last = fact.id
        self.live[fact.id] = fact
        if self.packed is not None and self.packed.row(fact.id) is not None:
            self.covered.add(fact.id)

    def pop(self, fact_id: int) -> F:
        fact = self[fact_id]
        self.live.pop(fact_id, None)
        if self.packed is not None and self.packed.row(fact_id) is not None:
            self.covered.add(fact_id)
        return fact

    def __len__(self) -> int:
        return len(self.live) + (0 if self.packed is None else len(self.packed.ids) - len(self.covered))

    def __iter__(self) -> Iterator[int]:
        """Every id, in order."""
        live = self._live_ids()
        if self.packed is None:
            return iter(live)
        covered = self.covered
        packed = self.packed.ids if not covered else (i for i in self.packed.ids if i not in covered)
        return merge(packed, live) if live else iter(packed)

    def _live_ids(self) -> list[int]:
        if not self._in_order:
            self.live = dict(sorted(self.live.items()))
            self._in_order = True
            self._last = next(reversed(self.live), 0)
        return list(self.live)

    def keys(self) -> set[int]:
        return set(self)

    def values(self) -> Iterator[F]:
        """Every fact, in order of id."""
        live = list(map(self.live.__getitem__, self._live_ids()))
        if self.packed is None:
            return iter(live)
        packed = self.packed.every()
        if self.covered:
            packed = (fact for fact in packed if fact.id not in self.covered)
        return merge(packed, live, key=by_id) if live else packed

    def between(self, first: int, last: int) -> Iterator[F]:
        """The facts with first <= id < last, in order."""
        found = [self.live[fact_id] for fact_id in range(first, last) if fact_id in self.live]
        if self.packed is not None:
            found += [fact for fact in self.packed.between(first, last) if fact.id not in self.covered]
        return iter(sorted(found, key=by_id))
