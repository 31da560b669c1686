"""Where the official server keeps its facts when its entry names no file: inside its own package.

That is no place to leave them: a package manager replaces it, and with `npx` it is a cache. Whoever takes the entry
over says where they are."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from glob import escape, glob

PACKAGE = "server-memory"
IMAGE = "mcp/memory"
BELOW = os.path.join("node_modules", "@modelcontextprotocol", PACKAGE, "dist")
FILES = ("memory.jsonl", "memory.json")  # the second is what early versions wrote
VARIABLE = "MEMORY_FILE_PATH"

FOUND = (
    "The server that it starts now keeps its facts inside its own package, where they may be deleted: {path}. The new "
    "memory does not know them yet; bring them in with: {command}"
)
NOT_FOUND = (
    "The server that it starts now is told no file: it keeps its facts in dist/memory.jsonl of its own package, which "
    "was not found here. If you have one, bring it in with: {command}"
)
IN_A_CONTAINER = (
    "The server that it starts now keeps its facts in a container, below /app. Copy the file out of it (docker cp), "
    "and bring it in with: {command}"
)


def words_of(entry: object) -> list[str]:
    """The command line of an entry."""
    if not isinstance(entry, dict):
        return []
    command = entry.get("command")
    words = [*(command if isinstance(command, list) else [command]), *(entry.get("args") or ())]
    return [str(word) for word in words if isinstance(word, str | int | float)]


def left_behind(entry: object, command: str) -> Iterator[str]:
    """What to say about the facts of an entry that is about to be replaced; `command` imports the file put into it."""
    words = words_of(entry)
    has_image = any(word.partition(":")[0] == IMAGE for word in words)
    if not isinstance(entry, dict) or not (has_image or any(PACKAGE in word for word in words)):
        return
    if VARIABLE in (entry.get("env") or entry.get("environment") or {}) or any(VARIABLE in word for word in words):
        return
    if has_image:
        yield IN_A_CONTAINER.format(command=command.format("memory.jsonl"))
        return
    found = sorted({path for folder in folders(words) for path in memories_in(folder)})
    for path in found:
        yield FOUND.format(path=path, command=command.format(shlex.quote(path)))
    if not found:
        yield NOT_FOUND.format(command=command.format("memory.jsonl"))


def folders(words: list[str]) -> Iterator[str]:
    """Where its package may be: in npm's cache, or where the command line leads."""
    caches = [value for name, value in os.environ.items() if name.lower() == "npm_config_cache"]
    caches.append(os.path.join(os.path.expanduser("~"), ".npm"))
    if sys.platform == "win32":
        caches.append(os.path.join(os.environ.get("LOCALAPPDATA", ""), "npm-cache"))
    for cache in filter(None, caches):
        yield from glob(os.path.join(escape(cache), "_npx", "*", BELOW))
    for word in words:
        program = word if os.path.isabs(word) else shutil.which(word)
        if PACKAGE in word and program:
            yield os.path.dirname(os.path.realpath(program))


def memories_in(folder: str) -> Iterator[str]:
    """The files with something in them."""
    for name in FILES:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.path.getsize(path):
            yield path
