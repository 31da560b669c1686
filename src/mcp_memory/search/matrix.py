"""Vectors of length 1 in rows, each with the fact it belongs to, scanned whole: exact, and nothing to build.

A row stands twice: in bytes with a scale of its own, which is what a scan reads, and in half precision, which
scores the best of a scan once more. A search wants every cosine (`scores`); who wants the nearest alone (`nearest`) is
told by the signs which rows of a very large matrix are worth a look. docs/decisions/0009-numkong.md has the figures.
Only cosines come out. Not safe for threads: whoever shares it has a lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import acos, pi, sqrt
from typing import Any, NamedTuple

from mcp_memory.embedding.numerics import Floats, highest, numpy, scanner

# What a scan finds is scored again exactly, so many times what was asked for: a byte a number misplaces
# near-equals only.
SPARE, FEWEST = 5, 50
# The rows of a whole scan that score so near the best are scored again: what a byte a number may misplace among them.
NEAR_BEST = 0.02
# From so many rows on, signs are compared first, and so many rows are then scanned. Signs cost an eighth.
MANY_ROWS, PROMISING = 300_000, 8000
SURE = 3.0  # standard deviations
FIRST_ROOM = 256
NOBODY = 0  # the id of a row that holds nothing any more; real ids start at 1
# Ids below this have a place in a table; it costs memory only where ids are.
MOST_DIRECT = 1 << 28

Array = Any


class Table(NamedTuple):
    """A matrix as it lies in a file. The numbers may be mapped, and are never altered there."""

    ids: Array
    keys: Array
    owners: Array
    scales: Array
    numbers: Array  # bytes
    halves: Array


class Column:
    """Rows of numbers: the first may lie in a mapped file, the others are added behind them."""

    def __init__(self, first: Array) -> None:
        self._first = first
        self._more = first[:0].copy()

    def part(self, used: int) -> list[Array]:
        return [part for part in (self._first, self._more[: used - len(self._first)]) if len(part)]

    def get(self, rows: Array) -> Array:
        np = numpy()
        if not len(self._more):
            return self._first[rows]
        inside = rows < len(self._first)
        found = np.empty((len(rows), *self._first.shape[1:]), self._first.dtype)
        found[inside] = self._first[rows[inside]]
        found[~inside] = self._more[rows[~inside] - len(self._first)]
        return found

    def put(self, rows: Array, values: Array) -> None:
        inside = rows < len(self._first)
        self._first[rows[inside]] = values[inside]
        self._more[rows[~inside] - len(self._first)] = values[~inside]

    def grow(self, room: int) -> None:
        np = numpy()
        more = np.zeros((room - len(self._first), *self._first.shape[1:]), self._first.dtype)
        more[: len(self._more)] = self._more
        self._more = more


class Matrix:
    """Rows that come and go. `generation` is another one whenever a row got another place."""

    def __init__(self, dimension: int, table: Table | None = None) -> None:
        np = numpy()
        self.dimension = dimension
        self.generation = 0
        self._used = self._room = 0 if table is None else len(table.ids)
        self._free: list[int] = []
        self._places = np.zeros(FIRST_ROOM, np.int32)  # by id: its row and one more; 0 for none
        self._odd: dict[int, int] = {}  # the same for ids that are too large for a table
        self._signs: Array = None
        if table is None:
            whole, empty = np.zeros(0, np.int64), np.zeros((0, dimension))
            table = Table(whole, whole, whole, np.zeros(0, np.float32), empty.astype("i1"), empty.astype("f2"))
        self._ids, self._keys, self._owners, self._scales = (Column(np.array(each)) for each in table[:4])
        self._bytes, self._halves = Column(table.numbers), Column(table.halves)
        self._stand(table.ids)

    def _stand(self, ids: Array) -> None:
        np = numpy()
        rows = np.arange(1, len(ids) + 1, dtype=np.int32)
        direct = (ids > NOBODY) & (ids < MOST_DIRECT)
        if direct.any():
            self._places = np.zeros(int(ids[direct].max()) + FIRST_ROOM, np.int32)
            self._places[ids[direct]] = rows[direct]
        self._odd = dict(zip(ids[ids >= MOST_DIRECT].tolist(), rows[ids >= MOST_DIRECT].tolist(), strict=True))
        self._free = np.flatnonzero(ids == NOBODY).tolist()

    def pieces(self, rows: Array, size: int = 16384) -> Iterator[Callable[[], Array]]:
        """These rows as they go into a file, column by column; each piece is read when it is called for."""
        for column in (self._ids, self._keys, self._owners, self._scales, self._bytes, self._halves):
            for start in range(0, len(rows), size):
                yield partial(column.get, rows[start : start + size])

    def __len__(self) -> int:
        return self._used - len(self._free)

    def __contains__(self, ident: int) -> bool:
        return self._place(ident) >= 0

    @property
    def ids(self) -> Array:
        """The id of each row; NOBODY where there is none."""
        return self._whole(self._ids)

    def _whole(self, column: Column) -> Array:
        parts = column.part(self._used)
        return parts[0] if len(parts) == 1 else numpy().concatenate(parts) if parts else column.get(slice(0, 0))

    # ── coming and going ─────────────────────────────────────────────────────────────────────────

    def put(self, ids: Sequence[int], vectors: Floats, keys: Sequence[int] = (), owners: Sequence[int] = ()) -> None:
        """Take in a row for each id, in place of the one it had."""
        np = numpy()
        if not len(ids):
            return
        rows = np.array([self._new_place(ident) for ident in ids], np.int64)
        largest = np.maximum(np.abs(vectors).max(axis=1), 1e-12)
        self._bytes.put(rows, np.rint(vectors * (127.0 / largest)[:, None]).astype(np.int8))
        self._scales.put(rows, (largest / 127.0).astype(np.float32))
        self._halves.put(rows, vectors.astype(np.float16))
        self._ids.put(rows, np.array(ids, np.int64))
        self._keys.put(rows, np.array(keys or [0] * len(rows), np.int64))
        self._owners.put(rows, np.array(owners or [0] * len(rows), np.int64))
        if self._signs is not None:
            self._signs[:, rows] = _signs_of(vectors)
        self.generation += 1

    def _new_place(self, ident: int) -> int:
        row = self._place(ident)
        if row < 0:
            if self._free:
                row = self._free.pop()
            else:
                if self._used == self._room:
                    self._grow()
                row = self._used
                self._used += 1
            self._set_place(ident, row + 1)
        return row

    def _place(self, ident: int) -> int:
        if ident < len(self._places):
            return int(self._places[ident]) - 1
        return self._odd.get(ident, 0) - 1

    def _set_place(self, ident: int, place: int) -> None:
        if ident >= MOST_DIRECT:
            self._odd[ident] = place
            return
        if ident >= len(self._places):
            more = numpy().zeros(max(ident + 1, len(self._places) * 2), "i4")
            more[: len(self._places)] = self._places
            self._places = more
        self._places[ident] = place

    def _grow(self) -> None:
        self._room = max(FIRST_ROOM, self._room * 3 // 2)
        for column in (self._ids, self._keys, self._owners, self._scales, self._bytes, self._halves):
            column.grow(self._room)
        self._signs = None  # made anew when they are asked for

    def drop(self, ids: Iterable[int]) -> None:
        """Forget these; unknown ones are passed over."""
        np = numpy()
        rows = [row for ident in ids if (row := self._place(ident)) >= 0]
        for ident, row in zip(self._ids.get(np.array(rows, np.int64)).tolist(), rows, strict=True):
            self._set_place(ident, 0)
            self._free.append(row)
        if rows:
            gone = np.array(rows, np.int64)
            self._ids.put(gone, np.full(len(rows), NOBODY, np.int64))
            self._owners.put(gone, np.zeros(len(rows), np.int64))
            self._scales.put(gone, np.zeros(len(rows), np.float32))  # they score 0 from now on
            self.generation += 1

    # ── whose they are ───────────────────────────────────────────────────────────────────────────

    def of_owners(self, owners: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """Ids, keys and owners of what these own."""
        np = numpy()
        rows = np.flatnonzero(np.isin(self._whole(self._owners), np.array(owners, np.int64)))
        ids, keys, whose = self._ids.get(rows), self._keys.get(rows), self._owners.get(rows)
        return ids.tolist(), keys.tolist(), whose.tolist()

    def give(self, ids: Sequence[int], owners: Sequence[int]) -> None:
        """They belong to others now."""
        self._owners.put(self.rows(ids), numpy().array(owners, "i8"))

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    def rows(self, ids: Sequence[int]) -> Array:
        """The row of each id; -1 for one that has none. They hold for this generation."""
        np = numpy()
        wanted = np.asarray(ids, np.int64)
        found = np.full(len(wanted), -1, np.int64)
        direct = (wanted >= 0) & (wanted < len(self._places))
        found[direct] = self._places[wanted[direct]] - 1
        if self._odd:
            for at in np.flatnonzero(~direct).tolist():
                found[at] = self._odd.get(int(wanted[at]), 0) - 1
        return found

    def living(self) -> tuple[Array, set[int]]:
        """The rows that hold something, and their keys."""
        rows = numpy().flatnonzero(self.ids != NOBODY)
        return rows, set(self._keys.get(rows).tolist())

    def all_owners(self) -> set[int]:
        return set(self._whole(self._owners).tolist()) - {NOBODY}

    def vectors(self, rows: Array) -> Floats:
        found: Floats = self._halves.get(rows).astype(numpy().float32)
        return found

    def scores(self, query: Floats) -> Array:
        """The cosine of every row with a vector of length 1, to about a thousandth; of the best ones exactly."""
        np = numpy()
        whole, scale = _in_bytes(query)
        scan = scanner()
        found = [scan(whole, part) for part in self._bytes.part(self._used)]
        scores = np.concatenate(found) if len(found) != 1 else found[0]
        scores *= self._whole(self._scales)
        scores *= scale
        best = np.flatnonzero(scores >= scores.max(initial=-1.0) - np.float32(NEAR_BEST))
        if len(best) > FEWEST:
            best = best[highest(scores[best], FEWEST)]
        scores[best] = self.vectors(best) @ query.reshape(-1)
        return scores

    def nearest(self, query: Floats, most: int) -> list[tuple[int, float]]:
        """Ids with exact cosines, the best first."""
        np = numpy()
        query = query.reshape(-1)
        most = min(most, len(self))
        if most <= 0:
            return []
        rows = self._promising(query, most)
        exact = self.vectors(rows) @ query
        order = np.lexsort((self._ids.get(rows), -exact))[:most]
        return list(zip(self._ids.get(rows[order]).tolist(), exact[order].tolist(), strict=True))

    def _promising(self, query: Floats, most: int) -> Array:
        """The rows that score best by their bytes, more than so many."""
        some = min(max(most * SPARE, FEWEST), len(self))
        if len(self) >= MANY_ROWS and self.dimension % 64 == 0 and some * 20 <= PROMISING:
            rows, cut = self._of_like_signs(query)
            whole, scale = _in_bytes(query)
            scores = scanner()(whole, self._bytes.get(rows)) * self._scales.get(rows) * scale
            scores[self._ids.get(rows) == NOBODY] = -2.0
            best = highest(scores, some)
            if self._tells_enough(cut, float(numpy().sort(scores[best])[-most])):
                return rows[best]
        scores = self.scores(query)
        scores[self.ids == NOBODY] = -2.0
        return highest(scores, some)

    def _tells_enough(self, cut: int, cosine: float) -> bool:
        """Has every row of such a cosine fewer unlike signs than this? Of two directions each number tells by its sign
        with the chance of their angle on which side they are, as a coin does. Among rows that are all far away it
        does not tell: the nearest of those are found by looking at all."""
        expected = self.dimension * acos(max(-1.0, min(cosine, 1.0))) / pi
        return expected + SURE * sqrt(self.dimension) / 2 <= cut

    def _of_like_signs(self, query: Floats) -> tuple[Array, int]:
        """The rows that have the fewest signs unlike the query's, and so many unlike ones they have at most."""
        np = numpy()
        if self._signs is None:
            self._signs = self._all_signs()
        unlike = np.zeros(self._used, np.uint16)
        for column, sign in zip(self._signs, _signs_of(query[None])[:, 0], strict=True):
            unlike += np.bitwise_count(column[: self._used] ^ sign)
        often = np.bincount(unlike, minlength=self.dimension + 1).cumsum()
        cut = int(np.searchsorted(often, min(PROMISING + len(self._free), self._used)))
        return np.flatnonzero(unlike <= cut), cut

    def _all_signs(self) -> Array:
        np = numpy()
        signs = np.zeros((self.dimension // 64, max(self._room, self._used)), np.uint64)
        at = 0
        for part in self._bytes.part(self._used):
            for start in range(0, len(part), PROMISING):
                some = part[start : start + PROMISING]
                signs[:, at : at + len(some)] = _signs_of(some)
                at += len(some)
        return signs


def _in_bytes(query: Floats) -> tuple[Array, float]:
    np = numpy()
    query = query.reshape(-1)
    largest = max(float(np.abs(query).max()), 1e-12)
    return np.rint(query * (127.0 / largest)).astype(np.int8), largest / 127.0


def _signs_of(rows: Array) -> Array:
    """A bit for each number, 64 of them in one; column by column, which is how they are compared fastest."""
    np = numpy()
    return np.packbits(rows > 0, axis=1).view(np.uint64).T
