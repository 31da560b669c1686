"""The text that stands for a whole entity: its name, the first and the last said of it, and in between what
says most that is new; then its relations, with their direction.

Pure and deterministic. The law: never more pieces than the model is given to read, counted by its own tokenizer. The
first and the last are always there, cut where they are too long; what is left out of the rest is left out whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.facts import GENERIC_KIND
from mcp_memory.search.folding import words

if TYPE_CHECKING:
    from mcp_memory.facts import Entity
    from mcp_memory.graph import Graph

MOST_TOKENS = 480
# Up to so many observations stand as they are; of more, so many first and last ones, as far as they fit.
FEW, HEAD, TAIL = 10, 3, 7
SEPARATOR, RELATED, BETWEEN = " | ", "Rel: ", "; "
# Relations in the text, the newest: a hub's thousands say little of it.
MOST_RELATIONS = 24
# Where not everything fits, relations have this part of the room, and what the observations leave.
RELATIONS_SHARE = 4
# Changed whenever a text that does not fit is shortened in another way: those are then embedded anew, and no others.
SHORTENING = "\2"

Count = Callable[[str], int]


class Parts(NamedTuple):
    """What the text of an entity is made of."""

    head: str
    observations: list[str]
    relations: list[str]

    def flat(self) -> list[str]:
        """All that the text follows from."""
        flat = [self.head, *self.observations, "\1", *self.relations]
        return flat if sum(map(len, flat)) < MOST_TOKENS else [SHORTENING, *flat]


def entity_parts(graph: Graph, entity: Entity) -> Parts:
    observations = [
        seen.text if seen.kind == GENERIC_KIND else f"[{seen.kind}] {seen.text}"
        for seen in entity.observations
        if seen.superseded_at is None
    ]
    relations = []
    if graph.degree(entity.id):
        for relation in graph.relations_of(entity.id)[-MOST_RELATIONS:]:
            if relation.source == entity.id:
                relations.append(f"{relation.relation_type} → {graph.name_of(relation.target)}")
            else:
                relations.append(f"{graph.name_of(relation.source)} → {relation.relation_type}")
    return Parts(f"{entity.name} ({entity.entity_type}) [{entity.status}]", observations, relations)


def entity_text(parts: Parts, count: Count, most: int = MOST_TOKENS) -> str:
    """The parts as one text of at most so many pieces."""
    whole = _written(parts.head, parts.observations, parts.relations)
    # No piece of such a text is shorter than a character, so a short one needs no counting.
    if (whole.isascii() and len(whole) < most) or count(whole) <= most:
        return whole
    head = _cut(parts.head, count, most // 2)
    room = most - count(f"{head}:")
    said = sum(count(text + SEPARATOR) for text in parts.observations)
    related = _fitting(parts.relations, count, max(room // RELATIONS_SHARE, room - said))
    chosen = _chosen(parts.observations, count, room - _cost_of(related, count))
    # Where a tokenizer makes more of two texts together than of each alone, what was chosen last goes again.
    while count(text := _written(head, [chosen[place] for place in sorted(chosen)], related)) > most and chosen:
        chosen.popitem()
    return _cut(text, count, most)


def _written(head: str, observations: Sequence[str], relations: Sequence[str]) -> str:
    said = [*observations] + ([RELATED + BETWEEN.join(relations)] if relations else [])
    return f"{head}: {SEPARATOR.join(said)}" if said else head


def _chosen(observations: Sequence[str], count: Count, room: int) -> dict[int, str]:
    """By their places those that fit, in the order in which they were chosen: the ends, cut to what each may have,
    the newest first; then those of the middle that say most that is new."""
    last = max(len(observations) - TAIL, 0)
    first = HEAD if len(observations) > FEW else last
    # The newest say what is true now: they are asked first.
    ends = [*reversed(range(last, len(observations))), *reversed(range(first))]
    apart = count(SEPARATOR)
    sizes = {place: count(observations[place]) + apart for place in ends}
    most = _share(sorted(sizes.values()), room)
    chosen: dict[int, str] = {}
    for place in ends:
        text = _cut(observations[place], count, min(most, room) - apart)
        if text:
            chosen[place] = text
            room -= min(sizes[place], count(text) + apart)
    for place in _telling(observations, range(first, last), ends):
        size = count(observations[place]) + apart
        if size <= room:
            chosen[place] = observations[place]
            room -= size
        elif room <= apart:
            break
    return chosen


def _share(sizes: Sequence[int], room: int) -> int:
    """The most that each may have so that all of them fit: the short ones stay whole, what they leave is for the long.
    The sizes are in order."""
    for place, size in enumerate(sizes):
        share = room // (len(sizes) - place)
        if size > share:
            return share
        room -= size
    return sizes[-1] if sizes else 0


def _telling(observations: Sequence[str], middle: Iterable[int], known: Iterable[int]) -> Iterator[int]:
    """The middle, beginning with those most of whose words neither the `known` nor those before them say.

    What is new can only become less, so only who stands in front is looked at again."""
    heard = {word for place in known for word in words(observations[place])}
    said = {place: words(observations[place]) for place in middle}
    waiting = [(-_new(found, heard), place) for place, found in said.items()]
    heapify(waiting)
    while waiting:
        promised, place = heappop(waiting)
        share = -_new(said[place], heard)
        if share > promised:
            heappush(waiting, (share, place))
            continue
        heard.update(said[place])
        yield place


def _new(found: Sequence[str], heard: Set[str]) -> float:
    """How many of these words are said for the first time, each counted once."""
    return len(set(found) - heard) / len(found) if found else 0.0


def _fitting(texts: Sequence[str], count: Count, room: int) -> list[str]:
    """The newest of them that fit, in their order."""
    chosen: list[str] = []
    for text in reversed(texts):
        if _cost_of([text, *chosen], count) > room:
            break
        chosen.insert(0, text)
    return chosen


def _cost_of(relations: Sequence[str], count: Count) -> int:
    return count(RELATED + BETWEEN.join(relations) + SEPARATOR) if relations else 0


def _cut(text: str, count: Count, most: int) -> str:
    """As much of a text's beginning as fits."""
    if most <= 0:
        return ""
    if count(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low]
