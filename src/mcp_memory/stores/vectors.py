"""Where vectors are kept between runs: in the database, or in a small one beside a file of another format.

A vector is derived from its text, so losing it costs a moment of computing. It is written in small
transactions, and a file beside (`<file>-vectors`) may be deleted at any time. In a database the documented
tables of entities and reflections follow, for whoever asks them with SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from math import sqrt
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, Protocol

from mcp_memory.embedding.numerics import has_numpy, numpy
from mcp_memory.search.matrix import Table
from mcp_memory.search.vectors import ENTITY, KEYS, REFLECTION, Row
from mcp_memory.stores.sqlite.queries import Queries, read_sql
from mcp_memory.stores.sqlite.sidefile import SideFile
from mcp_memory.stores.sqlite.store import SqliteStore
from mcp_memory.stores.sqlite.vectors import fit_vectors
from mcp_memory.stores.store import MENDED, Finding
from mcp_memory.stores.vectormap import VectorMap

if TYPE_CHECKING:
    import apsw

    from mcp_memory.graph import Graph
    from mcp_memory.stores.store import Store

SQL = Queries("vectors")
SUFFIX, MAP_SUFFIX = "-vectors", "-vectormap"
# Rows read or thrown away while others may wait for the file.
AT_ONCE = 512
# A vector is of length 1, but for what half precision rounds.
LENGTH, ROUNDING = 1.0, 0.01
# How the standard library calls what numpy calls so: bytes of a number, and its letter.
FORMS = {"<f2": (2, "e"), "<f4": (4, "f")}


class Place(Protocol):
    """A database that has room for vectors."""

    @property
    def has_vectors(self) -> bool:
        """Are the documented tables there, and can they be touched?"""

    def reading(self) -> AbstractContextManager[apsw.Connection | None]: ...
    def writing(self) -> AbstractContextManager[apsw.Connection]: ...


class KeptVectors:
    """The vectors of one space between runs."""

    def __init__(
        self, place: Place, settle: Callable[[], None], may_write: bool = True, mapped: VectorMap | None = None
    ) -> None:
        """`settle` brings the documented tables up to the feed. `mapped`: where there is a feed and facts keep their
        ids, a file in which the rows of a large space are mapped."""
        self._map = mapped
        self._has_feed = mapped is not None
        self._place = place
        self._settle = settle
        self._may_write = may_write

    # ── for a search ─────────────────────────────────────────────────────────────────────────────

    def find(self, stamp: str, keys: Sequence[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for start in range(0, len(keys), AT_ONCE):
            with self._place.reading() as connection:
                if connection is None or (model := _model(connection, stamp)) is None:
                    break
                for key in keys[start : start + AT_ONCE]:
                    vector = connection.execute(SQL.find, (model, key)).get
                    if vector is not None:
                        found[key] = vector
        return found

    def keep(self, stamp: str, kind: str, rows: Sequence[Row], are_new: bool) -> None:
        is_documented = kind in (ENTITY, REFLECTION) and self._place.has_vectors
        if not self._may_write or not (are_new or is_documented):
            return
        if is_documented:
            self._settle()
            if not are_new and not self._unlike(stamp, kind, rows):
                return
        with self._place.writing() as connection:
            if are_new:
                model = _bring_model(connection, stamp, len(rows[0].numbers) // 2)
                connection.executemany(SQL.keep, [(model, row.key, row.numbers) for row in rows])
            if is_documented:
                _show(connection, stamp, kind, rows)

    def _unlike(self, stamp: str, kind: str, rows: Sequence[Row]) -> list[Row]:
        """Those that stand otherwise in the documented table, or not at all."""
        with self._place.reading() as connection:
            assert connection is not None
            if connection.execute(SQL.shown_by).get != stamp:
                return list(rows)
            shown = getattr(SQL, f"{kind}_shown")
            return [row for row in rows if connection.execute(shown, (row.ident,)).get != _whole(row.numbers)]

    def mapped(self, stamp: str, dimension: int) -> Table | None:
        return None if self._map is None else self._map.read(stamp, dimension)

    def write_map(self, stamp: str, dimension: int, rows: int, pieces: Iterator[Callable[[], Any]]) -> None:
        if self._map is not None and self._may_write:
            self._map.write(stamp, dimension, rows, pieces)

    # ── models ───────────────────────────────────────────────────────────────────────────────────

    def note_complete(self, stamp: str, seq: int) -> None:
        if self._may_write and self._has_feed:
            with self._place.writing() as connection:
                connection.execute(SQL.note_complete, (f"{stamp} {seq}",))

    def is_behind(self, stamp: str, seq: int) -> bool:
        """Did something lack its vector when this was the last entry of the feed? Costs a look at one row; where
        there is no feed only looking at every text could tell, which the first search does."""
        with self._place.reading() as connection:
            return (
                self._has_feed and connection is not None and connection.execute(SQL.complete).get != f"{stamp} {seq}"
            )

    def stamps(self) -> dict[str, int]:
        with self._place.reading() as connection:
            models = _models(connection)
            return {stamp: connection.execute(SQL.count, (model,)).get for stamp, model, _ in models if connection}

    def forget(self, stamp: str) -> None:
        more = self._may_write
        while more:
            with self._place.writing() as connection:
                model = _model(connection, stamp)
                connection.execute(SQL.forget, (model, AT_ONCE))
                more = bool(connection.changes())
                if not more:
                    connection.execute(SQL.forget_model, (model,))

    def sweep(self, stamp: str, living: Collection[int]) -> int:
        with self._place.reading() as connection:
            model = None if connection is None else _model(connection, stamp)
            rows: list[Any] = [] if model is None or connection is None else _keys(connection, model)
        dead = [(row,) for row, key in rows if key not in living]
        return self._drop(dead)

    def _drop(self, rows: Sequence[tuple[int]]) -> int:
        if not self._may_write:
            return 0
        for start in range(0, len(rows), AT_ONCE):
            with self._place.writing() as connection:
                connection.executemany(SQL.drop, rows[start : start + AT_ONCE])
        return len(rows)

    # ── the doctor ───────────────────────────────────────────────────────────────────────────────

    def check(self, graph: Graph, repair: bool) -> list[Finding]:
        """Are the vectors vectors? What the documented tables are behind is caught up with, if asked to repair."""
        findings = []
        with self._place.reading() as connection:
            damaged = [(row,) for _, model, size in _models(connection) for row in _damaged(connection, model, size)]
            astray = {kind: self._astray(connection, kind) for kind in (ENTITY, REFLECTION)}
        if damaged:
            if repair:
                self._drop(damaged)
                if self._map is not None:
                    self._map.remove()
            findings.append(
                Finding(
                    f"{len(damaged)} kept vectors are damaged; without them they are made anew", repair, remedy=MENDED
                )
            )
        for kind, wrong in astray.items():
            if wrong:
                findings.append(Finding(f"{wrong} vectors in {kind}_embeddings are damaged", repair, remedy=MENDED))
            stamp, rows = self._unshown(graph, kind) if repair else ("", [])
            if rows:
                self.keep(stamp, kind, rows, are_new=False)
                findings.append(Finding(f"{len(rows)} rows of {kind}_embeddings were behind", True, remedy=MENDED))
        return findings

    def _astray(self, connection: apsw.Connection | None, kind: str) -> int:
        """How many rows of a documented table, written by us, are no vectors of length 1."""
        if connection is None or not _is_there(connection) or not self._place.has_vectors:
            return 0
        if connection.execute(SQL.shown_by).get is None:
            return 0
        return sum(not _is_vector(row, "<f4") for (row,) in connection.execute(getattr(SQL, f"{kind}_all_shown")))

    def _unshown(self, graph: Graph, kind: str) -> tuple[str, list[Row]]:
        if not self._place.has_vectors:
            return "", []
        with self._place.reading() as connection:
            if connection is None or not _is_there(connection):
                return "", []
            stamp = connection.execute(SQL.shown_by).get
            model = stamp and _model(connection, stamp)
            if not model:
                return "", []
            rows = []
            for owner in graph.reflections if kind == REFLECTION else graph.by_id:
                for ident, key in KEYS[kind](graph, owner).items():
                    vector = connection.execute(SQL.find, (model, key)).get
                    if vector is not None:
                        rows.append(Row(ident, key, vector))
        return stamp, self._unlike(stamp, kind, rows)


def _is_there(connection: apsw.Connection) -> bool:
    return bool(connection.execute(SQL.is_there).get)


def _keys(connection: apsw.Connection, model: int) -> list[tuple[int, int]]:
    found: list[Any] = connection.execute(SQL.keys, (model,)).fetchall()
    return found


def _models(connection: apsw.Connection | None) -> list[tuple[str, int, int]]:
    if connection is None or not _is_there(connection):
        return []
    found: list[Any] = connection.execute(SQL.models).fetchall()
    return found


def _model(connection: apsw.Connection, stamp: str) -> int | None:
    found: int | None = connection.execute(SQL.model, (stamp,)).get if _is_there(connection) else None
    return found


def _bring_model(connection: apsw.Connection, stamp: str, dimension: int) -> int | None:
    model = _model(connection, stamp)
    if model is None:
        if not _is_there(connection):
            for statement in (SQL.drop_vectors, SQL.drop_models):
                connection.execute(statement)
            connection.execute(read_sql("schema", "vectors.sql"))
        connection.execute(SQL.add_model, (stamp, dimension))
        model = _model(connection, stamp)
    return model


def _show(connection: apsw.Connection, stamp: str, kind: str, rows: Sequence[Row]) -> None:
    """Bring rows of a documented table. Vectors of another model go first: nobody shall compare the two."""
    if connection.execute(SQL.shown_by).get != stamp:
        fit_vectors(connection, len(rows[0].numbers) // 2)
        connection.execute(SQL.show_model, (stamp,))
    connection.executemany(getattr(SQL, f"{kind}_hide"), [(row.ident,) for row in rows])
    connection.executemany(getattr(SQL, f"{kind}_show"), [(row.ident, _whole(row.numbers)) for row in rows])


def _whole(numbers: bytes) -> bytes:
    """As sqlite-vec wants them."""
    if not has_numpy():
        return pack(f"<{len(numbers) // 2}f", *unpack(f"<{len(numbers) // 2}e", numbers))
    found: bytes = numpy().frombuffer(numbers, "<f2").astype("<f4").tobytes()
    return found


def _damaged(connection: apsw.Connection | None, model: int, dimension: int) -> Iterator[int]:
    assert connection is not None
    for row, vector in connection.execute(SQL.all, (model,)):
        if len(vector) != 2 * dimension or not _is_vector(vector, "<f2"):
            yield row


def _is_vector(numbers: bytes, form: str) -> bool:
    if has_numpy():
        np = numpy()
        length = float(np.linalg.norm(np.frombuffer(numbers, form).astype(np.float32)))
    else:
        size, letter = FORMS[form]
        length = sqrt(sum(number * number for number in unpack(f"<{len(numbers) // size}{letter}", numbers)))
    return abs(length - LENGTH) < ROUNDING


def vectors_of(store: Store, may_write: bool = True) -> KeptVectors:
    """The vectors of what this store holds."""
    if isinstance(store, SqliteStore):
        return KeptVectors(store.guest, store.settle, may_write, VectorMap(store.path + MAP_SUFFIX))
    path: str = store.path  # type: ignore[attr-defined]  # every store of ours has one file
    return KeptVectors(SideFile(path + SUFFIX), store.settle, may_write)
