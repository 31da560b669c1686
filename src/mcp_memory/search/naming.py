"""Numbers for words, and names that are found by one of theirs."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class Numbers(dict[str, int]):
    """A number for each word, in the order in which they come. Ask with `get` for what may not be there."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class Names:
    """Who the passages are of: each name by its rarest word, so that few are looked at for a question."""

    def __init__(self) -> None:
        self.all: list[frozenset[str]] = []
        self.by_word: dict[str, list[int]] = {}
        self.rarest: Sequence[str] = ()
        self._known: dict[frozenset[str], int] = {}

    def number(self, name: frozenset[str]) -> int:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = len(self.all)
            self.all.append(name)
        return known

    def sort(self) -> None:
        often: dict[str, int] = {}
        for name in self.all:
            for word in name:
                often[word] = often.get(word, 0) + 1
        self.file([min(name, key=lambda word: (often[word], word), default="") for name in self.all])

    def file(self, rarest: Sequence[str]) -> None:
        """Put each name where it is looked for: under its rarest word."""
        self.rarest = rarest
        for number, word in enumerate(rarest):
            if word:
                self.by_word.setdefault(word, []).append(number)
        self._known = {}

    def within(self, asked: Collection[str]) -> list[int]:
        """The names all of whose words are among these."""
        return [n for word in asked for n in self.by_word.get(word, ()) if self.all[n].issubset(asked)]
