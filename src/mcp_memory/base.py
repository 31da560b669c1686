"""A graph as it was at one entry of the feed, packed into bytes that can be mapped from a file.

Everything a graph needs at once is an array or a blob that is used where it lies; only the names
become objects. The sections and their order are the format, and VERSION is its number: a file of
another version is not read but made anew, for all of it can be derived."""

from __future__ import annotations

import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.facts import PLACEHOLDER, Entity, Reflection, Relation
from mcp_memory.search.words import WordPacker
from mcp_memory.shelf import Packed

if TYPE_CHECKING:
    from mcp_memory.search.words import Words

MAGIC = b"MCPGRAPH"
VERSION = 1
ALIGNMENT = 8
BLOBS = ("entities", "relations", "names", "vocabulary")  # every other section is an array of numbers

encode = msgspec.msgpack.Encoder().encode
decode_names = msgspec.msgpack.Decoder(list[str]).decode
decode_entity = msgspec.msgpack.Decoder(Entity).decode
decode_relation = msgspec.msgpack.Decoder(Relation).decode
decode_entities = msgspec.msgpack.Decoder(list[Entity]).decode
decode_relations = msgspec.msgpack.Decoder(list[Relation]).decode


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
    version: int
    counts: Counts
    placeholders: list[int]
    loops: list[int]
    reflections: list[Reflection]
    type_names: list[str]
    sections: dict[str, tuple[int, int]]
    origin: str = ""  # which store this was made from, and where in its history


decode_header = msgspec.msgpack.Decoder(Header).decode


class Base:
    """One packed graph. The buffer may be a mapped file; nothing of it is copied."""

    def __init__(self, buffer: Any) -> None:
        view = memoryview(buffer)
        size = int.from_bytes(view[len(MAGIC) : len(MAGIC) + 8], "little")
        start = len(MAGIC) + 16
        self.header = decode_header(view[start : start + size])
        self.counts = self.header.counts
        body = _aligned(start + size)
        self.arrays: dict[str, memoryview] = {}
        self.blobs: dict[str, memoryview] = {}
        for name, (offset, length) in self.header.sections.items():
            part = view[body + offset : body + offset + length]
            if name not in BLOBS:
                self.arrays[name] = part.cast("q")
            else:
                self.blobs[name] = part
        a, b = self.arrays, self.blobs
        self.entities: Packed[Entity] = Packed(
            a["entity_ids"], a["entity_offsets"], b["entities"], decode_entity, decode_entities
        )
        self.relations: Packed[Relation] = Packed(
            a["relation_ids"], a["relation_offsets"], b["relations"], decode_relation, decode_relations
        )

        self._incident_offsets, self._incident = a["incident_offsets"], a["incident"]
        self._near_offsets, self._near = a["near_offsets"], a["near"]
        self.name_list = decode_names(b["names"])
        self.has_ended = self.counts.relations < len(self.relations.ids)

    def names(self) -> dict[str, int]:
        """Every name, placeholders included, with its id."""
        return dict(zip(self.name_list, self.arrays["entity_ids"].tolist(), strict=True))

    def types_of_entities(self) -> Iterator[tuple[int, str]]:
        """Id and type of every entity that is no placeholder."""
        kinds = self.header.type_names
        pairs = zip(self.arrays["entity_ids"], self.arrays["entity_types"], strict=True)
        return ((entity_id, kinds[number]) for entity_id, number in pairs if number >= 0)

    def words(self) -> Words | None:
        """The word index, if it was packed too."""
        if "vocabulary" not in self.blobs:
            return None
        from mcp_memory.search.words import Words

        return Words({**self.arrays, **self.blobs})

    def incident(self, entity_id: int) -> list[int]:
        """Ids of the relations touching an entity, in order."""
        return self._row(self._incident_offsets, self._incident, entity_id)

    def near(self, entity_id: int) -> list[int]:
        """The neighbours of an entity, as Graph.neighbours tells them."""
        return self._row(self._near_offsets, self._near, entity_id)

    def _row(self, offsets: memoryview, flat: memoryview, entity_id: int) -> list[int]:
        row = self.entities.row(entity_id)
        return [] if row is None else flat[offsets[row] : offsets[row + 1]].tolist()


def decode_header_of(buffer: Any) -> Header:
    """What a snapshot says of itself, without opening it."""
    view = memoryview(buffer)
    size = int.from_bytes(view[len(MAGIC) : len(MAGIC) + 8], "little")
    start = len(MAGIC) + 16
    return decode_header(view[start : start + size])


def is_intact(buffer: Any) -> bool:
    """Is this a whole snapshot of this version, as it was written?"""
    view = memoryview(buffer)
    if len(view) < len(MAGIC) + 16 or bytes(view[: len(MAGIC)]) != MAGIC:
        return False
    size = int.from_bytes(view[len(MAGIC) : len(MAGIC) + 8], "little")
    crc = int.from_bytes(view[len(MAGIC) + 8 : len(MAGIC) + 16], "little")
    start = len(MAGIC) + 16
    if zlib.crc32(view[start : start + size]) != crc:
        return False
    header = decode_header(view[start : start + size])
    end = max((offset + length for offset, length in header.sections.values()), default=0)
    return header.version == VERSION and len(view) == _aligned(start + size) + _aligned(end)


class Packer:
    """Makes a base from facts that come in order of id, holding none of them."""

    def __init__(self, with_words: bool = False) -> None:
        self.counts = Counts()
        self.names: list[str] = []
        self.placeholders: list[int] = []
        self.loops: list[int] = []
        self.entity_types = array("q")  # number of the type; -1 for a placeholder
        self._type_numbers: dict[str, int] = {}
        self.words = WordPacker() if with_words else None
        self.entities = bytearray()
        self.relations = bytearray()
        self.entity_ids, self.relation_ids = array("q"), array("q")
        self.entity_offsets, self.relation_offsets = array("q", [0]), array("q", [0])
        self.types: Counter[str] = Counter()
        self.relation_types: Counter[str] = Counter()
        self.reflections: list[Reflection] = []
        self._incident: dict[int, array[int]] = {}
        self._ends: dict[int, array[int]] = {}  # entity -> the other ends of its active relations, in order

    def add_entity(self, entity: Entity) -> None:
        counts = self.counts
        self.entity_ids.append(entity.id)
        self.entities += encode(entity)
        self.entity_offsets.append(len(self.entities))
        self.names.append(entity.name)
        counts.next_entity = entity.id + 1
        if entity.observations:
            counts.next_observation = max(counts.next_observation, entity.observations[-1].id + 1)
        if entity.status == PLACEHOLDER:
            self.placeholders.append(entity.id)
            self.entity_types.append(-1)
            return
        self.entity_types.append(self._type_numbers.setdefault(entity.entity_type, len(self._type_numbers)))
        if self.words is not None:
            self.words.add(entity)
        counts.entities += 1
        counts.observations += len(entity.active())
        self.types[entity.entity_type] += 1

    def add_relation(self, relation: Relation) -> None:
        self.relation_ids.append(relation.id)
        self.relations += encode(relation)
        self.relation_offsets.append(len(self.relations))
        self.counts.next_relation = relation.id + 1
        source, target = relation.source, relation.target
        _append(self._incident, source, relation.id)
        if source != target:
            _append(self._incident, target, relation.id)
        else:
            self.loops.append(relation.id)
        if relation.ended_at is None:
            self.counts.relations += 1
            self.relation_types[relation.relation_type] += 1
            if source != target:
                _append(self._ends, source, target)
                _append(self._ends, target, source)

    def add_reflection(self, reflection: Reflection) -> None:
        self.reflections.append(reflection)
        self.counts.next_reflection = max(self.counts.next_reflection, reflection.id + 1)

    def finish(self, origin: str = "") -> bytes:
        """The packed graph."""
        unseen = set(self.placeholders)
        near_offsets, near = self._rows(
            [i for i in dict.fromkeys(self._ends.get(entity_id, ())) if i not in unseen]
            for entity_id in self.entity_ids
        )
        incident_offsets, incident = self._rows(self._incident.get(entity_id, ()) for entity_id in self.entity_ids)
        self.counts.types, self.counts.relation_types = dict(self.types), dict(self.relation_types)
        parts = {
            "entity_ids": self.entity_ids,
            "entity_offsets": self.entity_offsets,
            "relation_ids": self.relation_ids,
            "relation_offsets": self.relation_offsets,
            "incident_offsets": incident_offsets,
            "incident": incident,
            "near_offsets": near_offsets,
            "near": near,
            "entities": self.entities,
            "relations": self.relations,
            "names": encode(self.names),
            "entity_types": self.entity_types,
            **({} if self.words is None else self.words.sections()),
        }
        return b"".join(self._assembled(parts, origin))

    @staticmethod
    def _rows(rows: Iterable[Iterable[int]]) -> tuple[array[int], array[int]]:
        offsets, flat = array("q", [0]), array("q")
        for row in rows:
            flat.extend(row)
            offsets.append(len(flat))
        return offsets, flat

    def _assembled(self, parts: dict[str, Any], origin: str) -> Iterator[bytes]:
        sections: dict[str, tuple[int, int]] = {}
        offset = 0
        for name, part in parts.items():
            length = memoryview(part).nbytes
            sections[name] = (offset, length)
            offset = _aligned(offset + length)
        kinds = list(self._type_numbers)
        whole = Header(VERSION, self.counts, self.placeholders, self.loops, self.reflections, kinds, sections, origin)
        header = encode(whole)
        yield MAGIC + len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(8, "little") + header
        yield _padding(len(MAGIC) + 16 + len(header))
        for part in parts.values():
            yield bytes(memoryview(part).cast("B")) if len(part) else b""
            yield _padding(memoryview(part).nbytes)


def _append(rows: dict[int, array[int]], key: int, value: int) -> None:
    row = rows.get(key)
    if row is None:
        rows[key] = array("q", (value,))
    else:
        row.append(value)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _padding(size: int) -> bytes:
    return bytes(_aligned(size) - size)
