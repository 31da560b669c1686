"""Every observation as a passage that may answer a question: by its words, its neighbours' and its entity's.

BM25 over weighted fields, as arrays: a question costs a few array operations on the rows of its words and
never a look at a text. What is said is often only clear beside what was said before it, so neighbours
count too, the farther the less; long observations speak for themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from mcp_memory.facts import Entity
from mcp_memory.search.folding import words
from mcp_memory.search.question import Question, tells_when
from mcp_memory.search.stems import stems

if TYPE_CHECKING:
    from mcp_memory.graph import Graph

# How much the words of a neighbour count, by its distance; those of the entity's name and type.
NEIGHBOURS = ((-3, 0.2), (-2, 0.4), (-1, 0.6), (1, 0.4), (2, 0.2))
NAME_WEIGHT = 0.5
# Observations of more words than this stand alone, and are nobody's context.
SPEAKS_FOR_ITSELF = 60
K1, B = 1.2, 0.5
# "Ada: I went there" was said by Ada.
SPEAKER = re.compile(r"([^\W\d_][\w .'-]{0,30}): ")

Array = np.ndarray[Any, Any]


class Passages:
    """All active observations of some entities. One that has none is a passage itself, with no observation."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        self.observations: list[int | None] = []
        self.owners: list[int] = []
        self.who: list[frozenset[str]] = []  # words of the name of who says it, or of the entity
        self._timely: list[bool] = []
        self._lengths: list[float] = []
        self._rows: dict[str, list[int]] = {}
        self._counts: dict[str, list[float]] = {}
        self._names: dict[str, frozenset[str]] = {}
        for entity in entities:
            self._add(entity)
        self.timely = np.array(self._timely, bool)
        self._postings = self._weighed()

    def __len__(self) -> int:
        return len(self.owners)

    def _add(self, entity: Entity) -> None:
        active = entity.active()
        said = [words(seen.text) for seen in active]
        own = [stems(each) for each in said]
        is_short = [len(each) <= SPEAKS_FOR_ITSELF for each in said]
        titled = words(f"{entity.name} {entity.entity_type}")
        name, title = frozenset(words(entity.name)), stems(titled) or titled
        if not active:
            self._keep(None, entity.id, name, False, dict.fromkeys(title, 1.0))
        for index, seen in enumerate(active):
            counts = dict.fromkeys(title, NAME_WEIGHT)
            for stem in own[index]:
                counts[stem] = counts.get(stem, 0.0) + 1.0
            if is_short[index]:
                for distance, weight in NEIGHBOURS:
                    other = index + distance
                    if 0 <= other < len(own) and is_short[other]:
                        for stem in own[other]:
                            counts[stem] = counts.get(stem, 0.0) + weight
            self._keep(seen.id, entity.id, self._speaker(seen.text) or name, tells_when(said[index]), counts)

    def _keep(
        self, observation: int | None, owner: int, who: frozenset[str], timely: bool, counts: dict[str, float]
    ) -> None:
        row = len(self.owners)
        self.observations.append(observation)
        self.owners.append(owner)
        self.who.append(who)
        self._timely.append(timely)
        self._lengths.append(sum(counts.values()))
        for stem, count in counts.items():
            rows = self._rows.get(stem)
            if rows is None:
                self._rows[stem], self._counts[stem] = [row], [count]
            else:
                rows.append(row)
                self._counts[stem].append(count)

    def _speaker(self, text: str) -> frozenset[str] | None:
        """The words of the name before the colon, where somebody is quoted."""
        found = SPEAKER.match(text)
        if found is None:
            return None
        name = self._names.get(found[1])
        if name is None:
            name = self._names[found[1]] = frozenset(words(found[1]))
        return name

    def _weighed(self) -> dict[str, tuple[Array, Array]]:
        """For each stem the passages that have it, and what each scores for it."""
        total = len(self)
        lengths = np.array(self._lengths, np.float32)
        dampening = K1 * (1 - B + B * lengths / (float(lengths.mean()) or 1.0)) if total else lengths
        weighed = {}
        for stem, rows in self._rows.items():
            at = np.array(rows, np.int32)
            often = np.array(self._counts[stem], np.float32)
            sayers = int((often >= 1.0).sum()) or len(rows)  # who says it, not who stands beside
            rarity = math.log(1 + (total - sayers + 0.5) / (sayers + 0.5))
            weighed[stem] = (at, (rarity * often * (K1 + 1) / (often + dampening[at])).astype(np.float32))
        del self._rows, self._counts, self._lengths, self._timely
        return weighed

    def text_scores(self, question: Question) -> Array:
        """What the words of each passage score for a question."""
        scores = np.zeros(len(self), np.float32)
        for kinds in question.subjects:
            for stem in kinds:
                posting = self._postings.get(stem)
                if posting is not None:
                    scores[posting[0]] += posting[1]
        return scores

    def named(self, question: Question) -> Array:
        """Which passages are said by, or about, somebody whom the question names."""
        known: dict[frozenset[str], bool] = {}
        asked = question.words
        for name in self.who:
            if name not in known:
                known[name] = bool(name) and name <= asked
        return np.array([known[name] for name in self.who], bool)


# Changed entities are kept in an index of their own beside the large one, until there are this many.
MOST_CHANGED = 500


class PassageIndex:
    """The passages of a graph, kept up with it entity by entity."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.touched: set[int] = set()
        graph.followers.append(self.touched)
        self._pack()

    def _pack(self) -> None:
        self._packed = Passages(self._graph.entities())
        self._changed: set[int] = set()
        self._hidden: Array | None = None  # rows of the packed passages whose entity has changed
        self._fresh = Passages(())
        self.touched.clear()

    def parts(self) -> list[tuple[Passages, Array | None]]:
        """What to search, each with the rows that no longer count."""
        if self.touched:
            self._changed |= self.touched
            self.touched.clear()
            if len(self._changed) > MOST_CHANGED:
                self._pack()
            else:
                self._follow()
        return [(self._packed, self._hidden), (self._fresh, None)]

    def _follow(self) -> None:
        changed = [self._graph.by_id.get(entity_id) for entity_id in sorted(self._changed)]
        self._fresh = Passages(entity for entity in changed if entity is not None and not entity.is_placeholder)
        self._hidden = np.isin(self._packed.owners, list(self._changed))
