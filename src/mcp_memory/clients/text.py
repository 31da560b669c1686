"""Places in a text, and how it is laid out: what the editors of every format share."""

from __future__ import annotations

import re

from mcp_memory.facts import MemoryFault

LINE_END = re.compile(r"[ \t]*,?[ \t]*(?:(?://|#)[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*)?(?=\r?\n|$)")


class Broken(MemoryFault):
    """A file that cannot be understood, and where it stops making sense."""

    def __init__(self, what: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {what}")
        self.line, self.column = line, column


def place_in(text: str, at: int) -> tuple[int, int]:
    """Line and column, as editors count them."""
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def indent_of(text: str, at: int) -> str:
    """The white space at the beginning of the line in which this stands."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def step_of(text: str) -> str:
    """By how much this text indents: what its first indented line of JSON begins with."""
    match = re.search(r'^([ \t]+)["{\[]', text, re.MULTILINE)
    return ("\t" if match[1].startswith("\t") else match[1]) if match else "  "


def line_end(text: str, at: int, most: int) -> int:
    """The end of the line after this, if nothing but a comma and a comment stands between."""
    match = LINE_END.match(text, at, most)
    return match.end() if match else at


def cut(text: str, start: int, end: int) -> str:
    """The text without this; its line goes too, if nothing else stands on it."""
    begin = text.rfind("\n", 0, start) + 1
    finish = text.find("\n", end)
    finish = len(text) if finish < 0 else finish + 1
    if not text[begin:start].strip() and not text[end:finish].strip():
        return text[:begin] + text[finish:]
    if not text[begin:start].strip():
        return text[:start] + text[end:].lstrip(" \t")
    return text[:start].rstrip(" \t") + text[end:]
