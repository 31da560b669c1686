"""Who bears the name that was asked for.

A name is short: what others say of it, more often or at greater length, may crowd it out of the best passages. Whoever
types a name wants to see who bears it, so it is looked up beside them, by the words of titles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_memory.search.folding import fold
from mcp_memory.search.passages import Array, Passages, np
from mcp_memory.search.question import Question

if TYPE_CHECKING:
    from mcp_memory.graph import Graph

# So many titles with all the words are compared with the question, letter by letter.
MOST_COMPARED = 1000


def bearers(graph: Graph, passages: Passages, question: Question) -> list[int]:
    """The places of the entities whose name is the question, whatever their case and accents."""
    asked = fold(question.query)
    places = _titled(passages, question)[:MOST_COMPARED]
    owners = passages.owners[places].tolist()
    return [
        place
        for place, owner in zip(places.tolist(), owners, strict=True)
        if owner in graph.by_id and fold(graph.name_of(owner)) == asked
    ]


def _titled(passages: Passages, question: Question) -> Array:
    """The places of those that have all the words in their title."""
    found: Array = None
    for kinds in question.subjects:
        with_word = np.unique(np.concatenate([_with(passages, stem) for stem in kinds]))
        found = with_word if found is None else np.intersect1d(found, with_word, assume_unique=True)
        if not len(found):
            break
    return np.zeros(0, np.int64) if found is None else found


def _with(passages: Passages, stem: str) -> Array:
    """The places of those that have it in their title. One of which nothing is said is its title."""
    rows, places = passages.saying(stem)
    bare = rows[passages.ids[rows] == 0]
    return np.concatenate([places, passages.slot[bare]])
