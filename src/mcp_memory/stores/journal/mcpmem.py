"""The bytes of a `.mcpmem` file: eight of magic, then records of what happened, one after the other.

    u32 length (of the whole record) | u8 kind | payload | in version 2: u32 CRC-32 of the payload

Numbers are little-endian, a text is its u16 length and UTF-8. The law: what is written is what the Rust
server writes, byte for byte; and reading never fails: what is no record is told as a stretch of bytes,
and costs no record that can be found behind it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from struct import Struct
from struct import error as StructError
from typing import Any
from zlib import crc32

MAGIC = {1: b"MCPMEMV1", 2: b"MCPMEMV2"}
FAMILY = b"MCPMEMV"
HEAD = 8
NEWEST = 2

CREATE_ENTITY, CREATE_RELATION, ADD_OBSERVATIONS, DELETE_ENTITY, DELETE_OBSERVATIONS, DELETE_RELATION = range(6)
BEGIN, COMMIT = 6, 7
# What a scan tells besides: a stretch that is no record with records behind it, and one with nothing behind it.
BAD, TORN = -1, -2

LONGEST_TEXT = 0xFFFF
LARGEST = 1 << 20
TRAILER = {1: 0, 2: 4}
# One limit for both versions, so that compacting can never make a record too large.
ROOM = LARGEST - 5 - TRAILER[2]

Record = tuple[int, bytes]  # kind and payload
Found = tuple[int, int, int, tuple[Any, ...]]  # kind, start, end, fields

_u16 = Struct("<H").pack
_u32 = Struct("<I").pack
_front = Struct("<IB").pack
_read_front = Struct("<IB").unpack_from
_read_u32 = Struct("<I").unpack_from


class TooDamaged(Exception):
    """Nearly every byte may be a record and none is: no damage looks like that, and looking goes on for hours."""


class TooLarge(ValueError):
    """A fact that no record can hold; the text says what it is."""


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def frame(records: Iterable[Record], version: int) -> bytes:
    """Records as they stand in a file."""
    if version == 1:
        return b"".join([_front(5 + len(payload), kind) + payload for kind, payload in records])
    return b"".join(
        [_front(9 + len(payload), kind) + payload + _u32(crc32(payload)) for kind, payload in records],
    )


def transaction(records: list[Record]) -> list[Record]:
    """Several records that become true together or not at all."""
    return [(BEGIN, b""), *records, (COMMIT, b"")] if len(records) > 1 else records


def text(value: str) -> bytes:
    raw = value.encode()
    if len(raw) > LONGEST_TEXT:
        raise TooLarge(f"a text of {len(raw):,} bytes (the most is {LONGEST_TEXT:,})")
    return _u16(len(raw)) + raw


def create_entity(name: str, entity_type: str, texts: Collection[str]) -> list[Record]:
    """One record, or several where the observations need more room than one has."""
    # By hand: `text` for each would take twice as long, and this is what is written most.
    first, second = name.encode(), entity_type.encode()
    try:
        parts = [_u16(len(first)), first, _u16(len(second)), second, _u32(len(texts))]
        for one in texts:
            raw = one.encode()
            parts += (_u16(len(raw)), raw)
    except StructError:
        return _create_large(name, entity_type, texts)
    payload = b"".join(parts)
    return [(CREATE_ENTITY, payload)] if len(payload) <= ROOM else _create_large(name, entity_type, texts)


def _create_large(name: str, entity_type: str, texts: Collection[str]) -> list[Record]:
    front = text(name) + text(entity_type)
    bodies = [text(one) for one in texts]
    if len(set(bodies)) < len(bodies):
        # The records that continue an entity add what is not there yet.
        raise TooLarge(f"an entity of more than {ROOM:,} bytes that says the same thing twice")
    first, *rest = _portions(bodies, ROOM - len(front) - 4)
    return [
        (CREATE_ENTITY, front + _u32(len(first)) + b"".join(first)),
        *_lists(ADD_OBSERVATIONS, name, [body for portion in rest for body in portion]),
    ]


def add_observations(name: str, texts: Iterable[str]) -> list[Record]:
    return _lists(ADD_OBSERVATIONS, name, [text(one) for one in texts])


def delete_observations(name: str, texts: Iterable[str]) -> list[Record]:
    return _lists(DELETE_OBSERVATIONS, name, [text(one) for one in texts])


def create_relation(source: str, target: str, relation_type: str) -> Record:
    return CREATE_RELATION, text(source) + text(target) + text(relation_type)


def delete_relation(source: str, target: str, relation_type: str) -> Record:
    return DELETE_RELATION, text(source) + text(target) + text(relation_type)


def delete_entity(name: str) -> Record:
    return DELETE_ENTITY, text(name)


def _lists(kind: int, name: str, bodies: list[bytes]) -> list[Record]:
    front = text(name)
    return [
        (kind, front + _u32(len(portion)) + b"".join(portion)) for portion in _portions(bodies, ROOM - len(front) - 4)
    ]


def _portions(bodies: list[bytes], room: int) -> Iterator[list[bytes]]:
    portion: list[bytes] = []
    left = room
    for body in bodies:
        if len(body) > left:
            yield portion
            portion, left = [], room
        portion.append(body)
        left -= len(body)
    yield portion


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def scan(data: bytes, at: int, version: int) -> Iterator[Found]:
    """Every record from `at` on, and every stretch that is none: BAD or, at the end, TORN, with the reason."""
    trailer = TRAILER[version]
    least, size = 5 + trailer, len(data)
    effort = Effort(size)
    while at < size:
        # This is the road of nearly all: 160,000 records a fifth of a second.
        if size - at >= least:
            length, kind = _read_front(data, at)
            end = at + length
            if least <= length <= LARGEST and end <= size and kind <= COMMIT:
                stop = end - trailer
                if not trailer or _read_u32(data, stop)[0] == crc32(data[at + 5 : stop]):
                    try:
                        fields, content = DECODE[kind](data, at + 5, stop)
                    except (ValueError, IndexError):
                        content = -1
                    if content == stop:
                        yield kind, at, end, fields
                        at = end
                        continue
        found = _salvaged(data, at, version, effort) or _nothing_at(data, at, version, effort)
        yield found
        at = found[2]


class Effort:
    """What may be spent on looking for records where the file is damaged: a step for each text that is passed.

    A damaged file takes some steps for each wound. One that was made to look like a record at every place would
    take as many for each of its bytes; it has to end somewhere."""

    def __init__(self, size: int) -> None:
        self.left = LEAST_STEPS + STEPS_A_BYTE * size

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooDamaged


LEAST_STEPS, STEPS_A_BYTE = 1_000_000, 4
BYTES_A_STEP = 64  # of checksums and decoding, which are that much faster


def _passed(data: bytes, at: int, stop: int, kind: int, effort: Effort) -> int:
    """Where the content that begins here ends, going by the lengths of its texts; 0 where they lead astray."""
    start, steps = at, 1
    is_astray = False
    for left in (TEXTS[kind], LISTED) if kind in LISTING else (TEXTS[kind],):
        if left == LISTED:
            is_astray |= at + 4 > stop
            left = 0 if is_astray else _read_u32(data, at)[0]
            at += 4
        while left and at + 2 <= stop:
            at += 2 + (data[at] | data[at + 1] << 8)
            steps += 1
            left -= 1
        is_astray |= left > 0 or at > stop
    effort.spend(steps + (min(at, stop) - start) // BYTES_A_STEP)
    return 0 if is_astray else at


def _fields(data: bytes, at: int, stop: int, kind: int) -> tuple[Any, ...] | None:
    try:
        return DECODE[kind](data, at, stop)[0]
    except (ValueError, IndexError):
        return None


def _salvaged(data: bytes, at: int, version: int, effort: Effort) -> Found | None:
    """A record whose length is wrong, if its content tells where it ends, or that holds more than we know."""
    trailer, size = TRAILER[version], len(data)
    if size - at < 5 + trailer:
        return None
    length, kind = _read_front(data, at)
    content = _passed(data, at + 5, min(size, at + LARGEST) - trailer, kind, effort) if kind <= COMMIT else 0
    if not content:
        return None
    told, found = at + length, content + trailer
    end = 0
    if _ends_at(data, at, found, version, effort) and not (
        found > told and not trailer and _goes_on(data, told, version, effort)
    ):
        end = found
    elif found <= told and _ends_at(data, at, told, version, effort):
        end = told
    fields = _fields(data, at + 5, content, kind) if end else None
    return None if fields is None else (kind, at, end, fields)


def _ends_at(data: bytes, at: int, end: int, version: int, effort: Effort) -> bool:
    """May the record that begins at `at` end here? Version 2 knows; in version 1 records must go on."""
    if end > min(len(data), at + LARGEST):
        return False
    if version == 1:
        return _goes_on(data, end, version, effort)
    return bool(_read_u32(data, end - 4)[0] == crc32(data[at + 5 : end - 4]))


def _goes_on(data: bytes, at: int, version: int, effort: Effort) -> bool:
    return at == len(data) or _whole(data, at, version, effort) > 0


def _nothing_at(data: bytes, at: int, version: int, effort: Effort) -> Found:
    """The stretch that is no record, up to the next one."""
    size = len(data)
    for place in PERHAPS.finditer(data, at + 1):
        start = place.start()
        effort.spend(1)
        end = _whole(data, start, version, effort)
        if end and (_is_certain(data, start, end, version) or (end < size and _whole(data, end, version, effort))):
            return BAD, at, start, (_reason(data, at, version),)
    is_framed = size - at >= 5 + TRAILER[version] and at + _read_front(data, at)[0] == size
    return BAD if is_framed else TORN, at, size, (_reason(data, at, version),)


def _is_certain(data: bytes, start: int, end: int, version: int) -> bool:
    """Can these bytes be nothing else than a record? A few bytes of a text may look like an empty one, and what
    takes facts away must be more than likely."""
    return end - start > 5 + TRAILER[version] and (version > 1 or data[start + 4] <= ADD_OBSERVATIONS)


# A place where a record could begin: a length between 5 and 2^20, and a known kind.
PERHAPS = re.compile(rb"(?s)(?=(?![\x00-\x04]\x00\x00)..[\x00-\x10]\x00[\x00-\x07])")


def _reason(data: bytes, at: int, version: int) -> str:
    trailer = TRAILER[version]
    if len(data) - at < 5 + trailer:
        return "the file ends inside a record"
    length, kind = _read_front(data, at)
    if not 5 + trailer <= length <= LARGEST:
        return f"a record cannot have {length} bytes"
    if at + length > len(data):
        return "the file ends inside a record"
    if trailer and _read_u32(data, at + length - trailer)[0] != crc32(data[at + 5 : at + length - trailer]):
        return "its checksum is wrong"
    return f"no record is of kind {kind}" if kind > COMMIT else "its content cannot be read"


def _whole(data: bytes, at: int, version: int, effort: Effort) -> int:
    """The end of the record that begins here, if there is one to the last byte; otherwise 0."""
    trailer = TRAILER[version]
    if len(data) - at < 5 + trailer:
        return 0
    length, kind = _read_front(data, at)
    end = at + length
    if not 5 + trailer <= length <= LARGEST or end > len(data) or kind > COMMIT:
        return 0
    stop = end - trailer
    # Passing over its texts comes first: it gives up early where anything may stand.
    if _passed(data, at + 5, stop, kind, effort) != stop:
        return 0
    if trailer and _read_u32(data, stop)[0] != crc32(data[at + 5 : stop]):
        return 0
    return 0 if _fields(data, at + 5, stop, kind) is None else int(end)


def begins_with_record(data: bytes) -> int:
    """The version of a file without magic, if it is one: the Rust server leaves it out of an empty file."""
    return next((version for version in (2, 1) if _whole(data, 0, version, Effort(len(data)))), 0)


def _one(data: bytes, at: int, stop: int) -> tuple[str, int]:
    start = at + 2
    end = start + (data[at] | data[at + 1] << 8)
    if end > stop:
        raise ValueError
    return data[start:end].decode(), end


def _several(data: bytes, at: int, stop: int) -> tuple[list[str], int]:
    if at + 4 > stop:
        raise ValueError
    (count,) = _read_u32(data, at)
    at += 4
    texts = []
    for _ in range(count):  # a wrong count ends at `stop`
        start = at + 2
        at = start + (data[at] | data[at + 1] << 8)
        if at > stop:
            raise ValueError
        texts.append(data[start:at].decode())
    return texts, at


def _entity(data: bytes, at: int, stop: int) -> tuple[tuple[str, str, list[str]], int]:
    name, at = _one(data, at, stop)
    entity_type, at = _one(data, at, stop)
    texts, at = _several(data, at, stop)
    return (name, entity_type, texts), at


def _listed(data: bytes, at: int, stop: int) -> tuple[tuple[str, list[str]], int]:
    name, at = _one(data, at, stop)
    texts, at = _several(data, at, stop)
    return (name, texts), at


def _triple(data: bytes, at: int, stop: int) -> tuple[tuple[str, str, str], int]:
    # The most frequent record of a large file: three times `_one`, without the calls.
    one = at + 2 + (data[at] | data[at + 1] << 8)
    two = one + 2 + (data[one] | data[one + 1] << 8)
    end = two + 2 + (data[two] | data[two + 1] << 8)
    if end > stop:
        raise ValueError
    return (data[at + 2 : one].decode(), data[one + 2 : two].decode(), data[two + 2 : end].decode()), end


def _name(data: bytes, at: int, stop: int) -> tuple[tuple[str], int]:
    name, at = _one(data, at, stop)
    return (name,), at


def _nothing(data: bytes, at: int, stop: int) -> tuple[tuple[()], int]:
    return (), at


# The fields of a payload, and where they end.
DECODE: tuple[Callable[[bytes, int, int], tuple[tuple[Any, ...], int]], ...] = (
    _entity,
    _triple,
    _listed,
    _name,
    _listed,
    _triple,
    _nothing,
    _nothing,
)
# With how many texts each kind begins, and which ones go on with a list of texts.
TEXTS = (2, 3, 1, 1, 1, 3, 0, 0)
LISTING = {CREATE_ENTITY, ADD_OBSERVATIONS, DELETE_OBSERVATIONS}
LISTED = -1  # as many as is said there
