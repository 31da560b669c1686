"""Observations as passages that may answer a question: by their words, their neighbours' and their entity's.

What is said is often only clear beside what was said before it, so neighbours count too, the farther the less;
long observations speak for themselves. The law: packed once and never altered, all of it in arrays; a question
costs a few operations on the rows of its words and never a look at a text."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

from mcp_memory.embedding.numerics import numpy
from mcp_memory.facts import Entity, Observation
from mcp_memory.search.folding import words
from mcp_memory.search.naming import Names, Numbers
from mcp_memory.search.question import tells_name, tells_when
from mcp_memory.search.stems import stems
from mcp_memory.search.times import seconds_of
from mcp_memory.search.vectors import ENTITY, OBSERVATION, Seats

np = numpy()
Array = Any

# How much the words of a neighbour count, by its distance; those of the entity's name and type.
NEIGHBOURS = ((-3, 0.2), (-2, 0.4), (-1, 0.6), (1, 0.4), (2, 0.2))
NAME_WEIGHT = 1.0
# Beside what nobody is quoted with: facts stand side by side, and are not answers to each other.
WRITTEN = 0.25
# Observations of more words than this stand alone, and are nobody's context.
SPEAKS_FOR_ITSELF = 60
K1, B = 1.2, 0.5
# "Ada: I went there" was said by Ada.
SPEAKER = re.compile(r"([^\W\d_][\w .'-]{0,30}): ")
# So many words at most stand in for one that begins like them.
MOST_KIN = 16
# From this share of all rows on, a word is looked at in every row at once.
OFTEN = 16


# The arrays that make up passages, besides those of neighbours.
COLUMNS = (
    "ids",
    "owners",
    "starts",
    "status",
    "who",
    "timely",
    "naming",
    "asks",
    "kind",
    "written",
    "spoken",
    "lengths",
    "_offsets",
    "_rows",
    "_often",
    "_title_offsets",
    "_slots",
)
JOIN = "beside "


class Notes(NamedTuple):
    """What of passages is no array."""

    names: list[list[str]]
    rarest: list[str]
    speakers: list[str]
    kinds: dict[str, int]
    statuses: dict[str, int]
    stems: list[str]


class Passages:
    """All active observations of some entities. One that has none is a passage itself, with no observation."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        self.names = Names()
        self.speakers: set[str] = set()  # words of the names of those whose words are quoted
        self.kinds: dict[str, int] = {}
        self.statuses: dict[str, int] = {}
        self._known: dict[str, frozenset[str]] = {}
        self._stems = Numbers()
        self._said, self._said_at = array("i"), array("i")
        self._titles, self._titled = array("i"), array("i")
        ids, owners, starts, status, who, timely, naming, asks, size, kind, written, spoken = (
            array(code) for code in "qqiiibbbiiqb"
        )
        columns = (ids, who, timely, naming, asks, size, kind, written, spoken)
        for entity in entities:
            owners.append(entity.id)
            starts.append(len(ids))
            status.append(self.statuses.setdefault(entity.status, len(self.statuses)))
            for row in self._rows_of(entity, len(ids), len(starts) - 1):
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
        self.ids, self.owners = _array(ids), _array(owners)
        self.starts, self.status = _array(starts), _array(status)
        self.who, self.timely = _array(who), (_array(timely) > 0).astype(np.float32)
        self.naming = (_array(naming) > 0).astype(np.float32)
        self.asks = _array(asks) > 0
        # Ends with a question; None if none does.
        self.questions = (_array(asks) > 1).astype(np.float32) if (_array(asks) > 1).any() else None
        self.kind, self.written, self.spoken = _array(kind), _array(written), _array(spoken) > 0
        self._place()
        self._pack(_array(size))
        self._stand()

    def _place(self) -> None:
        """Whose each row is."""
        self.counts = np.diff(self.starts, append=len(self.ids))
        self.slot = np.repeat(np.arange(len(self.owners), dtype=np.int32), self.counts)
        self.is_simple = len(self.owners) == len(self.ids)  # one passage for each entity

    def _stand(self) -> None:
        """What follows from the columns, and what questions leave behind for the next."""
        before = self.joins.get(-1)
        # Said right after something was asked; None if nothing is.
        self.answers = None if before is None else (before[1:] > 0) & self.asks[:-1]
        self.seats = Seats(OBSERVATION, self.ids)
        self.bare = np.flatnonzero(self.ids == 0)
        self.bare_seats = Seats(ENTITY, self.owners[self.slot[self.bare]])
        self._stem_words: list[str] | None = None
        self._dampening: tuple[float, Array] = (0.0, None)
        self._scratch = np.zeros(len(self), np.float32)  # for one question at a time, which leaves it as it was

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_whole(self) -> bool:
        """Had all of them their vectors when they were last looked up?"""
        return self.seats.known + self.bare_seats.known == len(self)

    # ── between two processes ────────────────────────────────────────────────────────────────────

    def parts(self) -> tuple[Notes, dict[str, Array]]:
        """All there is, as it may be kept in a file."""
        notes = Notes(
            [sorted(name) for name in self.names.all],
            list(self.names.rarest),
            sorted(self.speakers),
            self.kinds,
            self.statuses,
            list(self._stems),
        )
        columns = {name: getattr(self, name) for name in COLUMNS}
        columns |= {f"{JOIN}{distance}": joined for distance, joined in self.joins.items()}
        return notes, columns | ({} if self.questions is None else {"questions": self.questions})

    @classmethod
    def of(cls, notes: Notes, columns: dict[str, Array]) -> Passages:
        """What `parts` told. Nothing of it is copied or altered."""
        self = cls.__new__(cls)
        self.names = Names()
        self.names.all = [frozenset(name) for name in notes.names]
        self.names.file(notes.rarest)
        self.speakers, self.kinds, self.statuses = set(notes.speakers), notes.kinds, notes.statuses
        self._stems = Numbers(zip(notes.stems, range(len(notes.stems)), strict=True))
        for name in COLUMNS:
            setattr(self, name, columns[name])
        self.questions = columns.get("questions")
        found = ((distance, columns.get(f"{JOIN}{distance}")) for distance, _ in NEIGHBOURS)
        self.joins = {distance: joined for distance, joined in found if joined is not None}
        self._place()
        self._stand()
        return self

    # ── packing ──────────────────────────────────────────────────────────────────────────────────

    def _rows_of(self, entity: Entity, first: int, slot: int) -> Iterable[tuple[int, ...]]:
        titled = words(f"{entity.name} {entity.entity_type}")
        title = dict.fromkeys(stems(titled) or titled)
        name = frozenset(words(entity.name))
        active = entity.active()
        if not active:
            self._say(title, first)
            number = self.names.number(name)
            return [(0, number, 0, 0, 0, len(title), -1, _seconds(entity.updated_at), 0)]
        self._titles.extend(map(self._stems.__getitem__, title))
        self._titled.extend(repeat(slot, len(title)))
        return [self._row(seen, row, name) for row, seen in enumerate(active, first)]

    def _row(self, seen: Observation, row: int, name: frozenset[str]) -> tuple[int, ...]:
        said = words(seen.text)
        self._say(stems(said), row)
        quoted = SPEAKER.match(seen.text)
        speaker = None if quoted is None else self._speaker(quoted[1])
        text = seen.text if quoted is None else seen.text[quoted.end() :]
        return (
            seen.id,
            self.names.number(speaker or name),
            tells_when(said),
            speaker is not None and tells_name(text),
            (2 if text.rstrip().endswith("?") else 1) if "?" in text else 0,
            len(said),
            self.kinds.setdefault(seen.kind, len(self.kinds)),
            _seconds(seen.created_at),
            speaker is not None,
        )

    def _say(self, found: Collection[str], row: int) -> None:
        self._said.extend(map(self._stems.__getitem__, found))
        self._said_at.extend(repeat(row, len(found)))

    def _speaker(self, before_the_colon: str) -> frozenset[str]:
        """The words of the name of somebody who is quoted."""
        name = self._known.get(before_the_colon)
        if name is None:
            name = self._known[before_the_colon] = frozenset(words(before_the_colon))
            self.speakers |= name
        return name

    def _pack(self, size: Array) -> None:
        total = len(self)
        is_short = size <= SPEAKS_FOR_ITSELF
        found = {distance: self._joined(is_short, distance) for distance, _ in NEIGHBOURS}
        self.joins = {distance: joined for distance, joined in found.items() if joined is not None}
        self._offsets, self._rows, self._often = _postings(self._said, self._said_at, total, len(self._stems))
        self._title_offsets, self._slots, _ = _postings(
            self._titles, self._titled, max(len(self.owners), 1), len(self._stems)
        )
        self.lengths = self._lengths()
        self.names.sort()
        del self._said, self._said_at, self._titles, self._titled, self._known

    def _joined(self, is_short: Array, distance: int) -> Array:
        """How much the one at this distance counts for a row: both are of one entity and short. None: nowhere."""
        joined = np.zeros(len(self), np.float32)
        if self.is_simple:
            return None
        here, there = pair(len(self), distance)
        joined[here] = (self.slot[here] == self.slot[there]) & is_short[here] & is_short[there]
        joined[here] *= np.where(self.spoken[here] & self.spoken[there], np.float32(1), np.float32(WRITTEN))
        return joined if joined.any() else None

    def _lengths(self) -> Array:
        """How long each passage is, its neighbours and its title counted as they count."""
        own = np.bincount(self._rows, self._often, len(self)).astype(np.float32)
        lengths = own.copy()
        lengths += NAME_WEIGHT * np.bincount(self._slots, minlength=len(self.owners)).astype(np.float32)[self.slot]
        for distance, weight in NEIGHBOURS:
            if distance in self.joins:
                here, there = pair(len(self), distance)
                lengths[here] += weight * own[there] * self.joins[distance][here]
        return lengths

    # ── words ────────────────────────────────────────────────────────────────────────────────────

    def saying(self, stem: str) -> tuple[Array, Array]:
        """The passages that say it, and the entities that have it in their title."""
        number = self._stems.get(stem)
        if number is None:
            return self._rows[:0], self._slots[:0]
        return self._rows[self._offsets[number] : self._offsets[number + 1]], self._titled_by(number)

    def beginning_with(self, beginning: str) -> list[str]:
        """Stems, and not too many."""
        if self._stem_words is None:
            self._stem_words = sorted(self._stems)
        at = bisect_left(self._stem_words, beginning)
        found = self._stem_words[at : at + MOST_KIN]
        return [word for word in found if word.startswith(beginning)]

    def _titled_by(self, number: int) -> Array:
        return self._slots[self._title_offsets[number] : self._title_offsets[number + 1]]

    def add_scores(self, scores: Array, stem: str, rarity: float, mean: float) -> None:
        """Add what a stem is worth to every passage: BM25 over its own words, its neighbours' and its title's."""
        number = self._stems.get(stem)
        if number is None:
            return
        at = slice(self._offsets[number], self._offsets[number + 1])
        rows, often, slots = self._rows[at], self._often[at], self._titled_by(number)
        dampening = self._dampened(mean)
        if (len(rows) + len(slots)) * OFTEN > len(self):
            counts = self._counted(rows, often, slots)
            dampening = dampening + counts
            counts *= np.float32(rarity * (K1 + 1))
            counts /= dampening
            scores += counts
            return
        worth = np.float32(rarity * (K1 + 1))
        if not self.joins and not len(slots):  # then a row is touched once
            scores[rows] += worth * often / (often + dampening[rows])
            return
        touched, added = self._touched(rows, often, slots)
        counts = self._scratch
        np.add.at(counts, touched, added)
        here = counts[touched]
        counts[touched] = 0
        # A row may be touched more than once: it gets the same value each time.
        scores[touched] = scores[touched] + worth * here / (here + dampening[touched])

    def _counted(self, rows: Array, often: Array, slots: Array) -> Array:
        own = np.zeros(len(self), np.float32)
        own[rows] = often
        counts = own.copy()
        for distance, weight in NEIGHBOURS:
            if distance in self.joins:
                here, there = pair(len(self), distance)
                counts[here] += weight * own[there] * self.joins[distance][here]
        if len(slots):
            titled = np.zeros(len(self.owners), np.float32)
            titled[slots] = NAME_WEIGHT
            counts += titled[self.slot]
        return counts

    def _touched(self, rows: Array, often: Array, slots: Array) -> tuple[Array, Array]:
        touched, added = [rows], [often]
        for distance, weight in NEIGHBOURS:
            if distance in self.joins:
                here = rows - distance
                inside = (here >= 0) & (here < len(self))
                here, some = here[inside], often[inside]
                share = self.joins[distance][here]
                kept = share > 0
                touched.append(here[kept])
                added.append(weight * (some * share)[kept])
        titled = self.rows_of(slots)
        touched.append(titled)
        added.append(np.full(len(titled), NAME_WEIGHT, np.float32))
        return np.concatenate(touched), np.concatenate(added)

    def _dampened(self, mean: float) -> Array:
        if self._dampening[0] != mean:
            self._dampening = (mean, (K1 * (1 - B) + (K1 * B / mean) * self.lengths).astype(np.float32))
        return self._dampening[1]

    # ── who ──────────────────────────────────────────────────────────────────────────────────────

    def named(self, asked: Collection[str]) -> Array | None:
        """Which passages are said by, or about, somebody all of whose name is among these words."""
        numbers = self.names.within(asked)
        if not numbers:
            return None
        flags = np.zeros(len(self.names.all), np.float32)
        flags[numbers] = 1.0
        return flags[self.who]

    def places_of(self, owners: Sequence[int]) -> Array:
        """The places of those of these entities that are here. Entities stand in order of id."""
        return np.flatnonzero(np.isin(self.owners, np.asarray(owners, np.int64)))

    def rows_of(self, places: Array) -> Array:
        """The rows of the entities at these places."""
        counts = self.counts[places]
        ends = counts.cumsum()
        return np.repeat(self.starts[places] - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)


def _array(values: array[int]) -> Array:
    return np.array(values)


@lru_cache(4096)  # many facts come at the same second
def _seconds(written: str) -> int:
    found = seconds_of(written)
    return 0 if found is None else int(found)


def pair(size: int, distance: int) -> tuple[slice, slice]:
    """The rows that have one at this distance, and those."""
    return (
        slice(max(-distance, 0), max(size - max(distance, 0), 0)),
        slice(max(distance, 0), max(size - max(-distance, 0), 0)),
    )


def _postings(said: array[int], where: array[int], places: int, kinds: int) -> tuple[Array, Array, Array]:
    """For each stem where it is said, and how often: offsets, places, counts."""
    keys = _array(said).astype(np.int64) * places + _array(where)
    found, often = np.unique(keys, return_counts=True)
    offsets = np.searchsorted(found, np.arange(kinds + 1, dtype=np.int64) * places)
    return offsets, (found % places).astype(np.int32), often.astype(np.float32)
