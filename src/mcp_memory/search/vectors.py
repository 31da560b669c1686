"""What the texts of a space mean, as numbers: a vector for each observation, entity and reflection.

The law: a vector belongs to a text, not to a fact. Its key is a digest of the text, so a fact that changes,
moves or comes back finds its vector, or visibly lacks one, and nothing can be stale. What lacks one is
found by looking at the graph: there is no queue that could be lost.

A window around an observation needs no vectors of its own. The vector of a window is the sum of its
observations' vectors, and the product with a sum is the sum of the products (`search/fusion.py`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mcp_memory.embedding.numerics import Floats, numpy
from mcp_memory.embedding.texts import entity_parts, entity_text
from mcp_memory.facts import MemoryFault
from mcp_memory.search.matrix import Matrix, Table

if TYPE_CHECKING:
    from mcp_memory.embedding.engine import Engine
    from mcp_memory.graph import Graph

log = logging.getLogger("mcp_memory")

Array = Any
OBSERVATION, ENTITY, REFLECTION = KINDS = ("observation", "entity", "reflection")
# Texts given to the model, and looked up among those that were, between two looks at what else there is to do.
LOT, LOOK_UP = 256, 4096
# Who finds the file locked tries again after so many seconds.
PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)
# Entities whose texts are looked at while somebody waits.
SOME_ENTITIES = 256
# From so many observations on, their rows are written to a file that can be mapped.
MAPPED_FROM = 20_000
# Vectors made before those of texts that are no more are looked for.
SWEPT_AFTER = 10_000


class Row(NamedTuple):
    """One vector to be kept: of which fact, under which key, and the half-precision numbers."""

    ident: int
    key: int
    numbers: bytes


class VectorHome(Protocol):
    """Where vectors are kept between runs. Raises MemoryFault where that fails."""

    def find(self, stamp: str, keys: Sequence[int]) -> dict[int, bytes]:
        """Of these keys those that are there, as half-precision numbers."""

    def keep(self, stamp: str, kind: str, rows: Sequence[Row], are_new: bool) -> None:
        """Put these down, all or nothing; what is there already stays. Those of entities and reflections also in
        the tables that are documented for them, which is all there is to do for rows that are not new."""

    def note_complete(self, stamp: str, seq: int) -> None:
        """Write down that everything up to this entry of the feed has its vector."""

    def sweep(self, stamp: str, living: Collection[int]) -> int:
        """Throw away vectors of texts that are no more; how many."""

    def mapped(self, stamp: str, dimension: int) -> Table | None:
        """The rows of observations as they were last written for mapping. Their keys tell what they are good for."""

    def write_map(self, stamp: str, dimension: int, rows: int, pieces: Iterator[Callable[[], Array]]) -> None:
        """Write them: whole or not at all."""


def key_of(*parts: str) -> int:
    """The digest of a text, as an integer that a database holds."""
    digest = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


class Seats:
    """Facts in an order of their own, and where their vectors stand: looked up again when vectors came or went."""

    def __init__(self, kind: str, ids: Array) -> None:
        self.kind = kind
        self.known = 0  # how many of them have a vector
        self._ids = ids
        self._matrix: Matrix | None = None
        self._generation = -1
        self._rows: Array = None
        self._lacking: Array = None

    def find(self, matrix: Matrix) -> None:
        if self._matrix is not matrix or self._generation != matrix.generation:
            np = numpy()
            self._rows = matrix.rows(self._ids)
            self._lacking = np.flatnonzero(self._rows < 0)
            self.known = len(self._rows) - len(self._lacking)
            self._rows = np.maximum(self._rows, 0).astype(np.int32)
            self._matrix, self._generation = matrix, matrix.generation

    def take(self, scores: Array) -> Array:
        """Of the scores of every row those of these facts; nan for who has none."""
        np = numpy()
        if not self.known:
            return np.full(len(self._rows), np.nan, np.float32)
        found = scores.take(self._rows)
        found[self._lacking] = np.nan
        return found


class Wanted:
    """One kind of fact: the rows of those whose text has a vector, and those whose has none."""

    def __init__(self, dimension: int, table: Table | None = None) -> None:
        self.matrix = Matrix(dimension, table)
        self.missing: dict[int, tuple[int, int]] = {}  # fact -> key and owner; the newest last
        self._waiting: dict[int, list[int]] = {}  # owner -> its facts among those

    def __len__(self) -> int:
        return len(self.matrix) + len(self.missing)

    def owners(self) -> set[int]:
        return self.matrix.all_owners() | self._waiting.keys()

    def follow(self, now: Mapping[int, Mapping[int, int]]) -> None:
        """Take in what these owners hold now: for each fact its key."""
        present = {ident: (key, owner) for owner in sorted(now) for ident, key in now[owner].items()}
        ids, keys, owners = self.matrix.of_owners(list(now))
        known = dict(zip(ids, zip(keys, owners, strict=True), strict=True))
        stale = [ident for ident, (key, _) in known.items() if ident not in present or present[ident][0] != key]
        self.matrix.drop(stale)
        for ident in stale:
            del known[ident]
        moved = [ident for ident, (_, owner) in known.items() if present[ident][1] != owner]
        if moved:
            self.matrix.give(moved, [present[ident][1] for ident in moved])
        for owner in now:
            for ident in self._waiting.pop(owner, ()):
                self.missing.pop(ident, None)
        for ident, (key, owner) in present.items():
            if ident not in known:
                self.missing[ident] = (key, owner)
                self._waiting.setdefault(owner, []).append(ident)

    def put(self, found: Sequence[tuple[int, int, Array]]) -> list[int]:
        """Take in vectors, as far as the texts are still these; the facts that have got one."""
        fresh = [one for one in found if one[0] in self.missing and self.missing[one[0]][0] == one[1]]
        ids = [ident for ident, _, _ in fresh]
        if ids:
            owners = [self.missing.pop(ident)[1] for ident in ids]
            rows = numpy().stack([vector for _, _, vector in fresh]).astype("f4")
            self.matrix.put(ids, rows, [key for _, key, _ in fresh], owners)
            for owner in set(owners):
                left = [ident for ident in self._waiting.pop(owner, ()) if ident in self.missing]
                if left:
                    self._waiting[owner] = left
        return ids

    def living(self) -> set[int]:
        """The keys of every text there is."""
        return self.matrix.living()[1] | {key for key, _ in self.missing.values()}


class Lot(NamedTuple):
    """What to do next: facts of one kind with their keys, and what makes their texts if these are to be read."""

    kind: str
    facts: list[tuple[int, int]]
    texts: list[Callable[[], str]] | None


class Vectors:
    """The vectors of one space by one model. Any thread may ask."""

    def __init__(
        self,
        reading: Callable[[], AbstractContextManager[Graph]],
        home: VectorHome,
        engine: Engine,
    ) -> None:
        """`reading` gives the graph, up to date and for oneself, for a moment."""
        self.engine = engine
        # Asked, without any lock held, with the ids of observations that have just got their vectors.
        self.on_fresh: list[Callable[[Sequence[int]], None]] = []
        self.on_complete: Callable[[], None] | None = None  # called by the worker when every text has its vector
        self.on_step: Callable[[], None] | None = None  # called by the worker when some texts got their vectors
        self._reading = reading
        self._home = home
        self._graph: Graph | None = None
        self._touched: set[int] = set()
        self._linked: set[int] = set()
        self._later: set[int] = set()  # entities whose own text nobody has looked at yet
        table = home.mapped(engine.stamp, engine.dimension)
        self._mapped = 0 if table is None else len(table.ids)
        self._wanted = {kind: Wanted(engine.dimension, table if kind == OBSERVATION else None) for kind in KINDS}
        self._lock = threading.RLock()
        self._done = threading.Condition(self._lock)
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._worker: threading.Thread | None = None
        self._absent: set[int] = set()  # keys that were looked up in vain
        self._news = 0  # kept since the last sweep
        self._complete = self._noted = -1  # the entry of the feed up to which every text has its vector

    @property
    def stamp(self) -> str:
        return self.engine.stamp

    @property
    def dimension(self) -> int:
        return self.engine.dimension

    # ── for searches ─────────────────────────────────────────────────────────────────────────────

    def of(self, observation_ids: Sequence[int], kind: str = OBSERVATION) -> tuple[Floats, list[int]]:
        """A row for each id, zeros for those that have none yet; and which those are."""
        np = numpy()
        with self._lock:
            matrix = self._wanted[kind].matrix
            rows = matrix.rows(observation_ids)
            found: Floats = np.zeros((len(rows), self.dimension), np.float32)
            known = rows >= 0
            found[known] = matrix.vectors(rows[known])
        return found, [ident for ident, is_known in zip(observation_ids, known.tolist(), strict=True) if not is_known]

    def of_entities(self, entity_ids: Sequence[int]) -> tuple[Floats, list[int]]:
        return self.of(entity_ids, ENTITY)

    def of_reflections(self, reflection_ids: Sequence[int]) -> tuple[Floats, list[int]]:
        return self.of(reflection_ids, REFLECTION)

    def nearest(self, query: Floats, most: int, kind: str = OBSERVATION) -> list[tuple[int, float]]:
        """Ids and cosines of those that mean nearly the same as a vector, the best first."""
        with self._lock:
            return self._wanted[kind].matrix.nearest(query, most)

    def cosines(self, query: Floats, seats: Sequence[Seats]) -> list[Array]:
        """For each of these, the cosines of its facts with a vector, to about a thousandth; nan where there is none.

        The rows of a kind are scanned once, however many ask."""
        scores: dict[str, Array] = {}
        found = []
        with self._lock:
            for some in seats:
                matrix = self._wanted[some.kind].matrix
                some.find(matrix)
                if some.kind not in scores and some.known:
                    scores[some.kind] = matrix.scores(query)
                found.append(some.take(scores.get(some.kind)))
        return found

    # ── keeping up ───────────────────────────────────────────────────────────────────────────────

    def refresh(self, graph: Graph) -> None:
        """See what changed. For whoever holds the graph; costs what was changed."""
        with self._lock:
            if graph is not self._graph:
                self._start(graph)
            if self._touched or self._linked:
                touched = set(self._touched)
                self._later |= touched | self._linked
                self._touched.clear()
                self._linked.clear()
                self._follow(graph, OBSERVATION, touched)
            if len(self._later) <= SOME_ENTITIES:
                self._follow_entities(graph)
            if len(self._wanted[REFLECTION]) != len(graph.reflections):
                self._follow(graph, REFLECTION, graph.reflections.keys() | self._wanted[REFLECTION].owners())
            if self.pending():
                self.nudge()

    def _start(self, graph: Graph) -> None:
        self._graph = graph
        self._touched, self._linked = set(), set()
        graph.followers.append(self._touched)
        graph.link_followers.append(self._linked)
        everyone = {entity.id for entity in graph.entities()}
        self._follow(graph, OBSERVATION, self._wanted[OBSERVATION].owners() | everyone)
        # The text of an entity is written anew to see whether it is the same: that can wait.
        self._later = self._wanted[ENTITY].owners() | everyone
        self._follow(graph, REFLECTION, graph.reflections.keys() | self._wanted[REFLECTION].owners())

    def _follow_entities(self, graph: Graph) -> None:
        """Look at the texts of some of the entities that may have changed."""
        some = set(islice(self._later, SOME_ENTITIES))
        self._later -= some
        self._follow(graph, ENTITY, some)

    def _follow(self, graph: Graph, kind: str, owners: Collection[int]) -> None:
        keys, ordered = KEYS[kind], sorted(owners)
        for start in range(0, len(ordered), LOOK_UP):
            self._wanted[kind].follow({owner: keys(graph, owner) for owner in ordered[start : start + LOOK_UP]})

    def pending(self) -> int:
        """How many texts have no vector yet, as far as is known."""
        with self._lock:
            return sum(len(wanted.missing) for wanted in self._wanted.values()) + len(self._later)

    def progress(self) -> tuple[int, int]:
        """How many texts have their vector, of how many."""
        with self._lock:
            everything = sum(map(len, self._wanted.values())) + len(self._later)
            return everything - self.pending(), everything

    def nudge(self) -> None:
        """Something was written: see to it soon, behind whatever goes on now."""
        with self._lock:
            if self._worker is None and not self._stop.is_set():
                self._worker = threading.Thread(target=self._work, name="embedding", daemon=True)
                self._worker.start()
        self._wake.set()

    def wait(self, seconds: float) -> bool:
        """Wait until every text has its vector, but not for ever; is it so? Never wait while holding the graph."""
        with self._done:
            return self._done.wait_for(lambda: not self.pending() or self._stop.is_set(), seconds)

    # ── behind the reply ─────────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        level = logging.WARNING  # what goes wrong again and again is said once: every write is another try
        while True:
            self._wake.wait()
            self._wake.clear()
            try:
                while not self._stop.is_set() and self.step():
                    pass
                if not self._stop.is_set():
                    self._tidy()
                if self._stop.is_set():
                    return
                level = logging.WARNING
            except MemoryFault as fault:
                log.log(level, "meaning waits: %s", fault)
                level = logging.DEBUG
            except Exception:
                log.log(level, "embedding failed; searches go by words", exc_info=True)
                level = logging.DEBUG

    def step(self) -> bool:
        """Give some texts their vectors; was there anything to do?"""
        with self._reading() as graph:
            self.refresh(graph)
            lot = self._next(graph)
            if lot is None:
                with self._done:
                    is_more = bool(self._later)
                    self._follow_entities(graph)
                    if not self.pending():
                        self._complete = graph.seq
                        self._absent.clear()  # those of texts that went before they had a vector, too
                    self._done.notify_all()
                return is_more
        vectors = self._kept(lot) if lot.texts is None else self._encoded(lot, lot.texts)
        fresh = self._put(lot.kind, vectors)
        if self.on_step is not None:
            self.on_step()
        if fresh and lot.texts is not None and lot.kind == OBSERVATION:
            for tell in self.on_fresh:
                tell(fresh)
        return True

    def _next(self, graph: Graph) -> Lot | None:
        """The newest first. What was embedded before is looked up before anything is embedded."""
        with self._lock:
            for kind, wanted in self._wanted.items():
                while some := [(ident, wanted.missing[ident]) for ident in islice(reversed(wanted.missing), LOOK_UP)]:
                    unknown = [(ident, key) for ident, (key, _) in some if key not in self._absent]
                    if unknown:
                        return Lot(kind, unknown, None)
                    some = some[:LOT]
                    if self._is_current(graph, kind, some):
                        make = TEXTS[kind]
                        texts = [make(graph, owner, ident, self.engine) for ident, (_, owner) in some]
                        return Lot(kind, [(ident, key) for ident, (key, _) in some], texts)
        return None

    def _is_current(self, graph: Graph, kind: str, facts: Sequence[tuple[int, tuple[int, int]]]) -> bool:
        """Are these still the texts of these facts? If not, it is known now what is.

        Observations are followed by every look at the graph. The texts of entities are not while many have changed:
        one of them may be gone, and no text can be made of it."""
        if kind == OBSERVATION:
            return True
        owners = {owner for _, (_, owner) in facts}
        self._follow(graph, kind, owners)
        if kind == ENTITY:
            self._later -= owners
        missing = self._wanted[kind].missing
        return all(missing.get(ident) == fact for ident, fact in facts)

    def _kept(self, lot: Lot) -> list[tuple[int, int, Array]]:
        """Those that were embedded before, by us or by another process."""
        np = numpy()
        kept = self._home.find(self.stamp, [key for _, key in lot.facts])
        self._absent.update(key for _, key in lot.facts if key not in kept)
        rows = [Row(ident, key, kept[key]) for ident, key in lot.facts if key in kept]
        if rows and lot.kind != OBSERVATION:
            self._keep(lot.kind, rows, are_new=False)
        return [(row.ident, row.key, np.frombuffer(row.numbers, "<f2")) for row in rows]

    def _encoded(self, lot: Lot, texts: list[Callable[[], str]]) -> list[tuple[int, int, Array]]:
        vectors = self.engine.encode([text() for text in texts])
        # Once rounded as they are kept: the same today and after a restart.
        halves = vectors.astype("<f2")
        rows = [Row(*fact, half.tobytes()) for fact, half in zip(lot.facts, halves, strict=True)]
        if self._keep(lot.kind, rows, are_new=True):
            self._absent.difference_update(row.key for row in rows)
            self._news += len(rows)
        return [(ident, key, half) for (ident, key), half in zip(lot.facts, halves, strict=True)]

    def _keep(self, kind: str, rows: Sequence[Row], are_new: bool) -> bool:
        for wait in PAUSES:
            try:
                self._home.keep(self.stamp, kind, rows, are_new)
            except MemoryFault as fault:
                log.debug("vectors are not kept: %s", fault)
                if not fault.retryable or self._stop.wait(wait):
                    return False
            else:
                return True
        return False

    def _tidy(self) -> None:
        """Everything has its vector: see to what is kept of them."""
        if self._news > SWEPT_AFTER:
            with self._lock:
                living: set[int] = set().union(*(wanted.living() for wanted in self._wanted.values()))
            if self._news > len(living):
                self._news = 0
                swept = self._home.sweep(self.stamp, living)
                log.debug("%d vectors of texts that are no more were thrown away", swept)
        self._write_map()
        if self._complete != self._noted:
            self._home.note_complete(self.stamp, self._complete)
            self._noted = self._complete
        if self.on_complete is not None:
            self.on_complete()

    def _write_map(self) -> None:
        """Let the next start map the rows of a large space instead of reading them one by one."""
        matrix = self._wanted[OBSERVATION].matrix
        with self._lock:
            rows, _ = matrix.living()
        if len(rows) < MAPPED_FROM or abs(len(rows) - self._mapped) < len(rows) // 10:
            return

        def locked(piece: Callable[[], Array]) -> Array:
            with self._lock:
                return piece()

        # Rows come in this thread only, and what goes meanwhile is told by its key at the next start.
        pieces = (partial(locked, piece) for piece in matrix.pieces(rows))
        self._home.write_map(self.stamp, self.dimension, len(rows), pieces)
        self._mapped = len(rows)

    def _put(self, kind: str, found: Sequence[tuple[int, int, Array]]) -> list[int]:
        with self._done:
            fresh = self._wanted[kind].put(found)
            self._done.notify_all()
        return fresh

    def stop(self) -> None:
        """Begin nothing more. What is missing will be missed again at the next start."""
        with self._done:
            self._stop.set()
            self._wake.set()
            self._done.notify_all()

    def close(self, seconds: float = 0.5) -> None:
        """Stop, and wait for what is being done."""
        self.stop()
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.join(seconds)


# ── which texts there are ────────────────────────────────────────────────────────────────────────


def _observation_keys(graph: Graph, owner: int) -> dict[int, int]:
    entity = graph.by_id.get(owner)
    if entity is None or entity.is_placeholder:
        return {}
    return {seen.id: key_of(seen.text) for seen in entity.observations if seen.superseded_at is None}


def _entity_keys(graph: Graph, owner: int) -> dict[int, int]:
    entity = graph.by_id.get(owner)
    if entity is None or entity.is_placeholder:
        return {}
    return {owner: key_of(*entity_parts(graph, entity).flat())}


def _reflection_keys(graph: Graph, owner: int) -> dict[int, int]:
    reflection = graph.reflections.get(owner)
    return {} if reflection is None else {owner: key_of(reflection.content)}


KEYS: dict[str, Callable[[Graph, int], dict[int, int]]] = {
    OBSERVATION: _observation_keys,
    ENTITY: _entity_keys,
    REFLECTION: _reflection_keys,
}


def _observation_text(graph: Graph, owner: int, ident: int, engine: Engine) -> Callable[[], str]:
    text = next(seen.text for seen in graph.by_id[owner].observations if seen.id == ident)
    return lambda: text


def _entity_text(graph: Graph, owner: int, ident: int, engine: Engine) -> Callable[[], str]:
    parts = entity_parts(graph, graph.by_id[owner])
    return lambda: entity_text(parts, engine.tokens)  # counting pieces takes a while: not while the graph is held


def _reflection_text(graph: Graph, owner: int, ident: int, engine: Engine) -> Callable[[], str]:
    text = graph.reflections[ident].content
    return lambda: text


TEXTS: dict[str, Callable[[Graph, int, int, Engine], Callable[[], str]]] = {
    OBSERVATION: _observation_text,
    ENTITY: _entity_text,
    REFLECTION: _reflection_text,
}
