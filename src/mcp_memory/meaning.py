"""The vectors of one space: made when the first search or care needs them, kept up behind the writes.

Nobody waits for them with a lock held: the worker that makes them needs the graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mcp_memory.asides import say
from mcp_memory.facts import MemoryFault

if TYPE_CHECKING:
    from mcp_memory.graph import Graph
    from mcp_memory.search.changeover import Changeover
    from mcp_memory.search.vectors import Vectors
    from mcp_memory.space import Space

# A search waits so long for what lacks a vector, if it is no more than this.
SOON_EMBEDDED = 64
FIRST_SECONDS, SECONDS = 1.0, 0.3
# After the first write of a server's life: embedding loads a model, which has time until nobody waits for it.
QUIET_SECONDS = 2.0


class NoModel(MemoryFault):
    """There is no model, and searching by words alone was ruled out."""


class Meaning:
    """What the texts of a space mean, if there is a model to tell."""

    def __init__(self, space: Space, model: str, *, is_required: bool = False, is_kept: bool = True) -> None:
        """`is_required`: a search without a model fails. `is_kept`: False where nothing may be written."""
        self.model = model
        # Asked, without any lock held, with the ids of observations that have just got their vectors.
        self.on_fresh: list[Callable[[Sequence[int]], None]] = []
        self.follows_writes = False  # embed behind writes, before anybody searches
        self._space = space
        self._is_required = is_required
        self._is_kept = is_kept
        self._made: Changeover | None = None
        self._starter: threading.Thread | None = None
        self._closing = threading.Event()
        self._has_news = False
        self._was_changing = False

    def changeover(self) -> Changeover | None:
        """The vectors, and what happens when the model changes. None where there is no model."""
        if self._made is None and self.model != "none":
            with self._space.reading():
                if self._made is None:
                    self._made = self._make()
        return self._made

    def _make(self) -> Changeover | None:
        from mcp_memory.embedding import engine, engine_for

        chosen = engine(self.model)
        if chosen is None:
            return None
        from mcp_memory.embedding.places import remember
        from mcp_memory.search.changeover import Changeover
        from mcp_memory.stores.vectors import vectors_of

        if self._is_kept:
            remember(chosen.source)

        home = vectors_of(self._space.store, self._is_kept)
        made = Changeover(self._space.reading, home, chosen, engine_for)
        made.serving.on_fresh = self.on_fresh
        return made

    def fresh(self, graph: Graph) -> Vectors | None:
        """The vectors to go by now, knowing of every change. For whoever holds the graph."""
        made = self.changeover()
        return None if made is None else made.refresh(graph)

    def prepare(self) -> None:
        """Before a search: give what was written a moment ago its vectors, if that is a matter of a moment."""
        is_first = self._made is None
        if self.changeover() is None:
            if self._is_required:
                raise NoModel(self.why_not())
            return
        with self._space.reading() as graph:
            vectors = self.fresh(graph)
        self._tell_of_change()
        if vectors is not None and (is_first or vectors.pending() <= SOON_EMBEDDED):
            vectors.wait(FIRST_SECONDS if is_first else SECONDS)

    def _tell_of_change(self) -> None:
        """Who searches while everything is embedded anew is told how far it is, and the next one that it is over."""
        made = self._made
        if made is None or not (made.is_changing or self._was_changing):
            return
        self._was_changing = made.is_changing
        if made.is_changing:
            done, total = made.progress()
            say(
                "info", f"embedding everything with another model: {done} of {total} texts; the former serves meanwhile"
            )
        else:
            say("notice", "everything is embedded with the new model, which serves from now on")

    def why_not(self) -> str | None:
        """Why there are no vectors, in words for whoever called; None if there are."""
        from mcp_memory.embedding import why_not

        return why_not(self.model)

    def progress(self) -> tuple[int, int]:
        """How many texts have a vector of the wanted model, of how many. Looks, and starts nothing."""
        return (0, 0) if self._made is None else self._made.progress()

    def change(self) -> tuple[int, int] | None:
        """While everything is embedded anew for another model: how many texts have its vector, of how many."""
        made = self._made
        return made.progress() if made is not None and made.is_changing else None

    def nudge(self) -> None:
        """Something was written: see to it soon."""
        if self._made is not None:
            self._made.nudge()
        else:
            self._has_news = True
            self._start_soon()

    def catch_up(self) -> None:
        """A memory was opened: finish soon what a process that was killed had begun."""
        if self._is_kept and self._made is None:
            self._start_soon()

    def _start_soon(self) -> None:
        if self.follows_writes and self._starter is None and self.model != "none":
            self._starter = threading.Thread(target=self._start, name="embedding starter", daemon=True)
            self._starter.start()

    def _start(self) -> None:
        if self._closing.wait(QUIET_SECONDS):
            return
        self._starter = None  # a write from here on starts another one
        if (self._has_news or self._is_behind()) and self.changeover() is not None:
            with self._space.reading() as graph:
                self.fresh(graph)

    def _is_behind(self) -> bool:
        """Were there texts without a vector when nobody looked after them any more? Loads no model to find out."""
        from mcp_memory.embedding import engine
        from mcp_memory.stores.vectors import vectors_of

        chosen = engine(self.model)
        if chosen is None:
            return False
        with self._space.reading() as graph:
            seq = graph.seq
        return vectors_of(self._space.store).is_behind(chosen.stamp, seq)

    def close(self) -> None:
        self._closing.set()
        made, self._made = self._made, None
        if made is not None:
            made.close()
