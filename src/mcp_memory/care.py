"""Looking after a space behind the replies: new observations that repeat what an entity knows are flagged.

The law: an observation is compared once, with everything that stands before it, when both have their vectors. No
call waits for it, nothing is compared under a lock, and how far it came is written down: what a process could not
finish, or had no model for, the next one does."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.changes import FLAGGING, ObservationFlagged, Plan
from mcp_memory.curation.curator import Curator, Meanings
from mcp_memory.facts import MemoryFault, Observation
from mcp_memory.pace import reached
from mcp_memory.search.times import seconds_of

if TYPE_CHECKING:
    from mcp_memory.curation.topics import Topics
    from mcp_memory.embedding.engine import Engine
    from mcp_memory.embedding.numerics import Floats
    from mcp_memory.graph import Graph
    from mcp_memory.search.limbic import Use
    from mcp_memory.space import Space
    from mcp_memory.stores.examined import Examined

log = logging.getLogger("mcp_memory")

# Who it was, in the history.
SERVER = "mcp-memory"
# So long after the last write it is quiet enough to load a model for it; but nothing waits longer than the second.
QUIET_SECONDS, LONGEST_SECONDS = 2.0, 30.0
# Who wants to see flags waits so long for them: a report, and a look at one entity.
REPORT_SECONDS, LOOK_SECONDS = 2.0, 0.1
# More new observations than this are no matter of a moment: a look at one entity does not wait for them.
MOST_WAITED_FOR = 64
# Entities looked at while the graph is held, and entities looked through for such as are behind.
AT_ONCE, LOOKED_THROUGH = 32, 2048
# Who waits for the graph is awake after so long.
PAUSE_SECONDS = 0.0001
# Texts that one reading call may give to the model; of more it says that they are still to be read.
MOST_ENCODED = 500
# Entities whose topics are kept at hand: of 40 observations of 100 letters each, some 6 MB.
MOST_TOPICS = 1000
BY_WORDS = ""  # what stands for a model where there is none
# What giving a text to the model takes, in steps of a pace: a millisecond. And waiting for it.
STEPS_EACH, STEPS_OF_WAITING = 1_000, 10_000
# Texts that the model gets at a time behind the replies: a search waits for no more than that.
LOT = 64


class Look(NamedTuple):
    """An entity with observations nobody has compared yet: those from the place `since` on."""

    entity: int
    ids: list[int]
    texts: list[str]
    since: int


class Caretaker:
    """Looks for duplicates among what was written to a space, in a thread of its own."""

    def __init__(self, space: Space, kept: Examined) -> None:
        self.last = 0  # every observation up to this one was compared
        self._space = space
        self._kept = kept
        self._graph: Graph | None = None
        self._touched: set[int] = set()
        self._queue: dict[int, None] = {}
        self._to_look_through = 0  # the entity at which the search for those that are behind goes on; 0: none are
        self._by_words = 0  # every observation up to this one was compared by its words, for want of a model
        self._done = threading.Condition()
        self._wake = threading.Event()
        self._hurried = threading.Event()
        self._is_closing = False
        self._worker: threading.Thread | None = None

    # ── for the space ────────────────────────────────────────────────────────────────────────────

    def follow(self, graph: Graph) -> None:
        """A graph was loaded. For whoever holds it."""
        newest = graph.next_observation - 1
        if self._graph is None:
            known = self._kept.load()
            # A memory from before there were flags keeps its peace: find_duplicate_observations is there for it.
            self.last = newest if known is None else known
        self._graph = graph
        self._touched = set()
        graph.followers.append(self._touched)
        graph.examined = self.last
        if self.last < newest:
            self._to_look_through = 1
            self.nudge()

    def nudge(self) -> None:
        """Something was written."""
        if self._worker is None and not self._is_closing:
            self._worker = threading.Thread(target=self._work, name="caretaker", daemon=True)
            self._worker.start()
        self._wake.set()

    def hurry(self, seconds: float, most: float = inf) -> bool:
        """Wait until what is written now was compared, but not for ever, and for no more than `most` of it; was it?
        Never ask while holding the graph."""
        with self._space.reading() as graph:
            newest = graph.next_observation - 1
        if self.last < newest and seconds > 0 and newest - self.last <= most:
            self._hurried.set()
            self.nudge()
            with self._done:
                self._done.wait_for(lambda: max(self.last, self._by_words) >= newest or self._is_closing, seconds)
        return self.last >= newest

    def close(self, seconds: float = 0.5) -> None:
        """Stop. What was not compared yet will be next time."""
        self._is_closing = True
        self._hurried.set()
        self._wake.set()
        with self._done:
            self._done.notify_all()
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.join(seconds)

    # ── behind the replies ───────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        while not self._is_closing:
            self._wake.wait()
            self._wake.clear()
            self._wait_for_quiet()
            try:
                while not self._is_closing and self.step():
                    pass
            except MemoryFault as fault:
                log.debug("looking for duplicates waits: %s", fault)
                self._to_look_through = 1
            except Exception:
                log.exception("looking for duplicates failed; it is tried again after the next write")
                self._to_look_through = 1
            self._hurried.clear()

    def _wait_for_quiet(self) -> None:
        until = time.monotonic() + LONGEST_SECONDS
        while not self._is_closing:
            now = time.monotonic()
            quiet = min(self._space.last_write + QUIET_SECONDS, until)
            if now >= quiet or self._hurried.wait(quiet - now):
                return

    def step(self) -> bool:
        """Look at some entities; is there more to do?"""
        with self._space.reading() as graph:
            newest = graph.next_observation - 1
            looks = self._next(graph)
            is_more = bool(looks or self._queue or self._to_look_through)
        found = {look.entity: self._repeating(look) for look in looks}
        if self._is_closing:  # the space may be closed already, and would open again if it were asked
            return False
        self._flag({entity: flagged for entity, flagged in found.items() if flagged})
        if not is_more:
            self._reach(newest)
        return is_more

    def _next(self, graph: Graph) -> list[Look]:
        """Entities with something new. What was touched lately comes before what an earlier process left."""
        self._queue.update(dict.fromkeys(sorted(self._touched)))
        self._touched.clear()
        if not self._queue and self._to_look_through:
            start, end = self._to_look_through, self._to_look_through + LOOKED_THROUGH
            found = (one.id for one in graph.by_id.between(start, end) if _newest(one.observations) > self.last)
            self._queue.update(dict.fromkeys(found))
            self._to_look_through = end if end < graph.next_entity else 0
        some = list(self._queue)[:AT_ONCE]
        for entity_id in some:
            del self._queue[entity_id]
        return [look for entity_id in some if (look := self._look(graph, entity_id)) is not None]

    def _look(self, graph: Graph, entity_id: int) -> Look | None:
        entity = graph.by_id.get(entity_id)
        active = [] if entity is None else entity.active()
        known = max(self.last, self._by_words)
        since = next((place for place, seen in enumerate(active) if seen.id > known), len(active))
        if since == len(active) or len(active) < 2:
            return None
        return Look(entity_id, [seen.id for seen in active], [seen.text for seen in active], since)

    def _repeating(self, look: Look) -> set[int]:
        """The new observations that say what one before them says."""
        from mcp_memory.curation.duplicates import matches

        if self._is_closing:
            return set()
        known = meanings_of(self._space, look.texts, keep=lambda: not self._is_closing)
        vectors, model = (None, "") if known is None else (known.vectors, known.model)
        return {look.ids[match.other] for match in matches(look.texts, vectors, model=model, since=look.since)}

    def _flag(self, found: Mapping[int, set[int]]) -> None:
        if not found:
            return

        def plan(graph: Graph) -> Plan:
            """Of what was found that which is still there, still believed and not flagged."""
            entities = [entity for entity_id in found if (entity := graph.by_id.get(entity_id)) is not None]
            return Plan(
                [
                    ObservationFlagged(entity.id, seen.id, 1)
                    for entity in entities
                    for seen in entity.active()
                    if seen.id in found[entity.id] and not seen.similarity_flag
                ]
            )

        self._space.commit(plan, SERVER, FLAGGING)

    def _reach(self, newest: int) -> None:
        """Everything up to this observation was looked at."""
        if chosen_engine(self._space) is None:
            self._by_words = newest
        elif newest > self.last:
            self.last = newest
            if self._graph is not None:
                self._graph.examined = newest
            self._kept.save(newest)
        with self._done:
            self._done.notify_all()


def _newest(observations: Sequence[Observation]) -> int:
    return observations[-1].id if observations else 0


# ── what the tools of care may touch ─────────────────────────────────────────────────────────────


def curator_of(space: Space) -> Curator:
    """Somebody who looks after this space, for one call."""

    def uses() -> Mapping[str, Use]:
        return space.usage.shown()

    return Curator(
        facts=space.reading,
        pause=pause,
        customs=space.customs,
        meanings=lambda texts: meanings_of(space, texts),
        topics=lambda texts, may_read: _topics(space, texts, may_read),
        nearness=lambda query, ids: _nearness(space, query, ids),
        uses=uses,
        missing=lambda: _missing(space),
        examined=lambda: _examined(space),
        now=lambda: seconds_of(space.clock()) or time.time(),
    )


def _topics(space: Space, texts: Sequence[str], may_read: bool) -> Topics:
    """What these texts are about; `may_read`: those that have no vector yet are given to the model first.

    The same texts are about the same the next time: a report comes every week, and most of what is large has not
    changed since."""
    from mcp_memory.curation.topics import topics_of

    engine, said = chosen_engine(space), tuple(texts)
    known = None if engine is None else space.topics.get((engine.stamp, said))
    if known is not None:
        return known
    meanings = meanings_of(space, texts, most=MOST_ENCODED if may_read else 0)
    if engine is not None and meanings is not None and meanings.is_complete:
        found = topics_of(texts, meanings.vectors, meanings.model)
        key = engine.stamp, said
    else:
        found = space.topics.get((BY_WORDS, said)) or topics_of(texts)
        key = BY_WORDS, said
    if len(space.topics) >= MOST_TOPICS:
        space.topics.clear()
    space.topics[key] = found
    return found


def pause() -> None:
    time.sleep(PAUSE_SECONDS)


def _examined(space: Space) -> int:
    caretaker = space.caretaker
    if caretaker is None:
        return sys.maxsize
    # Loading a model takes a second or so: nobody waits for that, and the report says what is pending.
    if not caretaker.hurry(0) and (is_ready(space) or chosen_engine(space) is None):
        reached(0, None, "comparing what is new", STEPS_OF_WAITING)
        caretaker.hurry(REPORT_SECONDS)
    return caretaker.last


def chosen_engine(space: Space) -> Engine | None:
    from mcp_memory.embedding import engine

    return None if space.model == "none" else engine(space.model)


def is_ready(space: Space) -> bool:
    """Is the model loaded, so that a vector is a matter of milliseconds?"""
    if "mcp_memory.embedding.engine" not in sys.modules:
        return False
    chosen = chosen_engine(space)
    return chosen is not None and chosen.loaded


def meanings_of(
    space: Space, texts: Sequence[str], keep: Callable[[], bool] | None = None, most: int = MOST_ENCODED
) -> Meanings | None:
    """The vectors of these texts: those that are kept are read, the others made. They are kept in their turn while
    `keep` says so; without it nothing is written, and at `most` so many are made."""
    model = chosen_engine(space)
    if model is None:
        return None
    from mcp_memory.embedding.numerics import numpy
    from mcp_memory.search.vectors import OBSERVATION, Row, key_of
    from mcp_memory.stores.vectors import vectors_of

    np, home = numpy(), vectors_of(space.store, keep is not None)
    keys = [key_of(text) for text in texts]
    kept = home.find(model.stamp, list(dict.fromkeys(keys)))
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in kept}
    made: dict[int, Floats] = {}
    for start in range(0, len(missing) if keep is not None else min(len(missing), most), LOT):
        lot = list(missing)[start : start + LOT]
        reached(start, len(missing), "reading observations", STEPS_EACH * len(lot))
        made |= zip(lot, model.encode([missing[key] for key in lot]), strict=True)
        if keep is not None:
            if not keep():
                break
            rows = [Row(0, key, made[key].astype("<f2").tobytes()) for key in lot]
            home.keep(model.stamp, OBSERVATION, rows, are_new=True)
    vectors = np.full((len(texts), model.dimension), np.nan, np.float32)
    for row, key in enumerate(keys):
        if key in kept:
            vectors[row] = np.frombuffer(kept[key], "<f2")
        elif key in made:
            vectors[row] = made[key]
    return Meanings(vectors, model.model, len(made) == len(missing))


def _nearness(space: Space, query: str, ids: Sequence[int]) -> dict[int, float]:
    """The cosines of these reflections with a question, of those that have a vector. Without any lock held."""
    space.meaning.prepare()
    vectors = space.vectors
    if vectors is None:
        return {}
    found, missing = vectors.of_reflections(ids)
    cosines = (found @ vectors.engine.encode([query], "query")[0]).tolist()
    absent = set(missing)
    return {one: cosine for one, cosine in zip(ids, cosines, strict=True) if one not in absent}


def _missing(space: Space) -> str:
    from mcp_memory.embedding import why_not
    from mcp_memory.embedding.engine import MISSING

    reason = "Not every text has been read yet; ask again in a while."
    if chosen_engine(space) is None:
        reason = "The setting model is none." if space.model == "none" else why_not(space.model) or MISSING
    return f"Compared by words only. {reason}"
