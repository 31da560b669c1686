"""Arrays and blobs one after the other in a file, each found again by its name and used where it lies."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, BinaryIO

ALIGNMENT = 8
# Unsigned numbers of one, two, four and eight bytes. An id below 0 is none of ours, but a file can hold it.
UNSIGNED, SIGNED = "BHIQ", "q"
# So many numbers are converted or written at a time; other threads get their turn in between.
STRIDE = 65_536

# For each name where its section lies, its length in bytes, and the type of its numbers; a blob has none.
Places = dict[str, tuple[int, int, str]]


def no_pause() -> None:
    """What a packer calls often, where nobody else waits."""


class Sections:
    """Writes one section after the other; `places` tells where they are."""

    def __init__(self, file: BinaryIO, pause: Callable[[], None] = no_pause) -> None:
        self.places: Places = {}
        self.at = 0
        self.pause = pause
        self._file = file

    def begin(self) -> int:
        """Where the next section will lie."""
        self.write(bytes(-self.at % ALIGNMENT))
        return self.at

    def write(self, part: Any) -> None:
        self.at += self._file.write(part)

    def end(self, name: str, start: int, code: str = "") -> None:
        self.places[name] = start, self.at - start, code

    def add(self, name: str, part: Any) -> None:
        """A whole section: a blob, or numbers in as few bytes as they fit into."""
        if isinstance(part, array):
            self.numbers(name, part, (min(part, default=0), max(part, default=0)))
            return
        start = self.begin()
        self.write(part)
        self.end(name, start)

    def numbers(self, name: str, numbers: Iterable[int], bounds: tuple[int, int]) -> None:
        """A section of numbers as they come, none below or above the bounds."""
        code = code_for(*bounds)
        start = self.begin()
        rest = iter(numbers)
        while row := array(code, islice(rest, STRIDE)):
            self.write(row)
            self.pause()
        self.end(name, start, code)


def code_for(least: int, most: int) -> str:
    """The type of array with the smallest items that hold numbers from the one to the other."""
    if least < 0:
        return SIGNED
    return next(code for code in UNSIGNED if most < 1 << 8 * array(code).itemsize)


def cut(view: memoryview, places: Places) -> dict[str, memoryview[Any]]:
    """The sections by name, none of them copied."""
    return {name: _part(view[start : start + size], code) for name, (start, size, code) in places.items()}


def _part(view: memoryview, code: Any) -> memoryview[Any]:
    return view.cast(code) if code else view
