"""Facts by id, most of them packed: a graph of a million entities is bytes, not a million objects.

A shelf reads like a mapping in order of id. Packed facts are decoded when asked for and forgotten
again; a fact that was added or altered stays as an object over the packed one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from operator import attrgetter
from typing import Generic, TypeVar

from mcp_memory.facts import Entity, Relation

F = TypeVar("F", Entity, Relation)

by_id = attrgetter("id")

# All facts are read so many at a time: half the time of one by one, and little more memory.
CHUNK = 4096


class Packed(Generic[F]):
    """Facts as bytes, in order of id: row after row. How a row is read, its kind says."""

    __slots__ = ("_first", "_is_dense", "_rows_by_id", "_span", "ids")

    def __init__(self, ids: Sequence[int], rows_by_id: Sequence[int] | None = None) -> None:
        """`rows_by_id`: for each id from the first on its row + 1, or 0 where there is no such id."""
        self.ids = ids
        self._first = ids[0] if len(ids) else 0
        self._is_dense = isinstance(ids, range)
        self._rows_by_id = rows_by_id
        self._span = 0 if not len(ids) else ids[-1] - self._first + 1

    def row(self, fact_id: int) -> int | None:
        """Where a fact stands, or None."""
        place = fact_id - self._first
        if not 0 <= place < self._span:
            return None
        if self._is_dense:
            return place
        if self._rows_by_id is not None:
            return self._rows_by_id[place] - 1 if self._rows_by_id[place] else None
        row = bisect_left(self.ids, fact_id)
        return row if self.ids[row] == fact_id else None

    def at(self, row: int) -> F:
        raise NotImplementedError

    def at_rows(self, rows: Sequence[int]) -> list[F]:
        return list(map(self.at, rows))

    def between_rows(self, start: int, end: int) -> Iterable[F]:
        raise NotImplementedError

    def rows(self, ids: Sequence[int]) -> list[int] | None:
        """Where these stand, all of which are here and in order; None if it takes longer to tell than to look."""
        first = self._first
        return [fact_id - first for fact_id in ids] if self._is_dense else None

    def between(self, first: int, last: int) -> Iterable[F]:
        """The facts with first <= id < last, in order."""
        return self.between_rows(bisect_left(self.ids, first), bisect_left(self.ids, last))

    def every(self) -> Iterator[F]:
        """All of them, in order."""
        for start in range(0, len(self.ids), CHUNK):
            yield from self.between_rows(start, min(start + CHUNK, len(self.ids)))


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

    def many(self, ids: Sequence[int]) -> list[F]:
        """The facts with these ids, which are in order and all here. At once, they take half the time."""
        packed, live = self.packed, self.live
        if ids and ids[0] in live:
            with suppress(KeyError):
                return list(map(live.__getitem__, ids))
        # What came back from a deletion may be older than everything packed.
        is_packed = packed is not None and ids and packed.ids[0] <= ids[0] and ids[-1] <= packed.ids[-1]
        if packed is not None and is_packed and self.covered.isdisjoint(ids):
            rows = packed.rows(ids)
            if rows is not None:
                return packed.at_rows(rows)
        return list(map(self.__getitem__, ids))

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


# So many names are kept at hand besides those that changed.
MOST_AT_HAND = 65_536


class Names(dict[str, "int | None"]):
    """Ids by name: what the base knows, and over it what was named, or lost its name, since.

    `names[name]` is the id, or None. The dictionary holds what changed and what was asked for lately: asked
    again, a name is found without a step of Python."""

    def __init__(self, find: Callable[[str], int | None] | None = None, count: int = 0) -> None:
        super().__init__()
        self._find = find or _nobody
        self._count = count
        self._changed: dict[str, int | None] = {}

    def __missing__(self, name: str) -> int | None:
        found = self._find(name)
        if found is not None:
            if super().__len__() >= len(self._changed) + MOST_AT_HAND:
                self.clear()
                self.update(self._changed)
            self[name] = found
        return found

    def name(self, name: str, entity_id: int) -> None:
        self._changed[name] = self[name] = entity_id

    def unname(self, name: str) -> None:
        self._changed[name] = self[name] = None

    def get(self, name: str, default: int | None = None) -> int | None:  # type: ignore[override]
        found = self[name]
        return default if found is None else found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self[name] is not None

    def __len__(self) -> int:
        now = sum(entity_id is not None for entity_id in self._changed.values())
        return self._count + now - sum(self._find(name) is not None for name in self._changed)


def _nobody(name: str) -> None:
    """What an empty base finds."""
