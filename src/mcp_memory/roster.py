"""Ids in order, of which any page is found without a look at what comes before it.

Most stand as a packed graph lists them and are never copied; what came and went since is kept beside."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence


class Roster:
    """Those packed without those that are gone, and those that came. All three are in order."""

    __slots__ = ("_came", "_gone", "_packed")

    def __init__(self, packed: Sequence[int], hidden: Iterable[int], live: Iterable[int]) -> None:
        """`hidden`: ids that may be packed and count only if they are live too."""
        there = set(live)
        self._packed = packed
        self._gone = sorted(each for each in set(hidden) - there if _holds(packed, each))
        self._came = sorted(each for each in there if not _holds(packed, each))

    def __len__(self) -> int:
        return len(self._packed) - len(self._gone) + len(self._came)

    def add(self, each: int) -> None:
        if _holds(self._packed, each):
            _remove(self._gone, each)
        elif not _holds(self._came, each):
            insort(self._came, each)

    def discard(self, each: int) -> None:
        if not _holds(self._packed, each):
            _remove(self._came, each)
        elif not _holds(self._gone, each):
            insort(self._gone, each)

    def page(self, offset: int, count: int) -> list[int]:
        """At most so many, from the one at this place on."""
        end = min(offset + count, len(self))
        if offset >= end:
            return []
        if not (self._gone or self._came):
            return list(self._packed[offset:end])
        first, last = self._at(offset), self._at(end - 1)
        found = set(_between(self._packed, first, last))
        found.difference_update(_between(self._gone, first, last))
        found.update(_between(self._came, first, last))
        return sorted(found)

    def _at(self, place: int) -> int:
        """The id at a place: the first with so many up to it."""
        ends = [row[at] for row in (self._packed, self._came) if row for at in (0, -1)]
        return bisect_left(range(min(ends), max(ends)), place + 1, key=self._rank) + min(ends)

    def _rank(self, each: int) -> int:
        """How many there are up to this id."""
        return bisect_right(self._packed, each) - bisect_right(self._gone, each) + bisect_right(self._came, each)


def _holds(row: Sequence[int], each: int) -> bool:
    at = bisect_left(row, each)
    return at < len(row) and row[at] == each


def _remove(row: list[int], each: int) -> None:
    at = bisect_left(row, each)
    if at < len(row) and row[at] == each:
        del row[at]


def _between(row: Sequence[int], first: int, last: int) -> Sequence[int]:
    return row[bisect_left(row, first) : bisect_right(row, last)]
