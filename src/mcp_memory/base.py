"""A graph as it was at one entry of the feed, packed into bytes that can be mapped from a file.

Everything is an array or a blob that is used where it lies, so that a million entities are there in
milliseconds and cost the memory of what is looked at. The sections are the format, and VERSION is its
number: a file of another version is not read but made anew, for all of it can be derived."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Sequence
from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.facts import Entity, Reflection, Relation
from mcp_memory.sections import Places, cut
from mcp_memory.shelf import Packed

if TYPE_CHECKING:
    from mcp_memory.search.words import Words

VERSION = 3
# Magic, version, byte order, and of the header, which stands at the end: offset, size and CRC32.
PREAMBLE = Struct("<8sII3Q")
MAGIC = b"MCPGRAPH"
BYTE_ORDER = ("little", "big").index(sys.byteorder)

# Names are decoded so many at once, and so many of these pages are kept: of 260,000 names. A graph of no
# more names than that has them all decoded at once.
NAMES_A_PAGE = 32
MOST_NAME_PAGES = 8192
# What relations say besides their ends is kept decoded up to so many different ones.
MOST_NOTES = 65_536

# How a slot of the table of names is read: the hash of the name above, its row + 1 below.
SLOT_BITS = 32
ROW_MASK = (1 << SLOT_BITS) - 1

# A relation without its id and ends: type, when it was made, context, when it ended.
Note = tuple[str, str, str | None, str | None]

decode_names = msgspec.msgpack.Decoder(list[str]).decode
decode_entity = msgspec.msgpack.Decoder(Entity).decode
decode_entities = msgspec.msgpack.Decoder(list[Entity]).decode
decode_note = msgspec.msgpack.Decoder(Note).decode


class Counts(msgspec.Struct):
    """What a graph keeps count of, and the ids it will give next."""

    seq: int = 0
    next_entity: int = 1
    next_observation: int = 1
    next_relation: int = 1
    next_reflection: int = 1
    entities: int = 0
    observations: int = 0
    relations: int = 0
    types: dict[str, int] = {}
    relation_types: dict[str, int] = {}


class Header(msgspec.Struct):
    counts: Counts
    placeholders: list[int]
    loops: list[tuple[int, int]]  # relations of an entity to itself, each with the entity
    reflections: list[Reflection]
    type_names: list[str]
    sections: Places
    dense: dict[str, tuple[int, int]]  # ids without a gap are not listed: the first, and how many
    origin: str = ""  # which store this was made from, and where in its history


decode_header = msgspec.msgpack.Decoder(Header).decode


class Base:
    """One packed graph. The buffer may be a mapped file; nothing of it is copied."""

    def __init__(self, buffer: Any, header: Header | None = None) -> None:
        view = memoryview(buffer)
        self.header = header = header or _decoded(view)
        self.counts = header.counts
        self.sections = parts = cut(view, header.sections)
        self.entities = PackedEntities(*self._ids("entity"), parts["entity_offsets"], parts["entities"])
        self.relations = PackedRelations(
            *self._ids("relation"), parts["sources"], parts["targets"], parts["note_of"], Notes(parts)
        )
        names = NameList(parts["name_offsets"], parts["names"], len(self.entities.ids))
        self.name_list: Sequence[str] = names if names.is_long else names.whole()
        # Where ids have no gap and the names are a list: the first id, and the names from there on.
        self.named = (
            (header.dense["entity"][0], self.name_list) if not names.is_long and "entity" in header.dense else None
        )
        self.has_ended = self.counts.relations < len(self.relations.ids)
        self._slots, self._slot_mask = parts["name_slots"], len(parts["name_slots"]) - 1
        self._incident_offsets, self._incident = parts["incident_offsets"], parts["incident"]
        self._near_offsets, self._near = parts["near_offsets"], parts["near"]
        self.ended: Sequence[int] = parts["ended"]  # the relations that were, in order
        self._type_numbers = {name: number for number, name in enumerate(header.type_names)}

    def _ids(self, kind: str) -> tuple[Sequence[int], Sequence[int] | None]:
        if kind in self.header.dense:
            first, count = self.header.dense[kind]
            return range(first, first + count), None
        return self.sections[f"{kind}_ids"], self.sections.get(f"{kind}_rows")

    def find(self, name: str) -> int | None:
        """The id of an entity or placeholder of this name."""
        mark = name_hash(name)
        place = mark & self._slot_mask
        slots: Sequence[int] = self._slots
        while slot := slots[place]:
            if slot >> SLOT_BITS == mark:
                row = (slot & ROW_MASK) - 1
                if self.name_list[row] == name:
                    return self.entities.ids[row]
            place = (place + 1) & self._slot_mask
        return None

    def of_type(self, entity_type: str) -> list[int]:
        """The entities of a type, in order."""
        number = self._type_numbers.get(entity_type)
        if number is None:
            return []
        offsets = self.sections["type_offsets"]
        return self.sections["of_type"][offsets[number] : offsets[number + 1]].tolist()

    def relations_of_type(self, relation_type: str) -> Sequence[int]:
        """The active relations of a type, in order; of any type every relation, those that ended too."""
        if not relation_type:
            return self.relations.ids
        start = 0
        for name, count in self.counts.relation_types.items():
            if name == relation_type:
                found: Sequence[int] = self.sections["of_relation_type"][start : start + count]
                return found
            start += count
        return ()

    def words(self) -> Words | None:
        """The word index, if it was packed too."""
        if "vocabulary" not in self.sections:
            return None
        from mcp_memory.search.words import Words

        return Words(self.sections)

    def incident(self, entity_id: int) -> list[int]:
        """Ids of the relations touching an entity, in order."""
        return self._row(self._incident_offsets, self._incident, entity_id)

    def near(self, entity_id: int) -> list[int]:
        """The neighbours of an entity, as Graph.neighbours tells them."""
        return self._row(self._near_offsets, self._near, entity_id)

    def _row(self, offsets: memoryview, flat: memoryview, entity_id: int) -> list[int]:
        row = self.entities.row(entity_id)
        return [] if row is None else flat[offsets[row] : offsets[row + 1]].tolist()


class PackedEntities(Packed[Entity]):
    """Entities one after the other as msgpack, and where each begins."""

    __slots__ = ("_blob", "_offsets")

    def __init__(self, ids: Sequence[int], rows: Sequence[int] | None, offsets: Sequence[int], blob: Any) -> None:
        super().__init__(ids, rows)
        self._offsets = offsets
        self._blob = blob

    def at(self, row: int) -> Entity:
        return decode_entity(self._blob[self._offsets[row] : self._offsets[row + 1]])

    def between_rows(self, start: int, end: int) -> list[Entity]:
        # Facts one after the other are a list but for its head: msgpack's mark of an array, and its length.
        head = b"\xdd" + (end - start).to_bytes(4, "big")
        return decode_entities(head + self._blob[self._offsets[start] : self._offsets[end]])


class Notes(dict[int, Note]):
    """What relations say besides their ends: many say the same, so it stands once, and is kept decoded."""

    def __init__(self, sections: dict[str, memoryview]) -> None:
        super().__init__()
        self._offsets, self._blob = sections["note_offsets"], sections["notes"]

    def __missing__(self, number: int) -> Note:
        if len(self) >= MOST_NOTES:
            self.clear()
        note: Note = decode_note(self._blob[self._offsets[number] : self._offsets[number + 1]])
        self[number] = note
        return note


class PackedRelations(Packed[Relation]):
    """Relations in columns: source, target, and the number of what else they say."""

    __slots__ = ("_note_of", "_notes", "_sources", "_targets")

    def __init__(
        self,
        ids: Sequence[int],
        rows: Sequence[int] | None,
        sources: memoryview,
        targets: memoryview,
        note_of: memoryview,
        notes: Notes,
    ) -> None:
        super().__init__(ids, rows)
        self._sources, self._targets = sources, targets
        self._note_of, self._notes = note_of, notes

    def at(self, row: int) -> Relation:
        return Relation(self.ids[row], self._sources[row], self._targets[row], *self._notes[self._note_of[row]])

    def at_rows(self, rows: Sequence[int]) -> list[Relation]:
        if not rows:
            return []
        columns = (map(column.__getitem__, rows) for column in (self.ids, self._sources, self._targets))
        said = zip(*map(self._notes.__getitem__, map(self._note_of.__getitem__, rows)), strict=True)
        return list(map(Relation, *columns, *said))

    def between_rows(self, start: int, end: int) -> Iterable[Relation]:
        if start == end:
            return ()
        columns = (column[start:end].tolist() for column in (self._sources, self._targets))
        said = zip(*map(self._notes.__getitem__, self._note_of[start:end].tolist()), strict=True)
        return map(Relation, self.ids[start:end], *columns, *said)


class NameList(Sequence[str]):
    """Names by row, decoded by pages."""

    def __init__(self, offsets: memoryview, blob: memoryview, count: int) -> None:
        self._offsets, self._blob = offsets, blob
        self._count = count
        self._pages: dict[int, list[str]] = {}

    @property
    def is_long(self) -> bool:
        return self._count > NAMES_A_PAGE * MOST_NAME_PAGES

    def whole(self) -> list[str]:
        """All of them at once: a list is ten times as fast."""
        return list(chain.from_iterable(map(self._decoded, range(len(self._offsets) - 1))))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: Any) -> Any:
        number, place = divmod(row, NAMES_A_PAGE)
        page = self._pages.get(number)
        if page is None:
            page = self._page(number)
        return page[place]

    def _page(self, number: int) -> list[str]:
        if len(self._pages) >= MOST_NAME_PAGES:
            self._pages.clear()
        page = self._pages[number] = self._decoded(number)
        return page

    def _decoded(self, number: int) -> list[str]:
        return decode_names(self._blob[self._offsets[number] : self._offsets[number + 1]])


def name_hash(name: str) -> int:
    """The same in every process, which Python's own is not."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))


def read_header(buffer: Any) -> Header | None:
    """What a whole snapshot of this version says of itself; None of anything else."""
    view = memoryview(buffer)
    if len(view) < PREAMBLE.size:
        return None
    magic, version, order, offset, size, crc = PREAMBLE.unpack_from(view)
    if (magic, version, order) != (MAGIC, VERSION, BYTE_ORDER) or offset + size != len(view):
        return None
    return _decoded(view) if zlib.crc32(view[offset:]) == crc else None


def _decoded(view: memoryview) -> Header:
    _, _, _, offset, size, _ = PREAMBLE.unpack_from(view)
    return decode_header(view[offset : offset + size])
