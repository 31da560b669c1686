"""Which store a file belongs to: by what is in it, or by its suffix while there is nothing in it."""

from __future__ import annotations

import os

SUFFIXES = {".jsonl": "jsonl", ".json": "jsonl", ".mcpmem": "journal"}
# Not a memory but a whole one with its history, as text (transcript.py).
TRANSCRIPT = b'{"format":"mcp-memory history"'
# Nor is this one: what was taken out of a damaged journal (stores/journal/remains.py).
REMAINS = b"bytes "
BEGINNINGS = (
    (TRANSCRIPT, "history"),
    (b"SQLite format 3\0", "sqlite"),
    (b"MCPMEMV", "journal"),
    (b"{", "jsonl"),
    (REMAINS, "remains"),
)

# A process that closes a file it has read loses SQLite's locks on it (POSIX locks belong to the process),
# so the beginning of a file is read once, before any store of this process can have it open.
_recognised: dict[str, str] = {}


def format_of(path: str) -> str:
    """`sqlite`, `jsonl` or `journal`; or no memory: `history` for a transcript, `remains` for a quarantine."""
    place = os.path.realpath(path)
    if place not in _recognised:
        _recognised[place] = _by_beginning(place) or SUFFIXES.get(os.path.splitext(place)[1].lower(), "sqlite")
    return _recognised[place]


def _by_beginning(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            beginning = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError:
        return None  # not there yet, or not readable: then the store can say why
    if beginning.startswith(b"{") and b"\0" in beginning:
        return None  # a journal that lost its magic can begin like that
    return next((kind for start, kind in BEGINNINGS if beginning.startswith(start)), None)
