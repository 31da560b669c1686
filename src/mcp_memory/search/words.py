"""Which words occur in which entities, packed: sorted words in one string, their holders in one array.

A substring search scans the string at memory speed; where it hits, the position tells the word."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from mcp_memory.facts import Entity


def searched(entity: Entity) -> list[str]:
    """What is searched of an entity."""
    return [entity.name, entity.entity_type, *entity.texts()]


class Words:
    """An index that is read only. `sections` may lie in a mapped file."""

    def __init__(self, sections: dict[str, Any]) -> None:
        self.vocabulary = str(sections["vocabulary"], "utf-8")  # "\n" before each word, and at the end
        self._starts: Sequence[int] = sections["word_starts"]
        self._offsets: Sequence[int] = sections["holder_offsets"]
        self._holders = sections["holders"]
        self._owners: Sequence[int] = sections["word_owners"]  # the entities indexed, in order of id
        self._counts: Sequence[int] = sections["word_counts"]
        self._distinct: Sequence[int] = sections["distinct_counts"]
        self.vocabulary_bytes = len(sections["vocabulary"]) - 1 - len(self._starts)
        self.total_length = sum(self._counts)
        self.pairs = len(self._holders)

    def __len__(self) -> int:
        return len(self._starts)

    def owners(self) -> Sequence[int]:
        return self._owners

    def counts(self, entity_id: int) -> tuple[int, int] | None:
        """How many words, and how many different ones, an entity had; None if it is not indexed here."""
        row = bisect_left(self._owners, entity_id)
        if row == len(self._owners) or self._owners[row] != entity_id:
            return None
        return self._counts[row], self._distinct[row]

    def word(self, index: int) -> str:
        start = self._starts[index]
        return self.vocabulary[start : self.vocabulary.index("\n", start)]

    def holders(self, index: int) -> Sequence[int]:
        """The entities with this word, in order of id."""
        found: Sequence[int] = self._holders[self._offsets[index] : self._offsets[index + 1]]
        return found

    def holders_of(self, word: str) -> Sequence[int]:
        index = bisect_left(range(len(self)), word, key=self.word)
        return self.holders(index) if index < len(self) and self.word(index) == word else ()

    def beginning_with(self, part: str) -> range:
        """Indexes of the words that begin with a part: they stand side by side."""
        first = bisect_left(range(len(self)), part, key=self.word)
        later = range(first, len(self))
        vocabulary, starts = self.vocabulary, self._starts
        return later[: bisect_left(later, True, key=lambda index: not vocabulary.startswith(part, starts[index]))]

    def holders_between(self, words: range) -> Sequence[int]:
        """The entities with these words, word after word."""
        found: Sequence[int] = self._holders[self._offsets[words.start] : self._offsets[words.stop]]
        return found

    def matching(self, pattern: str) -> Iterator[int]:
        """Indexes of the words matching a pattern in which a line end stands for the end of a word."""
        vocabulary = self.vocabulary
        shift = pattern[0] == "\n"
        at = vocabulary.find(pattern)
        while at >= 0:
            inside = at + shift
            yield bisect_right(self._starts, inside) - 1
            at = vocabulary.find(pattern, vocabulary.index("\n", inside))
