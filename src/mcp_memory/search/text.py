"""Finding entities by their words: literal substrings first, then word beginnings, then relevance.

No search looks at every entity. A substring that ends inside a word can only come from a word of the
vocabulary that contains it, and the vocabulary grows far slower than the graph: it is one string,
scanned at memory speed; the entities of the words found are checked against the literal text."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import compress, repeat
from operator import not_
from typing import TYPE_CHECKING

from mcp_memory.facts import Entity
from mcp_memory.pace import spend
from mcp_memory.search.folding import WORD, fold, words
from mcp_memory.search.packing import pack
from mcp_memory.search.stopwords import STOP_WORDS
from mcp_memory.search.words import Words, searched

if TYPE_CHECKING:
    from mcp_memory.graph import Graph

# BM25 as everybody uses it.
K1, B = 1.2, 0.75
# Texts are only read for this many of the most promising entities.
MOST_RANKED = 500
# Once this many entities changed, and a quarter of all, the index is packed anew.
MOST_CHANGED = 5000
# Folded names kept at hand.
MOST_NAMES = 100_000
# So few entities are read rather than asked the vocabulary about once more.
FEW = 64
# Finding an entity among packed ones, in the time that unpacking one takes.
SEARCH_COST = 8
# So many texts are folded as one, with these between them and their fields.
TEXTS_AT_ONCE = 500
BETWEEN_ENTITIES, BETWEEN_FIELDS = "\0", "\n"
# New words are scanned from a list until there are so many that joining them pays.
MOST_RECENT = 512


class TextIndex:
    """Which words occur in which entities: a packed index, and over it what changed since it was made."""

    def __init__(self, graph: Graph, packed: Words | None = None) -> None:
        self.graph = graph
        if packed is None:
            packed = pack(graph.entities())
            graph.touched.clear()
        self._pack(packed)

    def _pack(self, packed: Words) -> None:
        self.packed = packed
        self.hidden: set[int] = set()  # entities that changed: what is packed of them no longer counts
        self.postings: dict[str, set[int]] = {}
        self.words_of: dict[int, frozenset[str]] = {}
        self.lengths: dict[int, int] = {}
        self.total_length = packed.total_length
        self.pairs = packed.pairs  # (word, entity)
        self.documents = len(packed.owners())
        self._vocabulary = "\n"  # every word once used by a changed entity, each between line ends
        self._recent: list[str] = []
        self._known: set[str] = set()
        self._names: dict[int, str] = {}  # folded; an id keeps its name for ever

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
        if len(self.words_of) > max(MOST_CHANGED, len(self.packed.owners()) // 4):
            self._pack(pack(self.graph.entities()))

    def _add(self, entity: Entity) -> None:
        found = words("\n".join(searched(entity)))
        distinct = self.words_of[entity.id] = frozenset(found)
        self.lengths[entity.id] = len(found)
        self.documents += 1
        self.total_length += len(found)
        self.pairs += len(distinct)
        for word in distinct:
            holders = self.postings.get(word)
            if holders is None:
                self.postings[word] = {entity.id}
                if word not in self._known:
                    self._known.add(word)
                    self._recent.append(word)
            else:
                holders.add(entity.id)

    def _remove(self, entity_id: int) -> None:
        gone = self.words_of.pop(entity_id, None)
        if gone is None:
            self._hide(entity_id)
            return
        self.documents -= 1
        self.total_length -= self.lengths.pop(entity_id)
        self.pairs -= len(gone)
        for word in gone:
            holders = self.postings[word]
            holders.discard(entity_id)
            if not holders:
                del self.postings[word]

    def _hide(self, entity_id: int) -> None:
        counts = None if entity_id in self.hidden else self.packed.counts(entity_id)
        if counts is not None:
            self.hidden.add(entity_id)
            self.documents -= 1
            self.total_length -= counts[0]
            self.pairs -= counts[1]

    @property
    def vocabulary_size(self) -> tuple[int, int]:
        """How many words are kept, and their bytes; words no longer used go when the index is packed."""
        words_kept = len(self.packed) + len(self._known)
        return words_kept, self.packed.vocabulary_bytes + sum(len(word.encode()) for word in self._known)

    # ── literal substrings ───────────────────────────────────────────────────────────────────────

    def literal(self, query: str, allowed: Collection[int] | None = None) -> list[list[int]]:
        """Every entity with the query as a substring of one of its fields, in tiers: it is the name, the
        name begins with it, the name has it, something else has it; each in order of creation."""
        folded = fold(query)
        if not folded:
            return [[], [], [], []]
        candidates = self.candidates(folded, allowed)
        spend(len(candidates))
        names = self._folded_names(candidates)
        # Column by column: 40,000 names one by one took four times as long.
        begins = list(map(str.startswith, names, repeat(folded)))
        beginning = list(compress(candidates, begins))
        exact = [i for i, name in zip(candidates, names, strict=True) if name == folded] if folded in names else []
        if exact:
            taken = set(exact)
            beginning = [entity_id for entity_id in beginning if entity_id not in taken]
        inside: list[int] = []
        elsewhere: list[int] = []
        if len(beginning) + len(exact) < len(candidates):
            for entity_id, name in compress(zip(candidates, names, strict=True), map(not_, begins)):
                (inside if folded in name else elsewhere).append(entity_id)
            if WORD.fullmatch(folded) is None:  # inside one word the vocabulary has answered exactly
                elsewhere = self._saying(elsewhere, folded)
        return [exact, beginning, inside, elsewhere]

    def _saying(self, entity_ids: list[int], folded: str) -> list[int]:
        """Those of these that have the text in a field. So many at a time are folded as one: a third of the time."""
        found: list[int] = []
        for start in range(0, len(entity_ids), TEXTS_AT_ONCE):
            some = entity_ids[start : start + TEXTS_AT_ONCE]
            spend(len(some))
            fields = list(map(searched, map(self.graph.by_id.__getitem__, some)))
            whole = fold(BETWEEN_ENTITIES.join(map(BETWEEN_FIELDS.join, fields)))
            if folded not in whole:
                continue
            texts = whole.split(BETWEEN_ENTITIES)
            if len(texts) == len(some) and BETWEEN_FIELDS not in folded:
                found += compress(some, (folded in text for text in texts))
            else:  # somebody writes what we part texts with
                found += [one for one, said in zip(some, fields, strict=True) if any(folded in fold(s) for s in said)]
        return found

    def _folded_names(self, entity_ids: Collection[int]) -> list[str]:
        try:
            return list(map(self._names.__getitem__, entity_ids))
        except KeyError:
            folded = list(map(fold, self.graph.names_of(entity_ids)))
        if len(self._names) + len(folded) > MOST_NAMES:
            self._names.clear()
        if len(folded) <= MOST_NAMES:
            self._names.update(zip(entity_ids, folded, strict=True))
        return folded

    def candidates(self, folded: str, allowed: Collection[int] | None = None) -> list[int]:
        """A superset of the entities that contain this folded text, in order of creation."""
        runs = list(WORD.finditer(folded))
        if not runs:  # punctuation only: nothing in the vocabulary can tell
            return list(allowed) if allowed is not None else self.graph.entity_page("", 0, self.graph.entity_count)[0]
        found: list[int] | None = None
        # Words whose beginning is given first: they cost a look-up, and the others a scan of the vocabulary.
        for run in sorted(runs, key=lambda run: (run.start() == 0, run.end() == len(folded))):
            if found is not None and len(found) <= FEW:  # reading these costs less
                break
            holders = self._holders(run[0], run.start() > 0, run.end() < len(folded))
            if found is None and allowed is not None:
                found = list(allowed) if holders.cover(self.documents) else holders.among(allowed)
            else:
                found = holders.united() if found is None else holders.among(found)
        return found or []

    def _holders(self, part: str, from_start: bool, to_end: bool) -> Holders:
        """The entities with a word that contains a part, begins or ends with it, or is it."""
        packed, live = self.packed, self.postings
        if from_start and to_end:
            return Holders([packed.holders_of(part)], self.hidden, [live[part]] if part in live else [])
        pattern = ("\n" if from_start else "") + part + ("\n" if to_end else "")
        changed = [live[word] for word in self._changed_words(pattern) if word in live]
        if from_start:
            beginning = packed.beginning_with(part)
            return Holders([packed.holders_between(beginning)], self.hidden, changed, len(beginning) == 1)
        return Holders([packed.holders(index) for index in packed.matching(pattern)], self.hidden, changed)

    def beginning(self, part: str) -> list[int]:
        """The entities with a word that begins so."""
        return self._holders(part, from_start=True, to_end=False).united()

    def _changed_words(self, pattern: str) -> Iterator[str]:
        if len(self._recent) > MOST_RECENT:
            self._vocabulary += "".join(f"{word}\n" for word in self._recent)
            self._recent.clear()
        for word in self._recent:
            if pattern in f"\n{word}\n":
                yield word
        vocabulary = self._vocabulary
        at = vocabulary.find(pattern) if len(vocabulary) > 1 else -1
        while at >= 0:
            inside = at + (pattern[0] == "\n")
            start = vocabulary.rfind("\n", 0, inside) + 1
            end = vocabulary.index("\n", inside)
            yield vocabulary[start:end]
            at = vocabulary.find(pattern, end)

    # ── ranking ──────────────────────────────────────────────────────────────────────────────────

    def search(self, query: str, entity_type: str | None = None) -> list[int]:
        """The three steps: the literal set; else all words as word beginnings; else relevance."""
        allowed = self.graph.ids_of_type(entity_type) if entity_type else None

        def of_type(found: list[int]) -> list[int]:
            return found if allowed is None else [i for i in found if i in allowed]

        tiers = self.literal(query, allowed)
        if any(tiers):
            return self._best_first(tiers, fold(query))
        asked = list(dict.fromkeys(words(query)))
        if not asked:
            return []
        return of_type(self._beginning_with(asked)) or of_type(self.relevant(asked))

    def _best_first(self, tiers: list[list[int]], folded: str) -> list[int]:
        """Tier by tier; within one by number of mentions, where counting them costs less than it tells."""
        if sum(map(len, tiers)) <= MOST_RANKED:
            for tier in tiers:
                tier.sort(key=lambda entity_id: -self._mentions(entity_id, folded))
        return [entity_id for tier in tiers for entity_id in tier]

    def _mentions(self, entity_id: int, folded: str) -> int:
        return sum(folded in fold(text) for text in self.graph.by_id[entity_id].texts())

    def _beginning_with(self, asked: list[str]) -> list[int]:
        """Entities in which every word asked for begins some word; most such words first."""
        hits: dict[int, int] | None = None
        for word in asked:
            counts: dict[int, int] = {}
            for holders in self._holders(word, from_start=True, to_end=False).each():
                for entity_id in holders:
                    counts[entity_id] = counts.get(entity_id, 0) + 1
            hits = counts if hits is None else {i: hits[i] + n for i, n in counts.items() if i in hits}
            if not hits:
                return []
        return [entity_id for entity_id, _ in sorted((hits or {}).items(), key=lambda item: (-item[1], item[0]))]

    def relevant(self, asked: list[str]) -> list[int]:
        """Entities with any of these words, by BM25; function words count only when there is nothing else."""
        telling = [word for word in asked if word not in STOP_WORDS] or asked
        weights: dict[str, float] = {}
        scores: dict[int, float] = {}
        for word in telling:
            holders = self._holders(word, from_start=True, to_end=True).united()
            if holders:
                weight = weights[word] = math.log(1 + (self.documents - len(holders) + 0.5) / (len(holders) + 0.5))
                for entity_id in holders:
                    scores[entity_id] = scores.get(entity_id, 0.0) + weight
        promising = sorted(scores, key=lambda entity_id: (-scores[entity_id], entity_id))[:MOST_RANKED]
        exact = {entity_id: self._bm25(entity_id, weights) for entity_id in promising}
        return sorted(promising, key=lambda entity_id: (-exact[entity_id], entity_id))

    def _bm25(self, entity_id: int, weights: dict[str, float]) -> float:
        found = words("\n".join(searched(self.graph.by_id[entity_id])))
        average = self.total_length / self.documents
        dampening = K1 * (1 - B + B * len(found) / average)
        score = 0.0
        for word, weight in weights.items():
            often = found.count(word)
            score += weight * often * (K1 + 1) / (often + dampening)
        return score


class Holders:
    """The entities with any of some words: those packed, of which the hidden no longer count, and those that changed
    since. Nothing is unpacked before it is asked for."""

    __slots__ = ("_hidden", "_in_order", "_live", "_packed")

    def __init__(
        self, packed: list[Sequence[int]], hidden: set[int], live: list[set[int]], in_order: bool = True
    ) -> None:
        """`in_order`: each row is one word's; else it is that of many, one after the other."""
        self._packed = packed
        self._hidden = hidden
        self._live = live
        self._in_order = in_order

    def cover(self, documents: int) -> bool:
        """Is this every entity, as one word tells?"""
        return not self._hidden and self._in_order and len(self._packed) == 1 and len(self._packed[0]) == documents

    def each(self) -> Iterator[Collection[int]]:
        """Row by row: an entity stands in them as often as it has such words."""
        hidden = self._hidden
        for holders in self._packed:
            yield [i for i in holders if i not in hidden] if hidden else holders
        yield from self._live

    def united(self) -> list[int]:
        """All of them, each once, in order; the common case of one packed word costs nothing."""
        telling = [some for some in self.each() if some]
        if len(telling) == 1 and self._in_order and not isinstance(telling[0], set):
            return list(telling[0])
        return sorted(set().union(*telling))

    def among(self, found: Collection[int]) -> list[int]:
        """Those of these, in their order. Many are looked up in few as few in many: the smaller side is walked."""
        if self._in_order and SEARCH_COST * len(found) * len(self._packed) < sum(map(len, self._packed)):
            return [entity_id for entity_id in found if self._has(entity_id)]
        held = set().union(*self.each())
        return [entity_id for entity_id in found if entity_id in held]

    def _has(self, entity_id: int) -> bool:
        if any(entity_id in some for some in self._live):
            return True
        return entity_id not in self._hidden and any(_is_in(holders, entity_id) for holders in self._packed)


def _is_in(holders: Sequence[int], entity_id: int) -> bool:
    place = bisect_left(holders, entity_id)
    return place < len(holders) and holders[place] == entity_id
