"""Flags, behind the replies: an observation that repeats what its entity knows gets one, and one that no longer does
loses it.

The law: what two facts are to each other is looked at once, when both are there with their vectors: a new
observation against all before it, one that came from another entity against those it did not come with. So who has
taken a flag off is not contradicted. No call waits, nothing is compared under a lock, and how far it came is written
down: what a process could not finish, or had no model for, the next one does."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_memory.care import chosen_engine, meanings_of
from mcp_memory.changes import FLAGGING, ObservationFlagged, Plan
from mcp_memory.facts import MemoryFault
from mcp_memory.stores.examined import Mark

if TYPE_CHECKING:
    from mcp_memory.curation.duplicates import Said
    from mcp_memory.facts import Entity
    from mcp_memory.graph import Graph
    from mcp_memory.space import Space
    from mcp_memory.stores.examined import Examined

log = logging.getLogger("mcp_memory")

# Who it was, in the history.
SERVER = "mcp-memory"
# So long after the last write it is quiet enough to load a model for it; but nothing waits longer than the second.
QUIET_SECONDS, LONGEST_SECONDS = 2.0, 30.0
# How far it came is written down this often while there is more to do.
SAVED_SECONDS = 2.0
# A look at one entity waits so long for its flags.
LOOK_SECONDS = 0.1
# More new observations than this are no matter of a moment: nobody waits for them.
MOST_WAITED_FOR = 64
# Entities looked at while the graph is held, and entities looked through for such as are behind.
AT_ONCE, LOOKED_THROUGH = 32, 2048
# Flags that are committed at a time: calls get in between.
FLAGS_AT_ONCE = 256
# Observations whose words and vectors are kept at hand, of the entities that were looked at last: some 7 MB.
MOST_KEPT = 2048


class Look(NamedTuple):
    """An entity with observations to be compared, as it was at one moment."""

    entity: int
    ids: list[int]
    texts: list[str]
    origins: list[int]  # those of one origin were compared with each other before
    flagged: set[int]  # places of those that bear a flag
    rows: list[int]  # places of those to be compared with all before them


class Flag(NamedTuple):
    entity: int
    observation: int
    value: int


class Caretaker:
    """Looks for duplicates among what was written to a space, in a thread of its own."""

    def __init__(self, space: Space, kept: Examined) -> None:
        self.last = 0  # every observation up to this one was compared
        self._space = space
        self._kept = kept
        self._graph: Graph | None = None
        self._touched: set[int] = set()
        self._arrived: dict[int, int] = {}  # observations that came from elsewhere, and from which entity
        # Entities to be looked at, by their first observation that was not compared: those that were touched lately,
        # and those that an earlier process left.
        self._soon: list[tuple[float, int]] = []
        self._behind: list[tuple[float, int]] = []
        self._to_look_through = 0  # the entity at which the search for those that are behind goes on; 0: none are
        self._looking_at: set[int] = set()
        self._said: OrderedDict[int, tuple[str, Said]] = OrderedDict()  # by entity, with what made the vectors
        self._said_count = 0
        self._by_words = 0  # every observation up to this one was compared by its words, for want of a model
        self._seen_seq = -1  # the entry of the feed up to which everything was looked at
        self._has_news = False  # since this was last written down
        self._saved_at = 0.0
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
            self.last = newest if known.last is None else known.last
            self._by_words = known.by_words if self._space.model == "none" else 0
            self._seen_seq = known.seq
        self._graph = graph
        self._touched, self._arrived = set(), {}
        graph.followers.append(self._touched)
        graph.arrival_followers.append(self._arrived)
        graph.examined = self.last
        if self._known < newest or graph.seq not in (0, self._seen_seq):
            self._begin_anew()
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
            newest, seq = graph.next_observation - 1, graph.seq
        if self._is_behind(newest) and seconds > 0 and newest - self._known <= most:
            self._hurried.set()
            self.nudge()
            with self._done:
                self._done.wait_for(lambda: self._seen_seq >= seq or self._is_closing, seconds)
        return self.last >= newest and not self._is_behind(newest)

    def _is_behind(self, newest: int) -> bool:
        left = self._touched or self._soon or self._behind or self._to_look_through or self._looking_at
        return bool(left) or self._known < newest

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
                self._begin_anew()
            except Exception:
                log.exception("looking for duplicates failed; it is tried again after the next write")
                self._begin_anew()
            self._hurried.clear()

    def _begin_anew(self) -> None:
        """Look through all entities for those that are behind, and again at those that were not finished."""
        self._seen_seq = -1
        self._has_news = True
        self._touched.update(self._looking_at)
        self._said.clear()
        self._said_count = 0
        self._behind.clear()
        self._to_look_through = 1

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
            newest, seq = graph.next_observation - 1, graph.seq
            looks = self._next(graph)
            is_more = bool(looks or self._touched or self._soon or self._behind or self._to_look_through)
        flags = [flag for look in looks for flag in self._compared(look)]
        if self._is_closing:  # the space may be closed already, and would open again if it were asked
            return False
        for start in range(0, len(flags), FLAGS_AT_ONCE):
            self._commit(flags[start : start + FLAGS_AT_ONCE])
        for look in looks:
            for observation in look.ids:
                self._arrived.pop(observation, None)
        self._looking_at = set()
        self._reach(*((self._before_the_rest(newest), None) if is_more else (newest, seq)))
        return is_more

    def _next(self, graph: Graph) -> list[Look]:
        """Entities with something to compare. What was touched lately comes before what an earlier process left."""
        for entity_id in list(islice(self._touched, LOOKED_THROUGH)):
            self._touched.discard(entity_id)
            self._has_news = True
            if entity_id in graph.by_id:
                heappush(self._soon, (self._first_new(graph.by_id[entity_id]), entity_id))
        if not self._soon and self._to_look_through:
            self._look_through(graph)
        lane = self._soon or ([] if self._to_look_through else self._behind)
        some = dict.fromkeys(heappop(lane)[1] for _ in range(min(AT_ONCE, len(lane))))
        self._looking_at = set(some)
        return [look for entity_id in some if (look := self._look(graph, entity_id)) is not None]

    def _look_through(self, graph: Graph) -> None:
        """Find some of those that an earlier process left: with observations that nobody compared, or with flags,
        since what these repeat may have gone."""
        start, end = self._to_look_through, self._to_look_through + LOOKED_THROUGH
        for entity in graph.by_id.between(start, end):
            first = self._first_new(entity)
            if first < inf or any(seen.similarity_flag for seen in entity.observations):
                heappush(self._behind, (first, entity.id))
        self._to_look_through = end if end < graph.next_entity else 0

    @property
    def _known(self) -> int:
        return max(self.last, self._by_words)

    def _first_new(self, entity: Entity) -> float:
        """The first of its observations that nobody compared."""
        first = inf
        for seen in reversed(entity.observations):
            if seen.id <= self._known:
                break
            first = seen.id
        return first

    def _before_the_rest(self, newest: int) -> int:
        """Up to which observation nothing is left to compare."""
        if self._touched or self._to_look_through:
            return 0
        return int(min([newest, *(lane[0][0] - 1 for lane in (self._soon, self._behind) if lane)]))

    def _look(self, graph: Graph, entity_id: int) -> Look | None:
        entity = graph.by_id.get(entity_id)
        active = [] if entity is None else entity.active()
        known, arrived = self._known, self._arrived
        # Of those with an origin of its own nothing was compared with anything.
        origins = [-seen.id if seen.id > known else arrived.get(seen.id, entity_id) or -seen.id for seen in active]
        ids, texts = [seen.id for seen in active], [seen.text for seen in active]
        flagged = {place for place, seen in enumerate(active) if seen.similarity_flag}
        if arrived.keys().isdisjoint(ids):
            # What was flagged before is so for a reason, unless something went.
            again = set() if self._grew(entity_id, texts) else flagged
            rows = [place for place, one in enumerate(ids) if one > known or place in again]
        else:
            rows = list(range(len(ids)))
        if not rows or (len(rows) == 1 == len(ids) and not flagged):
            return None
        return Look(entity_id, ids, texts, origins, flagged, rows)

    # ── comparing ────────────────────────────────────────────────────────────────────────────────

    def _compared(self, look: Look) -> list[Flag]:
        """The flags that these observations should get, and lose."""
        if look.rows == [0]:  # nothing stands before it
            return [Flag(look.entity, look.ids[0], 0)] if look.flagged else []
        said = None if self._is_closing else self._read(look)
        if said is None:
            return []
        flags = []
        for alike in said.alike(look.rows):
            row, observation = alike.row, look.ids[alike.row]
            if row in look.flagged:
                # What a model found cannot be looked at again without one.
                if not len(alike.places) and (said.has_vectors or not row or observation > self.last):
                    flags.append(Flag(look.entity, observation, 0))
            elif _is_met_first(alike.places, look.origins, row):
                flags.append(Flag(look.entity, observation, 1))
        return flags

    def _grew(self, entity_id: int, texts: Sequence[str]) -> bool:
        """Is what was read of this entity all there still, in its place?"""
        kept = self._said.get(entity_id)
        return kept is not None and kept[1].texts == texts[: len(kept[1].texts)]

    def _read(self, look: Look) -> Said | None:
        """The words and vectors of an entity: what was read lately is not read again. None: called off."""
        from mcp_memory.curation.duplicates import Said

        engine = chosen_engine(self._space)
        stamp, model = ("", "") if engine is None else (engine.stamp, engine.model)
        by, said = self._said.pop(look.entity, ("", None))
        self._said_count -= 0 if said is None else len(said.texts)
        if said is None or by != stamp or said.texts != look.texts[: len(said.texts)]:
            said = Said(model)
        fresh = look.texts[len(said.texts) :]
        if fresh:
            meanings = meanings_of(self._space, fresh, keep=lambda: not self._is_closing)
            if self._is_closing:
                return None
            said.add(fresh, None if meanings is None else meanings.vectors)
        self._said[look.entity] = stamp, said
        self._said_count += len(said.texts)
        while self._said_count > MOST_KEPT:
            self._said_count -= len(self._said.popitem(last=False)[1][1].texts)
        return said

    def _commit(self, flags: Sequence[Flag]) -> None:
        def plan(graph: Graph) -> Plan:
            """Of what was found that which is still there, still believed and not so already."""
            seen = {
                one.id: one
                for entity_id in {flag.entity for flag in flags}
                if (entity := graph.by_id.get(entity_id)) is not None
                for one in entity.active()
            }
            return Plan(
                [
                    ObservationFlagged(*flag)
                    for flag in flags
                    if flag.observation in seen and bool(seen[flag.observation].similarity_flag) != bool(flag.value)
                ]
            )

        self._space.commit(plan, SERVER, FLAGGING)

    def _reach(self, newest: int, seq: int | None = None) -> None:
        """Everything up to this observation was looked at; and with `seq`, to this entry of the feed."""
        if chosen_engine(self._space) is None:
            self._by_words = max(newest, self._by_words)
        elif newest > self.last:
            self.last = newest
            if self._graph is not None:
                self._graph.examined = newest
        if self._has_news and (seq is not None or time.monotonic() - self._saved_at > SAVED_SECONDS):
            self._saved_at = time.monotonic()
            self._kept.save(Mark(self.last, self._by_words, -1 if seq is None else seq))
            self._has_news = seq is None
        if seq is not None:
            with self._done:
                self._seen_seq = seq
                self._done.notify_all()


def _is_met_first(places: Any, origins: Sequence[int], row: int) -> bool:
    """Is there one among these that was never compared with this row before?"""
    own = origins[row]
    return len(places) > 0 and (own < 0 or any(origins[place] != own for place in places))
