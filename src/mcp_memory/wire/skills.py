"""The skill that comes with the server: when to look into the memory, when to save, how to keep it tidy.

Served as the Skills extension wants it (SEP-2640); to a client that does not know it, a resource. It speaks only of
tools that are offered: what names another is left out."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from functools import cache
from hashlib import sha256
from typing import Any

SKILL_URI = "skill://memory/SKILL.md"
MIME = "text/markdown"
FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "skills", "memory", "SKILL.md")
FENCE = "---\n"
SECTION = re.compile(r"^(?=## )", re.MULTILINE)
ITEM = re.compile(r"\n(?=\n|- |\d+\. )")
NUMBER = re.compile(r"^\d+(?=\. )")
TOOL = re.compile(r"`(\w+_\w+)`")


@cache
def whole() -> str:
    """The skill as it is written, byte for byte the same on every system."""
    with open(FILE, encoding="utf-8", newline="") as file:
        return file.read().replace("\r\n", "\n")


def text(offered: Collection[str]) -> str:
    """The skill for whoever is offered these tools."""
    return "".join(_fitting(section, offered) for section in SECTION.split(whole()))


def _fitting(section: str, offered: Collection[str]) -> str:
    """A section without the items that name other tools; nothing, if those were all that named any."""
    items = ITEM.split(section)
    kept = [item for item in items if all(name in offered for name in TOOL.findall(item))]
    if TOOL.search(section) and not any(map(TOOL.search, kept)):
        return ""
    number = 0
    for place, item in enumerate(kept):
        number += bool(NUMBER.match(item))
        kept[place] = NUMBER.sub(str(number), item)
    return "\n".join(kept)


@cache
def frontmatter() -> dict[str, str]:
    """What stands at its head. Only plain `key: text` lines are used there."""
    head = whole().removeprefix(FENCE).partition(FENCE)[0]
    pairs = (line.partition(": ") for line in head.splitlines())
    return {key: value for key, _, value in pairs}


def listed() -> dict[str, Any]:
    """How it introduces itself as a resource."""
    head = frontmatter()
    description = head["description"]
    return {"uri": SKILL_URI, "name": head["name"], "title": "Skill", "description": description, "mimeType": MIME}


def contents(offered: Collection[str]) -> dict[str, Any]:
    return {"uri": SKILL_URI, "mimeType": MIME, "text": text(offered)}


def skills(offered: Collection[str]) -> list[dict[str, Any]]:
    """Every skill with its files, their sizes and digests."""
    content = text(offered).encode()
    file = {"uri": SKILL_URI, "digest": f"sha256:{sha256(content).hexdigest()}", "size": len(content)}
    return [{"uri": SKILL_URI, "frontmatter": frontmatter(), "resources": [file]}]


def skill_of(uri: str, offered: Collection[str]) -> dict[str, Any] | None:
    return next((skill for skill in skills(offered) if skill["uri"] == uri), None)
