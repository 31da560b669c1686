"""The official server's file: one JSON object a line, entities first. What a line says and how it is written.

The law: what is written equals JSON.stringify byte for byte (msgspec does, compared with node for
every control character, U+2028 and the rest up to U+3000), and a line that cannot be read costs only itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from mcp_memory.changes import AnyChange, EntityCreated, RelationCreated
from mcp_memory.facts import GENERIC_TYPE, PLACEHOLDER, Entity
from mcp_memory.graph import Graph


class EntityLine(msgspec.Struct, tag_field="type", tag="entity", gc=False):
    name: str
    entityType: str = GENERIC_TYPE
    observations: list[str] = []


class RelationLine(msgspec.Struct, tag_field="type", tag="relation", gc=False):
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    relationType: str


class ExactEntityLine(EntityLine, tag="entity", forbid_unknown_fields=True):
    pass


class ExactRelationLine(RelationLine, tag="relation", forbid_unknown_fields=True):
    pass


encode = msgspec.json.Encoder().encode
_exact = msgspec.json.Decoder(ExactEntityLine | ExactRelationLine).decode
_loose: Callable[[bytes], EntityLine | RelationLine] = msgspec.json.Decoder(EntityLine | RelationLine).decode

# What a file begins with that is something else. The longest is 16 bytes.
FOREIGN = {
    b"SQLite format 3\0": "a SQLite database",
    b"MCPMEMV": "a binary journal (.mcpmem)",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive",
}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Escapes in a JSON text: a whole surrogate pair, half of one (1), a NUL (2), any other.
ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|(u0000)|.)",
    re.DOTALL,
)
NUL = rb"\u0000"


class BadLine(msgspec.Struct, frozen=True):
    number: int
    raw: bytes
    reason: str


class Reading(msgspec.Struct):
    """What a file said: its facts by name, and the lines that a rewrite would not bring back."""

    entities: dict[str, EntityLine] = {}
    relations: dict[tuple[str, str, str], None] = {}
    bad: list[BadLine] = []
    altered: list[bytes] = []  # served, but mended, with keys of its own, or merged into a line of the same name


def foreign(data: bytes) -> str | None:
    """What this is, if it is clearly no JSONL file."""
    for start, what in FOREIGN.items():
        if data.startswith(start):
            return what
    return "a binary file" if b"\0" in data[:16] else None


def mended(raw: bytes, keeps_nul: bool = False) -> bytes:
    """The same line with U+FFFD for what is no character (half of a surrogate pair, bytes that are not UTF-8), and
    for NUL, where that cannot stay."""

    def better(found: re.Match[bytes]) -> bytes:
        return rb"\ufffd" if found[1] or (found[2] and not keeps_nul) else found[0]

    return ESCAPE.sub(better, raw.decode(errors="replace").encode())


def read_lines(data: bytes) -> Reading:
    """Everything the file says. Only \\n ends a line: U+2028 and its like stand raw inside strings."""
    reading = Reading()
    for number, raw in enumerate(data.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        try:
            line = _exact(raw)
        except (ValueError, RecursionError):
            if not raw.strip():
                continue
            try:
                line = _loosely(raw)
            except (ValueError, RecursionError) as error:
                reading.bad.append(BadLine(number, raw, str(error)))
                continue
            reading.altered.append(raw)
        if isinstance(line, RelationLine):
            reading.relations[line.source, line.target, line.relationType] = None
        elif (first := reading.entities.setdefault(line.name, line)) is not line:
            known = set(first.observations)
            first.observations += [text for text in dict.fromkeys(line.observations) if text not in known]
            reading.altered.append(raw)
    return reading


def _loosely(raw: bytes) -> EntityLine | RelationLine:
    """With keys of its own, and with a character that is none: the rest of the line is worth having."""
    try:
        return _loose(raw)
    except ValueError:
        better = mended(raw, keeps_nul=True)
        if better == raw:
            raise
        return _loose(better)


def nothing_of_ours(reading: Reading) -> bool:
    """Is there text, but not one line that is or was meant as a line of a memory?"""
    if not reading.bad or reading.entities or reading.relations:
        return False
    return not any(_meant_as_ours(bad.raw) for bad in reading.bad)


def _meant_as_ours(raw: bytes) -> bool:
    try:
        value = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return raw.lstrip().startswith(b"{") and b'"type"' in raw
    return isinstance(value, dict) and "type" in value


def changes_of(reading: Reading) -> list[AnyChange]:
    """The changes that make a new graph of it, with ids in the order of the file."""
    changes: list[AnyChange] = []
    ids: dict[str, int] = {}
    observation = 1
    for entity_id, line in enumerate(reading.entities.values(), 1):
        ids[line.name] = entity_id
        changes.append(EntityCreated(entity_id, line.name, line.entityType, first=observation, texts=line.observations))
        observation += len(line.observations)
    for relation_id, (source, target, relation_type) in enumerate(reading.relations, 1):
        for end in (source, target):
            if end not in ids:
                ids[end] = len(ids) + 1
                changes.append(EntityCreated(ids[end], end, GENERIC_TYPE, PLACEHOLDER))
        changes.append(RelationCreated(relation_id, ids[source], ids[target], relation_type))
    return changes


def entity_line(entity: Entity) -> bytes:
    return encode(EntityLine(entity.name, entity.entity_type, [seen.text for seen in entity.observations]))


def relation_line(graph: Graph, relation_id: int) -> bytes:
    relation = graph.relations[relation_id]
    names = graph.by_id
    return encode(RelationLine(names[relation.source].name, names[relation.target].name, relation.relation_type))


def lines_of(graph: Graph) -> Iterator[bytes]:
    """The lines of a whole graph, every one encoded anew. Placeholders are no lines: relations name them."""
    yield from map(entity_line, graph.entities())
    for relation in graph.active_relations():
        yield relation_line(graph, relation.id)
