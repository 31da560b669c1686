"""Packing the words of a graph: entities in, in order of id, and out come the sections of a `Words`.

The law: what is held is bounded. When it is too much, it goes as a sorted run into a scratch file, and
the runs are merged at the end: of a million entities the words took 300 MB in one dictionary."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from io import BytesIO
from itertools import groupby
from operator import itemgetter
from struct import Struct
from typing import BinaryIO

from mcp_memory.facts import Entity
from mcp_memory.search.folding import words
from mcp_memory.search.words import Words, searched
from mcp_memory.sections import STRIDE, Sections, code_for, cut

# Different words, and pairs of word and entity, that are held at once.
MOST_WORDS = 100_000
MOST_PAIRS = 1_000_000

# Of a word in a run: its bytes and how many hold it.
HEAD = Struct("=II")
ID = array("q").itemsize

word_of = itemgetter(0)
# A word, the number of the run, and the entities with it: runs are in order, so are the entities of all.
Found = tuple[str, int, "array[int]"]


class WordPacker:
    """Makes an index from entities that come in order of id."""

    def __init__(self, scratch: Callable[[], BinaryIO] = BytesIO) -> None:
        self._scratch = scratch
        self._runs: list[BinaryIO] = []
        self._holders: dict[str, array[int]] = {}
        self._pairs = 0
        self._owners, self._counts, self._distinct = array("q"), array("I"), array("I")

    def add(self, entity: Entity) -> None:
        found = words("\n".join(searched(entity)))
        distinct = set(found)
        self._owners.append(entity.id)
        self._counts.append(len(found))
        self._distinct.append(len(distinct))
        holders, entity_id = self._holders, entity.id
        for word in distinct:
            row = holders.get(word)
            if row is None:
                holders[word] = array("q", (entity_id,))
            else:
                row.append(entity_id)
        self._pairs += len(distinct)
        if self._pairs > MOST_PAIRS or len(holders) > MOST_WORDS:
            self._spill()

    def _spill(self) -> None:
        run = self._scratch()
        for word, holders in self._sorted():
            body = word.encode()
            run.write(HEAD.pack(len(body), len(holders)))
            run.write(body)
            run.write(holders)
        self._runs.append(run)
        self._pairs = 0

    def _sorted(self) -> Iterator[tuple[str, array[int]]]:
        held, self._holders = self._holders, {}
        return ((word, held[word]) for word in sorted(held))

    def finish(self, out: Sections) -> None:
        """Write the sections."""
        vocabulary, starts, offsets = bytearray(b"\n"), array("q"), array("q", [0])
        code = code_for(*(self._owners[:1] + self._owners[-1:] if self._owners else (0, 0)))
        at, end = 1, 0
        begin = out.begin()
        row = array(code)
        for word, some in groupby(self._merged(), word_of):
            starts.append(at)  # in characters: the vocabulary is searched as text
            at += len(word) + 1
            vocabulary += word.encode() + b"\n"
            for _, _, holders in some:
                row.extend(memoryview(holders))
                end += len(holders)
            offsets.append(end)
            if len(row) >= STRIDE:
                out.write(row)
                del row[:]
                out.pause()
        out.write(row)
        out.end("holders", begin, code)
        for name, part in (("vocabulary", vocabulary), ("word_starts", starts), ("holder_offsets", offsets)):
            out.add(name, part)
        for name, part in (("word_owners", self._owners), ("word_counts", self._counts)):
            out.add(name, part)
        out.add("distinct_counts", self._distinct)

    def _merged(self) -> Iterator[Found]:
        last = len(self._runs)
        runs = [_read(run, number) for number, run in enumerate(self._runs)]
        return merge(*runs, ((word, last, holders) for word, holders in self._sorted()))


def _read(run: BinaryIO, number: int) -> Iterator[Found]:
    run.seek(0)
    while head := run.read(HEAD.size):
        size, count = HEAD.unpack(head)
        word = run.read(size).decode()
        yield word, number, array("q", run.read(count * ID))
    run.close()


def pack(entities: Iterable[Entity]) -> Words:
    """An index in memory."""
    packer = WordPacker()
    for entity in entities:
        packer.add(entity)
    file = BytesIO()
    out = Sections(file)
    packer.finish(out)
    return Words(cut(file.getbuffer(), out.places))
