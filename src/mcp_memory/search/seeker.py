"""What a tool that searches by relevance may touch: the graph, what was used before, and who asks.

The law: a question is encoded between two looks at the graph, so nobody waits for a model with a lock held."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mcp_memory.graph import Graph
    from mcp_memory.search.seeking import Asked
    from mcp_memory.search.usage import Usage
    from mcp_memory.search.vectors import Vectors

log = logging.getLogger("mcp_memory")


class Seeker(NamedTuple):
    """One search under way."""

    facts: Callable[[], AbstractContextManager[Graph]]  # the graph, as long as it is held
    usage: Usage
    origin: str
    vectors: Callable[[Graph], Vectors | None]  # what the texts of a graph mean; None where there is no model
    why_not: Callable[[], str | None]  # why there is none, in words for whoever asked
    # While another model takes over: how many texts have its vector, of how many.
    change: Callable[[], tuple[int, int] | None] = lambda: None


def ask(seeker: Seeker, query: str) -> Asked:
    """The question with its meaning, if there is a model to tell; one that fails is as good as none."""
    from mcp_memory.search.seeking import Asked, listen

    with seeker.facts() as graph:
        question, wordings = listen(graph, query)
        vectors = seeker.vectors(graph)
    if vectors is None:
        return Asked(question)
    try:
        # The product with a sum is the sum of the products: one scan for all wordings.
        first, *others = (vectors.engine.encode([wording], "query") for wording in wordings)
        meaning = sum(others, first)
        return Asked(question, vectors, meaning / (meaning**2).sum() ** 0.5 if others else first)
    except Exception:
        log.exception("the model failed; this search goes by words")
        return Asked(question)
