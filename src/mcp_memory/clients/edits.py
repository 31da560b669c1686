"""What is done to a file, as something that can be kept: each edit knows how to do itself and how to be undone.

An edit never believes itself. It compares what the text says before and after, and where anything else than what it
is about has changed, it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from mcp_memory.clients import jsonc, tomltext
from mcp_memory.clients.text import Broken, newline_of, place_in
from mcp_memory.facts import MemoryFault

BEGIN = "<!-- mcp-memory: begin (what stands between these two lines belongs to mcp-memory init) -->"
END = "<!-- mcp-memory: end -->"


class Unsure(MemoryFault):
    """The file is written in a way that cannot be edited safely."""


class Entry(msgspec.Struct, tag="entry"):
    """The value under these keys; None takes it away, and as many empty containers around it as `emptied` says."""

    keys: list[str]
    value: Any
    format: Literal["json", "toml"] = "json"
    lenient: bool = True
    emptied: int = 0

    def find(self, text: str) -> Any:
        return _at(self._read(text), self.keys)

    def apply(self, text: str) -> str:
        before = self._read(text)
        if _at(before, self.keys) == self.value:
            return text
        made = self._made(text)
        _compare(before, self._read(made), self.keys, lambda data: _put(data, self.keys, self.value))
        return made

    def inverse(self, text: str) -> Entry:
        data, missing = self._read(text), 0
        for depth in range(1, len(self.keys)):
            missing += _at(data, self.keys[:depth]) is None
        return Entry(self.keys, _at(data, self.keys), self.format, self.lenient, missing)

    def _read(self, text: str) -> Any:
        if self.format == "toml":
            return tomltext.parse(text)
        return jsonc.values(text, self.lenient)

    def _made(self, text: str) -> str:
        if self.format == "toml":
            return tomltext.without_table(text, self.keys) if self.value is None else self._with_table(text)
        if self.value is None:
            return jsonc.without(text, self.keys, None, self.emptied)
        return jsonc.with_value(text, self.keys, self.value)

    def _with_table(self, text: str) -> str:
        made = tomltext.with_table(text, self.keys, self.value)
        try:
            tomltext.parse(made)
        except Broken as fault:
            raise Unsure(
                f"its {self.keys[0]} are written in a way that cannot be added to; write them as tables, "
                f"each under a line of its own: [{self.keys[0]}.NAME]"
            ) from fault
        return made


class Item(msgspec.Struct, tag="item"):
    """One item of the list under these keys: the one in which this mark stands. None takes it away."""

    keys: list[str]
    mark: str
    value: Any
    lenient: bool = True
    emptied: int = 0

    def find(self, text: str) -> Any:
        items = self._items(text)
        return next((item for item in items if self.mark in str(item)), None)

    def apply(self, text: str) -> str:
        if self.find(text) == self.value:
            return text
        before = self._read(text)
        index = next((at for at, item in enumerate(self._items(text)) if self.mark in str(item)), None)
        made = text
        if index is not None:
            made = jsonc.without(made, self.keys, index, 0 if self.value is not None else self.emptied)
        if self.value is not None:
            made = jsonc.with_item(made, self.keys, self.value)
        _compare(before, self._read(made), self.keys, lambda data: self._put(data, index))
        return made

    def inverse(self, text: str) -> Item:
        data = self._read(text)
        missing = sum(_at(data, self.keys[:depth]) is None for depth in range(1, len(self.keys) + 1))
        return Item(self.keys, self.mark, self.find(text), self.lenient, missing)

    def _read(self, text: str) -> Any:
        return jsonc.values(text, self.lenient)

    def _items(self, text: str) -> list[Any]:
        items = _at(self._read(text), self.keys)
        return items if isinstance(items, list) else []

    def _put(self, data: Any, index: int | None) -> None:
        items = list(_at(data, self.keys) or [])
        if index is not None:
            del items[index]
        if self.value is not None:
            items.append(self.value)
        _put(data, self.keys, items)


class Block(msgspec.Struct, tag="block"):
    """Some lines between two marks. `head` is what a file begins with that has nothing yet; None takes them away."""

    body: str | None
    head: str = ""

    def find(self, text: str) -> str | None:
        span = _marked(text)
        return None if span is None else text[span[0] : span[1]]

    def apply(self, text: str) -> str:
        newline = newline_of(text)
        span = _marked(text)
        if self.body is None:
            return text if span is None else _joined(text[: span[0]], text[span[1] :], self.head, newline)
        block = f"{BEGIN}\n{self.body.strip()}\n{END}\n".replace("\n", newline)
        if span is not None:
            return text[: span[0]] + block + text[span[1] :]
        if not text.strip():
            return self.head.replace("\n", newline) + block
        return text + ("" if text.endswith("\n") else newline) + newline + block

    def inverse(self, text: str) -> Block:
        found = self.find(text)
        body = None if found is None else "\n".join(found.splitlines()[1:-1])
        return Block(body, self.head if not text.strip() else "")


Edit = Entry | Item | Block


def _marked(text: str) -> tuple[int, int] | None:
    """Where the block stands, marks and all."""
    start = text.find(BEGIN)
    if start < 0:
        return None
    end = text.find(END, start)
    if end < 0:
        raise Broken(f"this block has no end; {END} must stand below it", *place_in(text, start))
    after = text.find("\n", end)
    return start, len(text) if after < 0 else after + 1


def _joined(before: str, after: str, head: str, newline: str) -> str:
    """What was around a block, without the empty line that was put before it."""
    if head and before.strip() == head.strip() and not after.strip():
        return ""
    if before.endswith(newline * 2):
        before = before[: -len(newline)]
    return before + after


def _at(data: Any, keys: list[str]) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _put(data: Any, keys: list[str], value: Any) -> None:
    """The same in the values, for comparison."""
    for key in keys[:-1]:
        data = data.setdefault(key, {})
    if value is None:
        data.pop(keys[-1], None)
    else:
        data[keys[-1]] = value


def _copied(data: Any, keys: list[str]) -> Any:
    """The values with containers of their own on the way; beside it nothing is altered."""
    if not isinstance(data, dict):
        return list(data) if isinstance(data, list) else data
    return data | {key: _copied(data[key], keys[1:]) for key in keys[:1] if key in data}


def _without_empty(data: Any, keys: list[str]) -> Any:
    """The values without containers on the way that hold nothing: whether these stand there does not matter."""
    data = _copied(data, keys)
    for depth in range(len(keys), 0, -1):
        holder = _at(data, keys[: depth - 1])
        if isinstance(holder, dict) and holder.get(keys[depth - 1]) in ({}, []):
            del holder[keys[depth - 1]]
    return data


def _compare(before: Any, after: Any, keys: list[str], put: Callable[[Any], None]) -> None:
    wanted = _copied(before, keys)
    put(wanted)
    if _without_empty(wanted, keys) != _without_empty(after, keys):
        raise Unsure("it is written in a way that cannot be edited safely; please edit it by hand")
