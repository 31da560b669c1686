"""The text that stands for a whole entity: its name, the first and the last said of it, and in between what
says most that is new; then its relations, with their direction.

Pure and deterministic. The law: never more pieces than the model is given to read, counted by its own
tokenizer; what is left out is left out whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.facts import GENERIC_KIND
from mcp_memory.search.folding import words

if TYPE_CHECKING:
    from mcp_memory.facts import Entity
    from mcp_memory.graph import Graph

MOST_TOKENS = 480
# Up to so many observations stand as they are; of more, so many first and last ones, as far as they fit.
FEW, HEAD, TAIL = 10, 3, 7
SEPARATOR = " | "
# Relations in the text: a hub's thousands say little of it.
MOST_RELATIONS = 24
# Of the whole, relations take this share at most.
RELATIONS_SHARE = 4

Count = Callable[[str], int]


class Parts(NamedTuple):
    """What the text of an entity is made of."""

    head: str
    observations: list[str]
    relations: list[str]

    def flat(self) -> list[str]:
        return [self.head, *self.observations, "\1", *self.relations]


def entity_parts(graph: Graph, entity: Entity) -> Parts:
    observations = [
        seen.text if seen.kind == GENERIC_KIND else f"[{seen.kind}] {seen.text}"
        for seen in entity.observations
        if seen.superseded_at is None
    ]
    relations = []
    if graph.degree(entity.id):
        for relation in graph.relations_of(entity.id)[:MOST_RELATIONS]:
            if relation.source == entity.id:
                relations.append(f"{relation.relation_type} → {graph.name_of(relation.target)}")
            else:
                relations.append(f"{graph.name_of(relation.source)} → {relation.relation_type}")
    return Parts(f"{entity.name} ({entity.entity_type}) [{entity.status}]", observations, relations)


def entity_text(parts: Parts, count: Count, most: int = MOST_TOKENS) -> str:
    """The parts as one text of at most so many pieces."""
    whole = _written(parts.head, parts.observations, parts.relations)
    # No piece is shorter than a character, so a short text needs no counting.
    if len(whole) <= most or count(whole) <= most:
        return whole
    head = _cut(parts.head, count, most // 2)
    left = most - count(head) - 2
    related = _fitting(parts.relations, count, left // RELATIONS_SHARE)
    left -= sum(count(each) + 2 for each in related)
    return _written(head, _chosen(parts.observations, count, left), related)


def _written(head: str, observations: Sequence[str], relations: Sequence[str]) -> str:
    said = [*observations] + ([f"Rel: {'; '.join(relations)}"] if relations else [])
    return f"{head}: {SEPARATOR.join(said)}" if said else head


def _chosen(observations: Sequence[str], count: Count, left: int) -> list[str]:
    """Those of the observations that fit, in their order: the ends first, then the most diverse of the middle."""
    last = max(len(observations) - TAIL, 0)
    first = HEAD if len(observations) > FEW else last
    # The newest say what is true now: they are asked first.
    ends, middle = [*reversed(range(last, len(observations))), *range(first)], range(first, last)
    chosen: list[tuple[int, str]] = []
    for place in [*ends, *sorted(middle, key=lambda place: -_diversity(observations[place]))]:
        size = count(observations[place]) + 1
        if size <= left:
            chosen.append((place, observations[place]))
            left -= size
        elif not chosen:  # one long observation is cut rather than left out
            chosen.append((place, _cut(observations[place], count, left)))
            left = 0
    return [text for _, text in sorted(chosen)]


def _diversity(text: str) -> float:
    """How many of its words are said once; short texts have it easy, so length counts a little."""
    found = words(text)
    return len(set(found)) / len(found) * min(len(found), 8) / 8 if found else 0.0


def _fitting(texts: Sequence[str], count: Count, left: int) -> list[str]:
    chosen = []
    for text in texts:
        left -= count(text) + 2
        if left < 0:
            break
        chosen.append(text)
    return chosen


def _cut(text: str, count: Count, most: int) -> str:
    """As much of a text's beginning as fits."""
    low, high = 0, len(text)
    if count(text) <= most:
        return text
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low]
