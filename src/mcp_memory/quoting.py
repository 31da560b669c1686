"""Stored text inside a sentence of ours: quoted, so that nothing stored can end its quotes, begin a line, hide
what it says, or steer a terminal.

The law: where an answer is data (a field of JSON) a text stands as it is; where we speak about it, it stands in
here. Only a single plain word may stand without quotes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

MOST_CHARS = 120  # of one text in a sentence
# What has no look of its own and changes the look of what is around it: controls, line and paragraph ends,
# directions (U+202A…), tags (U+E0000…), soft hyphens and the like. Joiners stay: emoji and Persian need them.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
ON_SCREEN = re.compile(UNSEEN.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
WORD = re.compile(r"[^\W_](?:[\w.'+-]*\w)?")
encode = msgspec.json.encode


def quoted(text: str, most: int = MOST_CHARS) -> str:
    """A text in quotes that it cannot end, on one line, cut where it is long."""
    return fenceless(encode(text if len(text) <= most else text[: most - 1] + "…").decode())


def named(name: str) -> str:
    """A name: as it is, if it is a word; else in quotes."""
    return name if len(name) <= MOST_CHARS and WORD.fullmatch(name) else quoted(name)


def data(value: Any) -> str:
    """Facts as JSON that can stand between marks: nothing in it can write a mark."""
    return fenceless(encode(value).decode())


def fenceless(json: str) -> str:
    """The same JSON, without a character that could begin or end a part, or that cannot be seen."""
    return UNSEEN.sub(_escape, json).replace("<", "\\u003c").replace(">", "\\u003e")


def visible(text: str) -> str:
    """A text for a terminal or a log: what would steer it is shown as an escape. Lines and tabs stay."""
    return ON_SCREEN.sub(_shown, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
