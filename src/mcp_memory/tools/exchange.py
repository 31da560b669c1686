"""Tools that bring facts in from other memories, or show all of them in another form."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from mcp_memory import drawing
from mcp_memory.changes import Plan
from mcp_memory.desk import Pieces, Said
from mcp_memory.errand import Errand
from mcp_memory.facts import ACTIVE, BadInput, MemoryFault, check_name
from mcp_memory.graph import Graph
from mcp_memory.paths import confined
from mcp_memory.stores.formats import format_of
from mcp_memory.stores.lines import NUL, mended
from mcp_memory.tools.drafting import Draft
from mcp_memory.tools.inputs import RelationInput
from mcp_memory.tools.registry import tool
from mcp_memory.tools.remember import Linking
from mcp_memory.tools.rendering import everything_json

LOOSE_ENDS = "Relations to entities that were never created are skipped: {count}. `mcp-memory import` brings them in."
# Progress is told, and cancelling noticed, every so many lines.
STRIDE = 2000
# Of so many lines that were left out, a caller that listens is told each with its reason.
MOST_TOLD = 20


class EntityLine(msgspec.Struct, tag_field="type", tag="entity", rename="camel"):
    """A line of the official format that holds an entity."""

    name: str
    entity_type: str = "Generic"
    observations: list[str] = []


class RelationLine(
    msgspec.Struct,
    tag_field="type",
    tag="relation",
    rename={"source": "from", "target": "to", "relation_type": "relationType"},
):
    """A line of the official format that holds a relation."""

    source: str
    target: str
    relation_type: str


Line = EntityLine | RelationLine
decode_line: Callable[[bytes], Line] = msgspec.json.Decoder(Line).decode


class Written(NamedTuple):
    """A line as it stands in its file."""

    number: int
    text: bytes


class Reading:
    """What was read from a file: good lines, and the bad ones with the reason each is bad."""

    def __init__(self) -> None:
        self.entities: list[EntityLine] = []
        self.relations: list[tuple[RelationLine, Written]] = []
        self.rejected: list[tuple[Written, str]] = []
        self.altered: list[Written] = []  # taken, but for a character that is none
        self.skipped = 0
        self.errors = 0

    def reject(self, line: Written, why: str) -> None:
        self.rejected.append((line, why))

    def skip(self, line: Written, why: str) -> None:
        self.skipped += 1
        self.reject(line, why)

    def take(self, line: Written) -> None:
        """Sort one line in. Lines that are no record are skipped, records with wrong content are errors."""
        try:
            record = self._read(line)
            if isinstance(record, EntityLine):
                check_name(record.name)
                check_name(record.entity_type, "entityType")
                self.entities.append(record)
            else:
                check_name(record.source, "from")
                check_name(record.target, "to")
                check_name(record.relation_type, "relationType")
                self.relations.append((record, line))
        except msgspec.ValidationError as fault:
            if "missing required field" in str(fault) or "`$.type`" in str(fault) or "Expected `object`" in str(fault):
                self.skip(line, str(fault))
            else:
                self.errors += 1
                self.reject(line, str(fault))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            self.skip(line, str(fault) or type(fault).__name__)
        except BadInput as fault:
            self.skip(line, str(fault))

    def _read(self, line: Written) -> Line:
        """What a line says; one with a character that no text may hold is mended, and kept aside as it was."""
        try:
            if NUL not in line.text:
                return decode_line(line.text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            if mended(line.text) == line.text:
                raise
        better = mended(line.text)
        record = decode_line(better)
        if better != line.text:
            self.altered.append(line)
        return record


@tool(idempotent=True, scope="admin")
def migrate(errand: Errand, source_path: str = "") -> dict[str, Any]:
    """Import another memory file into this memory: the official server's (JSONL), a journal (.mcpmem) or a SQLite
    database. Can be repeated without harm. Lines that cannot be read are kept beside the file and counted."""
    if not source_path:
        raise BadInput("source_path is required: the path of a memory file, such as ~/memory.jsonl.")
    path = confined(source_path, errand.space.roots)
    _refuse_itself(getattr(errand.space.store, "path", None), path)
    _refuse_what_is_no_file(path)
    if format_of(path) == "jsonl":
        return import_jsonl(errand, path)
    from mcp_memory.conversion import import_memory

    return import_memory(errand, path)


def _refuse_itself(own: str | None, path: str) -> None:
    """Not even a look: closing a file that SQLite has open in this process drops the locks it holds there."""
    for ending in ("", "-wal", "-shm"):
        with suppress(OSError):
            if os.path.samefile(f"{own}{ending}", path):
                raise BadInput(f"{path} is this memory itself. Name another file.")


def _refuse_what_is_no_file(path: str) -> None:
    """A folder, a device, or a pipe, which could keep us waiting for ever."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise BadInput(f"{path} is no file that could be read from its beginning to its end. Name a memory file.")


def import_jsonl(errand: Errand, path: str) -> dict[str, Any]:
    """Read the whole file first, outside every lock, then commit it as one plan."""
    reading = Reading()
    size = _size(path)
    done = 0
    for number, line in enumerate(_lines(path)):
        done += len(line)
        if line.strip():
            reading.take(Written(number + 1, line.strip(b"\r\n")))
        if number % STRIDE == 0:
            errand.progress(done, size, "reading")
    errand.progress(size, size, f"writing {len(reading.entities)} entities, {len(reading.relations)} relations")
    answer = errand.commit(lambda graph: _plan(graph, reading, errand.keeps_loose_ends))
    aside = [line for line, _ in reading.rejected] + reading.altered
    if aside:
        answer["quarantine"] = _quarantine(path, aside)
    if reading.rejected:
        _tell_of_rejected(errand, reading.rejected, answer["quarantine"])
    return dict(answer)


def _tell_of_rejected(errand: Errand, rejected: list[tuple[Written, str]], aside: str | None) -> None:
    """What was left out and why, line by line: an answer has only room for how many."""
    for line, why in sorted(rejected)[:MOST_TOLD]:
        errand.log("warning", f"line {line.number} was not imported: {why}")
    kept = f"kept in {aside}" if aside else "left where they are, in the file that was read"
    errand.log("warning", f"{len(rejected)} lines were not imported; they are {kept}")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError as error:
        raise MemoryFault(f"{path} cannot be read: {error.strerror}. Check the path.") from error


def _lines(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            yield from file
    except OSError as error:
        raise MemoryFault(f"{path} cannot be read: {error.strerror}. Check the path.") from error


def _plan(graph: Graph, reading: Reading, keeps_loose_ends: bool) -> Plan:
    """Entities first, wherever their lines stood, so that no relation is lost to the order of lines."""
    draft = Draft(graph)
    for record in reading.entities:
        if draft.create(record.name, record.observations, record.entity_type, ACTIVE) is None:
            draft.observe(record.name, record.observations)
    linking = Linking(graph, draft, keeps_loose_ends)
    imported = 0
    lost: list[tuple[Written, str]] = []
    for link, line in reading.relations:
        given = RelationInput(link.source, link.target, link.relation_type)
        said = linking.link(given)
        if "from" not in said:
            lost.append((line, said["error"]))
        elif "error" not in said:
            imported += 1
    reading.rejected += lost
    answer: dict[str, Any] = {
        "entities_imported": len(reading.entities),
        "relations_imported": imported,
        "errors": reading.errors,
        "skipped": reading.skipped + len(lost),
    }
    if lost:
        answer["note"] = LOOSE_ENDS.format(count=len(lost))
    return Plan(draft.changes + linking.changes, answer)


def _quarantine(path: str, lines: list[Written]) -> str | None:
    """Keep the lines that were not imported as they are, each once, beside the file they came from."""
    aside = path + ".quarantine"
    if os.path.islink(aside):
        return None  # it may lead anywhere
    try:
        known = set()
        if os.path.exists(aside):
            with open(aside, "rb") as file:
                known = set(file.read().split(b"\n"))
        with open(aside, "ab") as file:
            for _, line in lines:
                if line not in known:
                    known.add(line)
                    file.write(line + b"\n")
    except OSError:
        return None  # nothing is lost: the lines still stand in the source
    return aside


DRAWN: dict[str, Callable[[Graph], str]] = {"mermaid": drawing.mermaid, "dot": drawing.dot}
# A drawing is made in 30 ms for 120,000 relations, and kept while nothing changes unless it is larger than this.
LARGEST_KEPT = 16_000_000

_drawings: WeakKeyDictionary[Graph, tuple[int, dict[str, str]]] = WeakKeyDictionary()


@tool(lengthy=True, past=True)
def export_graph(graph: Graph, format: Literal["json", "mermaid", "dot"] = "json") -> Said | Pieces:
    """The whole graph as one text: json, a mermaid flowchart, or dot for Graphviz. Large; to look at a part, use
    extract_subgraph."""
    if format == "json":
        escaped = everything_json(graph).escaped
        return Pieces([b'{"format":"json","content":"', *escaped, b'"}'], escaped)
    text = _drawing(graph, format)
    return Said(text, {"format": format, "content": text})


def forget_drawings(graph: Graph) -> None:
    """Let the next one be drawn, though nothing changed."""
    _drawings.pop(graph, None)


def _drawing(graph: Graph, form: str) -> str:
    seq, kept = _drawings.get(graph, (-1, {}))
    if seq != graph.seq:
        kept = {}
        _drawings[graph] = graph.seq, kept
    if form in kept:
        return kept[form]
    text = DRAWN[form](graph)
    if len(text) <= LARGEST_KEPT:
        kept[form] = text
    return text
