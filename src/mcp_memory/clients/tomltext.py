"""One table of a TOML file, edited in place: comments, order and everything else stay byte for byte.

The standard library reads TOML and does not write it. What is needed here is little: to know which lines belong to
one table. So the file is parted into statements, and those of the table are replaced. Whether that went well is not
believed but read: whoever edits compares what `tomllib` makes of the text before and after."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mcp_memory.clients.text import Broken, newline_of, place_in

BARE = re.compile(r"[A-Za-z0-9_-]+")
# What a statement is made of, so that a bracket or a line's end inside a text or an array is none.
TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]|\n|[^\[\]{}"\'#\n]+|.',
    re.DOTALL,
)
PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


class Statement(NamedTuple):
    """A header or a pair: text[start:end], whole lines; `path` is what it is about, from the root."""

    path: tuple[str, ...]
    is_header: bool
    start: int
    end: int


def parse(text: str) -> dict[str, Any]:
    """What the file says; Broken tells what is wrong with it and where."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        place = PLACE.search(str(fault))
        line, column = (int(place[1]), int(place[2])) if place else place_in(text, len(text.rstrip()))
        raise Broken(str(fault).partition(" (at ")[0], line, column) from fault


def with_table(text: str, keys: Sequence[str], value: dict[str, Any]) -> str:
    """The text with this table; where there is one already, in its place."""
    newline = newline_of(text)
    lines = [f"[{'.'.join(map(_key, keys))}]", *(f"{_key(key)} = {rendered(each)}" for key, each in value.items())]
    table = newline.join(lines) + newline
    spans = _spans(text, tuple(keys))
    if spans and text[spans[0][0] :].lstrip().startswith("["):
        start, end = spans[0]
        return text[:start] + table + _without(text, spans[1:])[end:]
    text = _without(text, spans)  # pairs within another table: what stands below them belongs to that one
    if text and not text.endswith("\n"):
        text += newline
    return text + (newline if text.strip() else "") + table


def without_table(text: str, keys: Sequence[str]) -> str:
    """The text without this table, its subtables, and the empty line before it."""
    spans = _spans(text, tuple(keys))
    if not spans:
        return text
    start, end = spans[0]
    before = text[:start]
    if before.endswith(("\n\n", "\n\r\n")) and not text[end:].strip():
        spans[0] = (len(before.rstrip("\r\n")) + len(newline_of(text)), end)
    return _without(text, spans)


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text


def _spans(text: str, keys: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where the table stands: from a header to its last pair. What follows that belongs to the next one."""
    spans: list[tuple[int, int]] = []
    inside = False
    for statement in statements(text):
        is_ours = statement.path[: len(keys)] == keys
        if is_ours and inside and not statement.is_header:
            spans[-1] = (spans[-1][0], statement.end)
        elif is_ours:
            spans.append((statement.start, statement.end))
        inside = is_ours
    return spans


def statements(text: str) -> Iterator[Statement]:
    """Headers and pairs, in their order. The text must be valid TOML."""
    table: tuple[str, ...] = ()
    for start, end in _lines(text):
        said = text[start:end]
        head = said.lstrip()
        if not head or head.startswith("#"):
            continue
        if head.startswith("["):
            table = _path_of(said)
            yield Statement(table, True, start, end)
        else:
            yield Statement((*table, *_path_of(_name_in(said) + "= 0")), False, start, end)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Logical lines: a line's end inside a text or an array does not end them."""
    start = depth = 0
    for token in TOKEN.finditer(text):
        said = token[0]
        depth += (said in "[{") - (said in "]}") if len(said) == 1 else 0
        if said == "\n" and not depth:
            yield start, token.end()
            start = token.end()
    if start < len(text):
        yield start, len(text)


def _name_in(pair: str) -> str:
    """What stands before the first `=` that is not in quotation marks."""
    match = re.match(r'(?:"(?:\\.|[^"\\])*"|\'[^\']*\'|[^="\'])*', pair)
    return match[0] if match else pair


def _path_of(said: str) -> tuple[str, ...]:
    """The names in a header or before a value: read by those who know how."""
    found: Any = tomllib.loads(said)
    path = []
    while found and isinstance(found, dict | list):
        if isinstance(found, list):
            found = found[0]
            continue
        ((name, found),) = found.items()
        path.append(name)
    return tuple(path)


def rendered(value: Any) -> str:
    """A value in TOML, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {rendered(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(rendered, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else rendered(name)
