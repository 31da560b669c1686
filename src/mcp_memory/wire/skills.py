"""The skill that comes with the server: when to look into the memory, when to save, how to keep it tidy.

Served as the Skills extension wants it (SEP-2640); to a client that does not know it, a resource."""

from __future__ import annotations

import os
from functools import cache
from hashlib import sha256
from typing import Any

SKILL_URI = "skill://memory/SKILL.md"
MIME = "text/markdown"
FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "skills", "memory", "SKILL.md")
FENCE = "---\n"


@cache
def text() -> str:
    """The skill, byte for byte the same on every system."""
    with open(FILE, encoding="utf-8", newline="") as file:
        return file.read().replace("\r\n", "\n")


@cache
def frontmatter() -> dict[str, str]:
    """What stands at its head. Only plain `key: text` lines are used there."""
    head = text().removeprefix(FENCE).partition(FENCE)[0]
    pairs = (line.partition(": ") for line in head.splitlines())
    return {key: value for key, _, value in pairs}


def listed() -> dict[str, Any]:
    """How it introduces itself as a resource."""
    head = frontmatter()
    description = head["description"]
    return {"uri": SKILL_URI, "name": head["name"], "title": "Skill", "description": description, "mimeType": MIME}


def contents() -> dict[str, Any]:
    return {"uri": SKILL_URI, "mimeType": MIME, "text": text()}


def skills() -> list[dict[str, Any]]:
    """Every skill with its files, their sizes and digests."""
    content = text().encode()
    file = {"uri": SKILL_URI, "digest": f"sha256:{sha256(content).hexdigest()}", "size": len(content)}
    return [{"uri": SKILL_URI, "frontmatter": frontmatter(), "resources": [file]}]


def skill_of(uri: str) -> dict[str, Any] | None:
    return next((skill for skill in skills() if skill["uri"] == uri), None)
