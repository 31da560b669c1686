"""What a tool that looks after the memory may touch: the facts for a moment, their vectors, their use, the customs.

Facts are read under the space's lock and thought about outside it: while a large entity is taken apart on paper,
everybody else is served."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mcp_memory.embedding.numerics import Floats
    from mcp_memory.facts import Customs
    from mcp_memory.graph import Graph
    from mcp_memory.search.limbic import Use


class Meanings(NamedTuple):
    """Vectors of some texts, in their order, and the model that made them. A row of NaN: not there yet."""

    vectors: Floats
    model: str
    is_complete: bool = True


class Curator(NamedTuple):
    """One act of care under way."""

    facts: Callable[[], AbstractContextManager[Graph]]  # the graph, as long as it is held
    customs: Customs
    meanings: Callable[[Sequence[str]], Meanings | None]  # of texts; None where there is no model
    # How near in meaning (cosine) to a question these reflections are; of those that have a vector.
    nearness: Callable[[str, Sequence[int]], Mapping[int, float]]
    uses: Callable[[], Mapping[str, Use]]  # what was shown or opened, by name of entity
    missing: Callable[[], str]  # why some vectors are not there, and what to do about it
    # Up to which observation duplicates were looked for; those behind it will be flagged later. May wait a little.
    examined: Callable[[], int]
    now: Callable[[], float]
