"""Packing a graph: facts in, in order of id, and out come the sections of a base.

The law: no fact is held. What must be held are numbers in arrays, so that a million entities are packed
in a few dozen megabytes while the same process goes on serving."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import chain
from typing import BinaryIO

import msgspec

from mcp_memory.base import (
    BYTE_ORDER,
    MAGIC,
    NAMES_A_PAGE,
    PREAMBLE,
    SLOT_BITS,
    VERSION,
    Counts,
    Header,
    name_hash,
)
from mcp_memory.facts import PLACEHOLDER, Entity, Reflection, Relation
from mcp_memory.search.packing import WordPacker
from mcp_memory.sections import Sections, no_pause
from mcp_memory.shelf import Packed

encode = msgspec.msgpack.Encoder().encode

# Whoever waits gets a turn after so many facts or rows.
FACTS_AT_ONCE = 512
# Different notes that are recognised again; one that is not stands twice, which costs bytes only.
MOST_NOTES = 65_536
# Ids with gaps are found in a table if it has at most so many places for each.
MOST_PLACES = 8

Note = tuple[str, str, str | None, str | None]


class Packer:
    """Makes a base from facts that come in order of id: entities, then relations, then reflections."""

    def __init__(
        self,
        with_words: bool = False,
        file: BinaryIO | None = None,
        pause: Callable[[], None] = no_pause,
        scratch: Callable[[], BinaryIO] = BytesIO,
    ) -> None:
        """`pause` is called often: it may wait a little, or end the matter by raising. `scratch` makes a file
        for what is too much to hold; it is gone when it is closed."""
        self.counts = Counts()
        self._file = file or BytesIO()
        self._pause = pause
        self.out = Sections(self._file, pause)
        self.out.write(bytes(PREAMBLE.size))
        self._dense: dict[str, tuple[int, int]] = {}
        self._entities: EntityPart | None = EntityPart(self, WordPacker(scratch) if with_words else None)
        self._relations: RelationPart | None = None
        self._placeholders: list[int] = []
        self._reflections: list[Reflection] = []
        self._type_names: list[str] = []
        self._unpaused = 0

    def add_entity(self, entity: Entity) -> None:
        assert self._entities is not None, "entities come first"
        self._entities.add(entity)
        self.breathe()

    def add_relation(self, relation: Relation) -> None:
        (self._relations or self._begin_relations()).add(relation)
        self.breathe()

    def add_reflection(self, reflection: Reflection) -> None:
        self._reflections.append(reflection)
        self.counts.next_reflection = max(self.counts.next_reflection, reflection.id + 1)

    def _begin_relations(self) -> RelationPart:
        assert self._entities is not None
        entities, self._entities = self._entities, None
        self._placeholders, self._type_names = entities.placeholders, entities.type_names
        self._relations = RelationPart(self, entities.finish(), set(entities.placeholders))
        return self._relations

    def finish(self, origin: str = "") -> memoryview:
        """The packed graph; of one that went into a file nothing, but the file is complete now."""
        loops = (self._relations or self._begin_relations()).finish()
        start = self.out.begin()
        header = encode(
            Header(
                self.counts,
                self._placeholders,
                loops,
                self._reflections,
                self._type_names,
                self.out.places,
                self._dense,
                origin,
            )
        )
        self.out.write(header)
        self._file.seek(0)
        self._file.write(PREAMBLE.pack(MAGIC, VERSION, BYTE_ORDER, start, len(header), zlib.crc32(header)))
        return self._file.getbuffer() if isinstance(self._file, BytesIO) else memoryview(b"")

    # ── for the parts ────────────────────────────────────────────────────────────────────────────

    def breathe(self) -> None:
        self._unpaused += 1
        if self._unpaused >= FACTS_AT_ONCE:
            self._unpaused = 0
            self._pause()

    def ids(self, kind: str, ids: array[int]) -> Sequence[int]:
        """Write ids in order, and where each stands; without a gap there is nothing to write."""
        if not ids or ids[-1] - ids[0] + 1 == len(ids):
            first = ids[0] if ids else 0
            self._dense[kind] = first, len(ids)
            return range(first, first + len(ids))
        self.out.add(f"{kind}_ids", ids)
        return ids

    def rows(self, kind: str, ids: Sequence[int]) -> array[int] | None:
        """The table that tells the row + 1 of an id, where ids have gaps but not too wide ones."""
        if isinstance(ids, range) or ids[-1] - ids[0] >= MOST_PLACES * len(ids):
            return None
        table = array("I", bytes(4 * (ids[-1] - ids[0] + 1)))
        first = ids[0]
        for row, fact_id in enumerate(ids, 1):
            table[fact_id - first] = row
        self.out.add(f"{kind}_rows", table)
        return table


class EntityPart:
    """What is packed of entities."""

    def __init__(self, packer: Packer, words: WordPacker | None) -> None:
        self.packer = packer
        self.placeholders: list[int] = []
        self._words = words
        self._ids, self._offsets = array("q"), array("q", [0])
        self._hashes = array("I")
        self._names = bytearray()
        self._name_offsets = array("q", [0])
        self._page: list[str] = []
        self._of_type: dict[str, array[int]] = {}
        self._start = packer.out.begin()
        self._size = 0

    @property
    def type_names(self) -> list[str]:
        return list(self._of_type)

    def add(self, entity: Entity) -> None:
        body = encode(entity)
        self.packer.out.write(body)
        self._size += len(body)
        self._offsets.append(self._size)
        self._ids.append(entity.id)
        self._name(entity.name)
        counts = self.packer.counts
        counts.next_entity = entity.id + 1
        if entity.observations:
            counts.next_observation = max(counts.next_observation, entity.observations[-1].id + 1)
        if entity.status == PLACEHOLDER:
            self.placeholders.append(entity.id)
            return
        members = self._of_type.get(entity.entity_type)
        if members is None:
            members = self._of_type[entity.entity_type] = array("q")
        members.append(entity.id)
        if self._words is not None:
            self._words.add(entity)
        counts.entities += 1
        counts.observations += sum(seen.superseded_at is None for seen in entity.observations)

    def _name(self, name: str) -> None:
        self._hashes.append(name_hash(name))
        self._page.append(name)
        if len(self._page) == NAMES_A_PAGE:
            self._end_page()

    def _end_page(self) -> None:
        self._names += encode(self._page)
        self._name_offsets.append(len(self._names))
        self._page.clear()

    def finish(self) -> Packed[Entity]:
        """Where each entity stands."""
        packer, out = self.packer, self.packer.out
        out.end("entities", self._start)
        out.add("entity_offsets", self._offsets)
        ids = packer.ids("entity", self._ids)
        rows = packer.rows("entity", ids)
        if self._page:
            self._end_page()
        out.add("names", self._names)
        out.add("name_offsets", self._name_offsets)
        out.add("name_slots", self._slots())
        packer.counts.types = {name: len(members) for name, members in self._of_type.items()}
        offsets, flat = array("q", [0]), array("q")
        for members in self._of_type.values():
            flat.extend(members)
            offsets.append(len(flat))
        out.add("type_offsets", offsets)
        out.add("of_type", flat)
        if self._words is not None:
            self._words.finish(out)
        return Packed(ids, rows)

    def _slots(self) -> array[int]:
        """A table in which a name is found near the place that its hash says; at most half of it is taken."""
        size = 1 << (2 * len(self._hashes)).bit_length()
        slots = array("Q", bytes(8 * size))
        for row, mark in enumerate(self._hashes, 1):
            place = mark & (size - 1)
            while slots[place]:
                place = (place + 1) & (size - 1)
            slots[place] = mark << SLOT_BITS | row
            self.packer.breathe()
        return slots


class RelationPart:
    """What is packed of relations, and of who is linked with whom."""

    def __init__(self, packer: Packer, entities: Packed[Entity], placeholders: set[int]) -> None:
        self.packer = packer
        self.entities = entities
        self.placeholders = placeholders
        self.loops: list[tuple[int, int]] = []
        self._ids = array("q")
        self._sources, self._targets, self._note_of = array("q"), array("q"), array("I")
        self._is_active = bytearray()
        self._of_kind: dict[str, array[int]] = {}  # the active ones
        self._ended = array("q")
        self._notes = bytearray()
        self._note_offsets = array("q", [0])
        self._known: dict[Note, int] = {}
        # How many relations touch the entity of each row; those of nobody (a damaged file) count at the end.
        self._degrees = array("I", bytes(4 * (len(entities.ids) + 1)))

    def add(self, relation: Relation) -> None:
        self._ids.append(relation.id)
        source, target = relation.source, relation.target
        self._sources.append(source)
        self._targets.append(target)
        self._note_of.append(self._note(relation))
        is_active = relation.ended_at is None
        self._is_active.append(is_active)
        self._degrees[self._row(source)] += 1
        if source != target:
            self._degrees[self._row(target)] += 1
        else:
            self.loops.append((relation.id, source))
        counts = self.packer.counts
        counts.next_relation = relation.id + 1
        if is_active:
            counts.relations += 1
            members = self._of_kind.get(relation.relation_type)
            if members is None:
                members = self._of_kind[relation.relation_type] = array("q")
            members.append(relation.id)
        else:
            self._ended.append(relation.id)

    def _row(self, entity_id: int) -> int:
        row = self.entities.row(entity_id)
        return len(self.entities.ids) if row is None else row

    def _note(self, relation: Relation) -> int:
        note = (relation.relation_type, relation.created_at, relation.context, relation.ended_at)
        number = self._known.get(note)
        if number is None:
            if len(self._known) >= MOST_NOTES:
                self._known.clear()
            number = self._known[note] = len(self._note_offsets) - 1
            self._notes += encode(note)
            self._note_offsets.append(len(self._notes))
        return number

    def finish(self) -> list[tuple[int, int]]:
        packer, out = self.packer, self.packer.out
        packer.counts.relation_types = {kind: len(members) for kind, members in self._of_kind.items()}
        ids = packer.ids("relation", self._ids)
        out.numbers("of_relation_type", chain.from_iterable(self._of_kind.values()), bounds_of(ids))
        self._of_kind.clear()
        out.add("ended", self._ended)
        packer.rows("relation", ids)
        out.add("notes", self._notes)
        out.add("note_offsets", self._note_offsets)
        out.add("note_of", self._note_of)
        out.add("sources", self._sources)
        out.add("targets", self._targets)
        self._link(ids)
        return self.loops

    def _link(self, ids: Sequence[int]) -> None:
        """For each entity the relations touching it, and its neighbours; in order of the relations."""
        starts = array("I", [0])
        for degree in self._degrees:
            starts.append(starts[-1] + degree)
        linked = self._linked(starts)
        out = self.packer.out
        del starts[-1]  # what is linked with nobody is not told
        out.add("incident_offsets", starts)
        out.numbers("incident", map(ids.__getitem__, linked[: starts[-1]]), bounds_of(ids))
        offsets = array("I", [0])
        near = self._neighbours(starts, linked, offsets)
        out.numbers("near", near, bounds_of(self.entities.ids))
        out.add("near_offsets", offsets)

    def _linked(self, starts: array[int]) -> array[int]:
        """The rows of the relations of one entity after the other; those of nobody at the end."""
        free = starts[:]
        linked = array("I", bytes(4 * starts[-1]))
        for row, (source, target) in enumerate(zip(self._sources, self._targets, strict=True)):
            for end in (source, target) if source != target else (source,):
                at = self._row(end)
                linked[free[at]] = row
                free[at] += 1
            self.packer.breathe()
        return linked

    def _neighbours(self, starts: array[int], linked: array[int], offsets: array[int]) -> Iterator[int]:
        """The neighbours of one entity after the other; where each one's end is added to the offsets."""
        sources, targets, is_active, unseen = self._sources, self._targets, self._is_active, self.placeholders
        end = 0
        for row, entity_id in enumerate(self.entities.ids):
            found: dict[int, None] = {}
            for link in linked[starts[row] : starts[row + 1]]:
                if is_active[link]:
                    source = sources[link]
                    found[targets[link] if source == entity_id else source] = None
            found.pop(entity_id, None)
            if unseen:
                found = {there: None for there in found if there not in unseen}
            end += len(found)
            offsets.append(end)
            yield from found
            self.packer.breathe()


def bounds_of(ids: Sequence[int]) -> tuple[int, int]:
    """The first and the last of ids in order."""
    return (ids[0], ids[-1]) if len(ids) else (0, 0)
