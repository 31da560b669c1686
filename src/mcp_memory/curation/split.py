"""When an entity has grown too large, into what it could be taken apart, and what then goes where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.curation.topics import Topics
from mcp_memory.facts import NAME_BYTES, BadInput
from mcp_memory.pace import reached

if TYPE_CHECKING:
    from mcp_memory.curation.curator import Curator
    from mcp_memory.facts import Entity
    from mcp_memory.graph import Graph

OTHERS = "*"  # the threshold of every type that has none of its own
CONTAINS, PART_OF = "contiene", "parte_de"


class Grown(msgspec.Struct, frozen=True):
    """What an analysis needs of an entity, taken from it at one moment."""

    name: str
    entity_type: str
    ids: list[int]
    texts: list[str]
    threshold: int

    @property
    def score(self) -> float:
        return round(len(self.texts) / self.threshold, 2)

    @property
    def is_large(self) -> bool:
        return len(self.texts) > self.threshold


def grown(entity: Entity, thresholds: Mapping[str, int]) -> Grown:
    active = entity.active()
    threshold = threshold_of(entity.entity_type, thresholds)
    return Grown(
        entity.name, entity.entity_type, [seen.id for seen in active], [seen.text for seen in active], threshold
    )


def threshold_of(entity_type: str, thresholds: Mapping[str, int]) -> int:
    """How many observations an entity of this type may have before it is worth a look."""
    return thresholds.get(entity_type) or thresholds[OTHERS]


def too_large(entities: Iterable[Entity], thresholds: Mapping[str, int]) -> list[Grown]:
    """The entities over their threshold, in order of creation."""
    least = min(thresholds.values())
    found = (grown(entity, thresholds) for entity in entities if len(entity.observations) > least)
    return [one for one in found if one.is_large]


class Analysis(msgspec.Struct):
    """An entity and what its observations are about."""

    of: Grown
    topics: Topics

    @property
    def needs_split(self) -> bool:
        return self.of.is_large and len(self.topics.groups) > 1

    def texts(self, rows: Sequence[int]) -> list[str]:
        return [self.of.texts[row] for row in rows]

    def told(self) -> dict[str, Any]:
        """As documented, and what would stay."""
        one = self.of
        told: dict[str, Any] = {
            "entity_name": one.name,
            "entity_type": one.entity_type,
            "observation_count": len(one.texts),
            "threshold": one.threshold,
            "needs_split": self.needs_split,
            "topics": {topic.name: self.texts(topic.rows) for topic in self.topics.named(one.texts)},
            "split_score": one.score,
        }
        if one.is_large:
            told |= {"without_topic": self.texts(self.topics.rest), "topics_by": self.topics.by}
        return told


def analyse(one: Grown, curator: Curator, may_read: bool = True) -> Analysis:
    """What an entity consists of. One below its threshold is left in peace: it has no topics."""
    return Analysis(one, curator.topics(one.texts, may_read) if one.is_large else Topics([], []))


# What finding the topics of one entity takes, in steps of a pace: some milliseconds.
STEPS_EACH = 5_000


def analysed(large: Sequence[Grown], curator: Curator, done: int = 0) -> list[Analysis]:
    """What each of these consists of, without waiting for a model; `done`: how many entities were looked at to find
    them."""
    found = []
    for number, one in enumerate(large, done):
        reached(number, done + len(large), "looking for topics", STEPS_EACH)
        found.append(analyse(one, curator, may_read=False))
    return found


def proposal(analysis: Analysis, known: Callable[[str], Collection[str]]) -> dict[str, Any] | None:
    """A split as execute_entity_split takes it; None where none is needed. `known`: what an entity of a name knows
    already, which cannot move there again."""
    if not analysis.needs_split:
        return None
    one = analysis.of
    children = []
    for topic in analysis.topics.named(one.texts):
        name = _child(one.name, topic.name)
        doubled = set(known(name))
        rows = [row for row in topic.rows if one.texts[row] not in doubled]
        if rows:
            children.append((name, rows))
    if not children:
        return None
    moving = {row for _, rows in children for row in rows}
    return {
        "original_entity": {"name": one.name, "entity_type": one.entity_type},
        "suggested_splits": [
            {"name": name, "entity_type": one.entity_type, "observations": analysis.texts(rows)}
            for name, rows in children
        ],
        "relations_to_create": [
            {"from": source, "to": target, "type": relation_type}
            for name, _ in children
            for source, relation_type, target in ((one.name, CONTAINS, name), (name, PART_OF, one.name))
        ],
        "analysis": {
            "observation_count": len(one.texts),
            "threshold": one.threshold,
            "split_score": one.score,
            "num_topics": len(children),
        },
        "remaining": [text for row, text in enumerate(one.texts) if row not in moving],
    }


def _child(parent: str, topic: str) -> str:
    """A name for a part that no tool refuses: of a very long one its beginning."""
    room = NAME_BYTES - len(f" - {topic}".encode())
    return f"{parent.encode()[: max(room, 0)].decode(errors='ignore')} - {topic}"


def moving(graph: Graph, original: Entity, splits: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[int, list[int]]]:
    """Which observations go with which split; BadInput for a split that would lose, double or invent something."""
    by_text = {seen.text: seen for seen in original.active()}
    by_id = {seen.id: seen for seen in original.observations}
    taken: dict[str, str] = {}
    found: list[tuple[int, list[int]]] = []
    seen_names: set[str] = set()
    for number, (name, texts) in enumerate(splits):
        _refuse_name(graph, original, name, texts, seen_names)
        ids: set[int] = set()
        for text in texts:
            seen = by_text.get(text)
            if seen is None:
                raise BadInput(
                    f"{original.name} has no active observation {_shortened(text)!r}, so it cannot move to {name!r}. "
                    "Give the exact texts, as propose_entity_split lists them."
                )
            if text in taken:
                raise BadInput(f"{_shortened(text)!r} is listed twice, for {taken[text]!r} and {name!r}. List it once.")
            taken[text] = name
            # What it replaced goes with it: its history is told beside it or not at all.
            while seen is not None:
                ids.add(seen.id)
                seen = by_id.get(seen.supersedes or 0)
        _refuse_doubling(graph, name, texts)
        found.append((number, sorted(ids)))
    return found


def _refuse_name(graph: Graph, original: Entity, name: str, texts: Sequence[str], names: set[str]) -> None:
    if name == original.name:
        raise BadInput(f"{name!r} is the entity to be split. Leave out what shall stay with it.")
    if name in names:
        raise BadInput(f"Two splits are named {name!r}. Make one of them, or name them differently.")
    names.add(name)
    if not texts:
        raise BadInput(f"The split {name!r} has no observations. Leave it out.")


def _refuse_doubling(graph: Graph, name: str, texts: Sequence[str]) -> None:
    known = graph.find(name)
    doubled = set(texts).intersection(known.texts()) if known is not None else ()
    if doubled:
        raise BadInput(f"{name!r} knows {_shortened(min(doubled))!r} already. Leave it out, or delete one of the two.")


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
