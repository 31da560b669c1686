"""What a tool that looks after the memory may touch: the facts for a moment, their vectors, their use, the customs.

Facts are read under the space's lock and thought about outside it: while a large entity is taken apart on paper,
everybody else is served."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.pace import reached

if TYPE_CHECKING:
    from mcp_memory.curation.topics import Topics
    from mcp_memory.embedding.numerics import Floats
    from mcp_memory.facts import Customs, Entity
    from mcp_memory.graph import Graph
    from mcp_memory.search.limbic import Use


# Entities looked at while the graph is held: about 10 ms.
PIECE = 4096


class Meanings(NamedTuple):
    """Vectors of some texts, in their order, and the model that made them. A row of NaN: not there yet."""

    vectors: Floats
    model: str
    is_complete: bool = True


class Curator(NamedTuple):
    """One act of care under way."""

    facts: Callable[[], AbstractContextManager[Graph]]  # the graph, as long as it is held
    pause: Callable[[], None]  # let others have the graph for a moment
    customs: Customs
    meanings: Callable[[Sequence[str]], Meanings | None]  # of texts; None where there is no model
    # What these texts are about; may it take the time to read those that have no vector yet?
    topics: Callable[[Sequence[str], bool], Topics]
    # How near in meaning (cosine) to a question these reflections are; of those that have a vector.
    nearness: Callable[[str, Sequence[int]], Mapping[int, float]]
    uses: Callable[[], Mapping[str, Use]]  # what was shown or opened, by name of entity
    # Why some vectors are not there, and what to do about it; given what was done without them.
    missing: Callable[[str], str]
    # Up to which observation duplicates were looked for; those behind it will be flagged later. May wait a little.
    examined: Callable[[], float]
    now: Callable[[], float]
    name_once: Callable[[int], str | None]  # what an entity that is gone was called, where that is known

    def passing(self) -> Iterator[Entity]:
        """Every entity, in order of creation, each to be looked at and let go: who waits for the graph gets it after
        every few thousand."""
        start, end = 0, 1
        while start < end:
            reached(start, end, "looking at entities", PIECE if start else 0)
            with self.facts() as graph:
                end = graph.next_entity
                yield from (one for one in graph.by_id.between(start, start + PIECE) if not one.is_placeholder)
            start += PIECE
            self.pause()
