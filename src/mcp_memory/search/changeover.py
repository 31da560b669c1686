"""The vectors a space serves, and those of another model that will take their place.

The law: vectors of two models are never compared. After a change of the model the old vectors go on serving,
with the old model for the questions, until every text has its new one; then the old ones are thrown away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from mcp_memory.facts import MemoryFault
from mcp_memory.search.vectors import VectorHome, Vectors

if TYPE_CHECKING:
    from mcp_memory.embedding.engine import Engine
    from mcp_memory.graph import Graph

log = logging.getLogger("mcp_memory")

# The model that served until now may be at a lot of texts; nobody waits for it but a worker.
FINISHING_SECONDS = 30.0


class ManyVectors(VectorHome, Protocol):
    """A home that may hold vectors of several models."""

    def stamps(self) -> Mapping[str, int]:
        """Which there are, and how many of each."""

    def forget(self, stamp: str) -> None:
        """Throw away the vectors of a model."""


class Changeover:
    """Vectors of the wanted model, and of an older one while it has more."""

    def __init__(
        self,
        reading: Callable[[], AbstractContextManager[Graph]],
        home: ManyVectors,
        engine: Engine,
        engine_for: Callable[[str], Engine | None],
    ) -> None:
        """`engine_for` finds the engine of a stamp, if we still have it."""
        self._home = home
        self._reading = reading
        self._coming: Vectors | None = None
        self._former: Vectors | None = None
        self._told = 0  # tenths of the change that were told
        self.serving = Vectors(reading, home, engine)
        stamps = home.stamps()
        self._leftover = [stamp for stamp in stamps if stamp != engine.stamp]
        older = max((stamp for stamp in stamps if stamp != engine.stamp), key=stamps.__getitem__, default=None)
        if older is not None and stamps[older] > stamps.get(engine.stamp, 0):
            old_engine = engine_for(older)
            if old_engine is not None:
                log.warning("embedding everything anew with %s; %s serves meanwhile", engine.stamp, older)
                self._coming, self.serving = self.serving, Vectors(reading, home, old_engine)
                self._coming.on_complete = self._arrive
                self._coming.on_step = self.tell
        self._follow_up()

    def _follow_up(self) -> None:
        if self._leftover and self._coming is None:
            self.serving.on_complete = self._clear
            self.serving.nudge()

    def refresh(self, graph: Graph) -> Vectors:
        """The vectors to go by now, knowing of every change. For whoever holds the graph."""
        if self._coming is not None:
            self._coming.refresh(graph)
            if not self._coming.pending():
                self._change()
        self.serving.refresh(graph)
        return self.serving

    def tell(self) -> None:
        """Write down how far the change is, a line for each tenth."""
        done, everything = self.progress()
        tenth = 10 * done // max(everything, 1)
        if tenth > self._told and self._coming is not None:
            self._told = tenth
            log.warning("embedding anew with %s: %d of %d texts", self._coming.stamp, done, everything)

    def _arrive(self) -> None:
        """Everything has its new vector: they take over, also where nobody searches. Called by their worker."""
        with self._reading() as graph:
            self.refresh(graph)

    def _clear(self) -> None:
        """Everything has its vector: what other models left behind goes. Another process may serve by it still,
        and does so from memory. Called by the worker, which nobody waits for."""
        former, self._former = self._former, None
        if former is not None:
            former.close(FINISHING_SECONDS)  # what it was still embedding would be kept after the sweep
        leftover, self._leftover = self._leftover, []
        for stamp in leftover:
            try:
                self._home.forget(stamp)
            except MemoryFault as fault:
                log.debug("vectors of %s stay for now: %s", stamp, fault)

    def _change(self) -> None:
        old, coming = self.serving, self._coming
        assert coming is not None
        coming.on_fresh = old.on_fresh
        self.serving, self._coming, self._former = coming, None, old
        old.stop()
        self._follow_up()
        log.warning("everything is embedded with %s now", coming.stamp)

    def nudge(self) -> None:
        for vectors in (self.serving, self._coming):
            if vectors is not None:
                vectors.nudge()

    def progress(self) -> tuple[int, int]:
        """How far the change is: texts that have a vector of the wanted model, of how many."""
        return (self._coming or self.serving).progress()

    @property
    def is_changing(self) -> bool:
        return self._coming is not None

    def close(self) -> None:
        for vectors in (self._former, self._coming, self.serving):
            if vectors is not None:
                vectors.close()
