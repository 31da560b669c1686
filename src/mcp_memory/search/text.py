"""Finding entities by their words: literal substrings first, then word beginnings, then relevance.

No search looks at every entity. A substring that ends inside a word can only come from a word of the
vocabulary that contains it, and the vocabulary grows far slower than the graph: it is one string,
scanned at memory speed; the entities of the words found are checked against the literal text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mcp_memory.facts import Entity
from mcp_memory.search.folding import WORD, fold, words
from mcp_memory.search.stopwords import STOP_WORDS

if TYPE_CHECKING:
    from mcp_memory.graph import Graph

# BM25 as everybody uses it.
K1, B = 1.2, 0.75
# Exact term counts are only taken for this many of the most promising entities.
MOST_RANKED = 500
# New words are scanned from a list until there are so many that joining them pays.
MOST_RECENT = 512


def fields(entity: Entity) -> list[str]:
    """What is searched of an entity."""
    return [entity.name, entity.entity_type, *entity.texts()]


class TextIndex:
    """Which words occur in which entities; follows the graph, entity by entity."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.postings: dict[str, set[int]] = {}
        self.words_of: dict[int, frozenset[str]] = {}
        self.lengths: dict[int, int] = {}
        self.total_length = 0
        self.pairs = 0  # (word, entity)
        self.word_bytes = 0
        self._vocabulary = "\n"  # every word once ever used, each between line ends
        self._recent: list[str] = []
        self._known: dict[str, str] = {}  # one string for each word
        for entity in graph.entities():
            self._add(entity)

    def refresh(self, touched: set[int]) -> None:
        """Index these entities anew, and empty the set."""
        if not touched:
            return
        for entity_id in touched:
            self._remove(entity_id)
            entity = self.graph.by_id.get(entity_id)
            if entity is not None and not entity.is_placeholder:
                self._add(entity)
        touched.clear()

    def _add(self, entity: Entity) -> None:
        if entity.id in self.words_of:
            return
        found = words("\n".join(fields(entity)))
        distinct = frozenset(map(self._word, found))
        self.words_of[entity.id] = distinct
        self.lengths[entity.id] = len(found)
        self.total_length += len(found)
        self.pairs += len(distinct)
        for word in distinct:
            holders = self.postings.get(word)
            if holders is None:
                self.postings[word] = {entity.id}
                self.word_bytes += len(word.encode())
            else:
                holders.add(entity.id)

    def _word(self, word: str) -> str:
        known = self._known.get(word)
        if known is None:
            self._known[word] = known = word
            self._recent.append(word)
        return known

    def _remove(self, entity_id: int) -> None:
        gone = self.words_of.pop(entity_id, frozenset())
        self.total_length -= self.lengths.pop(entity_id, 0)
        self.pairs -= len(gone)
        for word in gone:
            holders = self.postings[word]
            holders.discard(entity_id)
            if not holders:
                del self.postings[word]
                self.word_bytes -= len(word.encode())

    # ── literal substrings ───────────────────────────────────────────────────────────────────────

    def literal(self, query: str) -> list[Entity]:
        """Every entity with the query as a substring of one of its fields, in order of creation."""
        folded = fold(query)
        if not folded:
            return []
        by_id = self.graph.by_id
        candidates = self.candidates(folded)
        if WORD.fullmatch(folded):  # inside one word: the vocabulary has answered exactly
            return [by_id[entity_id] for entity_id in sorted(candidates)]
        return [
            by_id[entity_id]
            for entity_id in sorted(candidates)
            if any(folded in fold(field) for field in fields(by_id[entity_id]))
        ]

    def candidates(self, folded: str) -> set[int]:
        """A superset of the entities that contain this folded text."""
        runs = list(WORD.finditer(folded))
        if not runs:  # punctuation only: nothing in the vocabulary can tell
            return set(self.words_of)
        found: set[int] | None = None
        # Whole words first: they are the rarest and cost one look-up.
        for run in sorted(runs, key=lambda run: (run.start() == 0) + (run.end() == len(folded))):
            holders = self._holders(run[0], run.start() > 0, run.end() < len(folded))
            found = holders if found is None else found & holders
            if not found:
                break
        return found or set()

    def _holders(self, part: str, from_start: bool, to_end: bool) -> set[int]:
        if from_start and to_end:
            return self.postings.get(part, set())
        pattern = ("\n" if from_start else "") + part + ("\n" if to_end else "")
        return set().union(*(self.postings.get(word, ()) for word in self._scan(pattern)))

    def _scan(self, pattern: str) -> Iterator[str]:
        """Words of the vocabulary matching a pattern in which a line end stands for the end of a word."""
        if len(self._recent) > MOST_RECENT or self._vocabulary == "\n":
            self._vocabulary += "".join(f"{word}\n" for word in self._recent)
            self._recent.clear()
        for word in self._recent:
            if pattern in f"\n{word}\n":
                yield word
        vocabulary = self._vocabulary
        at = vocabulary.find(pattern)
        while at >= 0:
            inside = at + 1 if pattern[0] == "\n" else at
            start = vocabulary.rfind("\n", 0, inside) + 1
            end = vocabulary.index("\n", inside)
            yield vocabulary[start:end]
            at = vocabulary.find(pattern, end)

    # ── ranking ──────────────────────────────────────────────────────────────────────────────────

    def search(self, query: str, entity_type: str | None = None) -> list[Entity]:
        """The three steps: the literal set; else all words as word beginnings; else relevance."""

        def of_type(found: Iterable[Entity]) -> list[Entity]:
            return [entity for entity in found if not entity_type or entity.entity_type == entity_type]

        literal = of_type(self.literal(query))
        if literal:
            return _best_first(literal, fold(query))
        asked = list(dict.fromkeys(words(query)))
        if not asked:
            return []
        return of_type(self._beginning_with(asked)) or of_type(self.relevant(asked))

    def _beginning_with(self, asked: list[str]) -> list[Entity]:
        """Entities in which every word asked for begins some word; most such words first."""
        hits: dict[int, int] | None = None
        for word in asked:
            counts: dict[int, int] = {}
            for longer in self._scan(f"\n{word}"):
                for entity_id in self.postings.get(longer, ()):
                    counts[entity_id] = counts.get(entity_id, 0) + 1
            hits = counts if hits is None else {i: hits[i] + n for i, n in counts.items() if i in hits}
            if not hits:
                return []
        ranked = sorted((hits or {}).items(), key=lambda item: (-item[1], item[0]))
        return [self.graph.by_id[entity_id] for entity_id, _ in ranked]

    def relevant(self, asked: list[str]) -> list[Entity]:
        """Entities with any of these words, by BM25; function words count only when there is nothing else."""
        telling = [word for word in asked if word not in STOP_WORDS] or asked
        weights = {word: self._weight(word) for word in telling if word in self.postings}
        scores: dict[int, float] = {}
        for word, weight in weights.items():
            for entity_id in self.postings[word]:
                scores[entity_id] = scores.get(entity_id, 0.0) + weight
        promising = sorted(scores, key=lambda entity_id: (-scores[entity_id], entity_id))[:MOST_RANKED]
        exact = {entity_id: self._bm25(entity_id, weights) for entity_id in promising}
        promising.sort(key=lambda entity_id: (-exact[entity_id], entity_id))
        return [self.graph.by_id[entity_id] for entity_id in promising]

    def _weight(self, word: str) -> float:
        holders = len(self.postings[word])
        return math.log(1 + (len(self.words_of) - holders + 0.5) / (holders + 0.5))

    def _bm25(self, entity_id: int, weights: dict[str, float]) -> float:
        found = words("\n".join(fields(self.graph.by_id[entity_id])))
        average = self.total_length / len(self.words_of)
        dampening = K1 * (1 - B + B * len(found) / average)
        score = 0.0
        for word, weight in weights.items():
            often = found.count(word)
            score += weight * often * (K1 + 1) / (often + dampening)
        return score


def _best_first(found: list[Entity], folded: str) -> list[Entity]:
    """The name itself, names beginning with it, names with it as a word, names with it, then by mentions."""
    as_word = re.compile(rf"\b{re.escape(folded)}\b")

    def rank(entity: Entity) -> tuple[int, int, int]:
        name = fold(entity.name)
        if name == folded:
            closeness = 0
        elif name.startswith(folded):
            closeness = 1
        elif folded in name:
            closeness = 2 if as_word.search(name) else 3
        else:
            closeness = 4
        mentions = sum(folded in fold(text) for text in entity.texts())
        return closeness, -mentions, entity.id

    return sorted(found, key=rank)
