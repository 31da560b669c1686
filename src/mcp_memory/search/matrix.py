"""Vectors of length 1 in rows, each with an id, scanned whole: exact, and nothing to build.

A row stands twice: in bytes with a scale of its own, which is what a scan reads, and in half precision, which
scores the best of a scan once more. Only cosines come out. Not safe for threads: whoever shares it has a lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp_memory.embedding.numerics import Floats, numpy, scanner

# What a scan finds is scored again exactly, so many times what was asked for. A byte a number misplaces
# near-equals only: measured, the tenth best was always among the first 30.
SPARE, FEWEST = 5, 50
FIRST_ROOM = 256
NOBODY = 0  # the id of a row that holds nothing any more; real ids start at 1

Array = Any


class Matrix:
    """Rows that come and go. `generation` is another one whenever a row got another place."""

    def __init__(self, dimension: int) -> None:
        np = numpy()
        self.dimension = dimension
        self.generation = 0
        self._used = 0
        self._free: list[int] = []
        self._bytes = np.empty((FIRST_ROOM, dimension), np.int8)
        self._scales = np.zeros(FIRST_ROOM, np.float32)
        self._halves = np.empty((FIRST_ROOM, dimension), np.float16)
        self._ids = np.zeros(FIRST_ROOM, np.int64)
        self._row_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, ident: int) -> bool:
        return ident in self._row_of

    @property
    def ids(self) -> Array:
        """The id of each row; NOBODY where there is none."""
        return self._ids[: self._used]

    # ── coming and going ─────────────────────────────────────────────────────────────────────────

    def put(self, ids: Sequence[int], vectors: Floats) -> None:
        """Take in a row for each id, in place of the one it had."""
        np = numpy()
        if not len(ids):
            return
        rows = np.array([self._place(ident) for ident in ids], np.int64)
        largest = np.maximum(np.abs(vectors).max(axis=1), 1e-12)
        self._bytes[rows] = np.rint(vectors * (127.0 / largest)[:, None])
        self._scales[rows] = largest / 127.0
        self._halves[rows] = vectors
        self._ids[rows] = ids
        self.generation += 1

    def _place(self, ident: int) -> int:
        row = self._row_of.get(ident)
        if row is None:
            if self._free:
                row = self._free.pop()
            else:
                if self._used == len(self._ids):
                    self._grow()
                row = self._used
                self._used += 1
            self._row_of[ident] = row
        return row

    def _grow(self) -> None:
        np = numpy()
        room = len(self._ids) * 3 // 2
        for name in ("_bytes", "_scales", "_halves", "_ids"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def drop(self, ids: Sequence[int]) -> None:
        """Forget these; unknown ones are passed over."""
        for ident in ids:
            row = self._row_of.pop(ident, None)
            if row is not None:
                self._ids[row] = NOBODY
                self._scales[row] = 0.0  # it scores 0 from now on
                self._free.append(row)
                self.generation += 1

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    def rows(self, ids: Sequence[int]) -> Array:
        """The row of each id; -1 for one that has none. They hold for this generation."""
        np = numpy()
        find = self._row_of.get
        return np.fromiter((find(ident, -1) for ident in ids), np.int64, len(ids))

    def vectors(self, rows: Array) -> Floats:
        found: Floats = self._halves[rows].astype(numpy().float32)
        return found

    def scores(self, query: Floats) -> Array:
        """The cosine of every row with a vector of length 1, to about a thousandth."""
        np = numpy()
        query = query.reshape(-1)
        largest = max(float(np.abs(query).max()), 1e-12)
        whole = np.rint(query * (127.0 / largest)).astype(np.int8)
        scores = scanner()(whole, self._bytes[: self._used])
        scores *= self._scales[: self._used]
        scores *= largest / 127.0
        return scores

    def nearest(self, query: Floats, most: int) -> list[tuple[int, float]]:
        """Ids with exact cosines, the best first."""
        np = numpy()
        most = min(most, len(self))
        if most <= 0:
            return []
        scores = self.scores(query)
        scores[self.ids == NOBODY] = -2.0
        some = min(max(most * SPARE, FEWEST), len(self))
        rows = np.argpartition(-scores, some - 1)[:some] if some < len(scores) else np.argsort(-scores)[:some]
        exact = self.vectors(rows) @ query.reshape(-1)
        order = np.lexsort((self._ids[rows], -exact))[:most]
        return [(int(self._ids[rows[at]]), float(exact[at])) for at in order]
