"""JSON as people keep it, with comments and commas at the end, edited in place.

The law: what an edit is not about stays byte for byte. So a text is not parsed into values and written anew, but
into parts that know where they stand, and an edit replaces some characters of the text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from mcp_memory.clients.text import Broken, cut, indent_of, line_end, newline_of, place_in, step_of

GAP = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"')
SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
DEEPEST = 200


class Part(msgspec.Struct):
    """One value and where it stands: text[start:end]. An object has members, an array items."""

    start: int
    end: int
    value: Any
    members: list[Member] = []
    items: list[Part] = []


class Member(msgspec.Struct):
    """A key with its value."""

    key: str
    start: int
    part: Part


class Reader:
    """One text, read once from its beginning to its end."""

    def __init__(self, text: str, lenient: bool) -> None:
        self.text = text
        self.lenient = lenient  # are comments, and commas at the end, allowed?

    def document(self) -> Part:
        part = self._value(self._gap(0), 0)
        end = self._gap(part.end)
        if end != len(self.text):
            raise Broken("there is something after the end", *place_in(self.text, end))
        return part

    def _gap(self, at: int) -> int:
        match = GAP.match(self.text, at)
        end = match.end() if match else at
        if not self.lenient and (comment := re.search(r"/[/*]", self.text[at:end])):
            raise Broken("this client allows no comments in it", *place_in(self.text, at + comment.start()))
        return end

    def _value(self, at: int, depth: int) -> Part:
        if depth > DEEPEST:
            raise Broken("it is nested too deeply", *place_in(self.text, at))
        opening = self.text[at : at + 1]
        if opening == "{":
            return self._object(at, depth)
        if opening == "[":
            return self._array(at, depth)
        match = (STRING if opening == '"' else SCALAR).match(self.text, at)
        if match is None:
            raise Broken("a value is expected here" if opening else "it ends too early", *place_in(self.text, at))
        return Part(at, match.end(), _plain(match[0]))

    def _object(self, start: int, depth: int) -> Part:
        made = Part(start, start, {}, [])
        at = self._gap(start + 1)
        while self.text[at : at + 1] != "}":
            key = STRING.match(self.text, at)
            if key is None:
                raise Broken("a name in quotation marks is expected here", *place_in(self.text, at))
            colon = self._gap(key.end())
            if self.text[colon : colon + 1] != ":":
                raise Broken("a colon is expected here", *place_in(self.text, colon))
            part = self._value(self._gap(colon + 1), depth + 1)
            name = _plain(key[0])
            made.members.append(Member(name, at, part))
            made.value[name] = part.value
            at = self._after(part.end, "}")
        made.end = at + 1
        return made

    def _array(self, start: int, depth: int) -> Part:
        made = Part(start, start, [], [], [])
        at = self._gap(start + 1)
        while self.text[at : at + 1] != "]":
            part = self._value(at, depth + 1)
            made.items.append(part)
            made.value.append(part.value)
            at = self._after(part.end, "]")
        made.end = at + 1
        return made

    def _after(self, at: int, closing: str) -> int:
        """Past the comma, to what follows it or to the closing bracket."""
        at = self._gap(at)
        found = self.text[at : at + 1]
        if found == closing:
            return at
        if found != ",":
            expected = f"a comma or {closing} is expected here" if found else "it ends too early"
            raise Broken(expected, *place_in(self.text, at))
        after = self._gap(at + 1)
        if self.text[after : after + 1] == closing and not self.lenient:
            raise Broken("this client allows no comma before the end", *place_in(self.text, at))
        return after


def _plain(said: str) -> Any:
    return said[1:-1] if said[0] == '"' and "\\" not in said else json.loads(said)


def parse(text: str, lenient: bool = True) -> Part:
    """The object that a configuration is; Broken says what is wrong with it and where."""
    part = Reader(text, lenient).document()
    if not isinstance(part.value, dict):
        raise Broken("it must be an object: { … }", *place_in(text, part.start))
    return part


def values(text: str, lenient: bool = True) -> Any:
    """What a configuration says. Claude Code's own has megabytes, and the standard library reads what has no
    comments fifty times as fast."""
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else parse(text, lenient).value


# ── edits ────────────────────────────────────────────────────────────────────────────────────────


def with_value(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with this value under these keys; objects on the way are made where they are missing."""
    if not text.strip():
        return rendered(_nested(keys, value), "", "  ", newline_of(text)) + newline_of(text)
    holder, left = _way(text, keys)
    if not left:
        indent = indent_of(text, holder.start)
        return text[: holder.start] + rendered(value, indent, step_of(text), newline_of(text)) + text[holder.end :]
    return _with_child(text, holder, [m.part for m in holder.members], _nested(left[1:], value), left[0])


def with_item(text: str, keys: Sequence[str], item: Any) -> str:
    """The text with one item more at the end of the array under these keys."""
    holder, left = _way(text, keys) if text.strip() else (None, keys)
    if holder is None or left:
        return with_value(text, keys, [item])
    if not isinstance(holder.value, list):
        raise Broken(f"{'.'.join(keys)} must be a list", *place_in(text, holder.start))
    return _with_child(text, holder, holder.items, item)


def without(text: str, keys: Sequence[str], index: int | None = None, emptied: int = 0) -> str:
    """The text without the value under these keys, or without one item of the list there, and without that many
    of the containers around it, if nothing else is left in them."""
    holder, left = _way(text, keys)
    if left:
        return text
    if index is not None:
        spans = [(item.start, item.end) for item in holder.items]
    else:
        holder, _ = _way(text, keys[:-1])
        spans = [(member.start, member.part.end) for member in holder.members]
        index = max(at for at, member in enumerate(holder.members) if member.key == keys[-1])
        keys = keys[:-1]
    text = _without_span(text, spans, index)
    return text if len(spans) > 1 or not emptied or not keys else without(text, keys, None, emptied - 1)


def _way(text: str, keys: Sequence[str]) -> tuple[Part, list[str]]:
    """How far these keys lead: the last value there is, and the keys that are left."""
    here = _standing(text)
    for at, key in enumerate(keys):
        if not isinstance(here.value, dict):
            raise Broken(f"{'.'.join(keys[:at])} must be an object: {{ … }}", *place_in(text, here.start))
        found = [member.part for member in here.members if member.key == key]
        if not found:
            return here, list(keys[at:])
        here = found[-1]  # of two that are named the same, JSON means the last
    return here, []


# Only where things stand is asked of it: the values in it are shared, and nobody may alter them.
_standing = lru_cache(maxsize=2)(parse)


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _with_child(text: str, holder: Part, children: list[Part], value: Any, key: str | None = None) -> str:
    """A member or an item more, after the last one and in its manner."""
    newline, step = newline_of(text), step_of(text)
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    closing = holder.end - 1
    if not children:
        indent = indent_of(text, holder.start)
        inside = text[holder.start + 1 : closing]
        kept = inside.rstrip()  # comments, perhaps
        child = newline + indent + step + name + rendered(value, indent + step, step, newline)
        return text[: holder.start + 1] + kept + child + newline + indent + text[closing:]
    last = children[-1].end
    if "\n" not in text[holder.start : closing]:  # all on one line: go on like that
        child = ", " + name + json.dumps(value, ensure_ascii=False)
        return text[:last] + child + text[last:]
    indent = indent_of(text, children[-1].start)
    comma = _comma_after(text, last)
    after = comma or last
    end = line_end(text, after, closing)
    child = newline + indent + name + rendered(value, indent, step, newline) + ("," if comma else "")
    return text[:after] + ("" if comma else ",") + text[after:end] + child + text[end:]


def _comma_after(text: str, at: int) -> int:
    """Where the comma that follows this ends; 0 if there is none."""
    match = GAP.match(text, at)
    end = match.end() if match else at
    return end + 1 if text[end : end + 1] == "," else 0


def _without_span(text: str, spans: list[tuple[int, int]], index: int) -> str:
    """Cut a member or an item out, with the one comma that is then too many."""
    start, end = spans[index]
    if comma := _comma_after(text, end):
        return cut(text, start, comma)
    text = cut(text, start, end)
    if index and (comma := _comma_after(text, spans[index - 1][1])):
        text = text[: comma - 1] + text[comma:]
    return text


def rendered(value: Any, indent: str, step: str, newline: str) -> str:
    """A value in JSON: an object one member a line, a list of plain values on one line."""
    if isinstance(value, dict) and value:
        inner = indent + step
        members = (
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {rendered(each, inner, step, newline)}"
            for key, each in value.items()
        )
        return "{" + newline + ("," + newline).join(members) + newline + indent + "}"
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        inner = indent + step
        items = (inner + rendered(each, inner, step, newline) for each in value)
        return "[" + newline + ("," + newline).join(items) + newline + indent + "]"
    return json.dumps(value, ensure_ascii=False)
