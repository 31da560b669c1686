"""What has to be written so that a client uses this memory: its entry, and what makes its model think of it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mcp_memory.advice import RULES
from mcp_memory.clients import files, jsonc, tomltext
from mcp_memory.clients.edits import Block, Edit, Entry, Item
from mcp_memory.clients.former import left_behind
from mcp_memory.clients.launch import (
    Launch,
    is_of_this_computer,
    kept_arguments,
    kept_environment,
    launch,
    merged,
    typed,
)
from mcp_memory.clients.table import CLIENTS, NAME, Client, Scope, chosen, places
from mcp_memory.clients.text import Broken
from mcp_memory.settings import BadSetting, full_path

HOOK, HOOK_KEYS = "brief --hook", ["hooks", "SessionStart"]


class Setup(msgspec.Struct):
    """One client in one scope: which files are meant, and with which settings it is to start us."""

    client: Client
    scope: Scope
    flags: Mapping[str, str]
    uvx: bool = False
    other_config: str = ""

    @property
    def known(self) -> dict[str, str]:
        return places(os.environ, os.path.expanduser("~"), os.getcwd())

    @property
    def config(self) -> str:
        return full_path(self.other_config) if self.other_config else chosen(self.client.config[self.scope], self.known)

    @property
    def start(self) -> Launch:
        """How the client is to start us: as asked for, and in what was not asked for as it does already."""
        old = self.old_entry()
        asked = launch(self.flags, self.uvx, self.scope == "project")
        has_options = bool(self.flags.keys() - {"memory_file"})
        args = asked.args if has_options else (*asked.args, *kept_arguments(old))
        return Launch(asked.command, args, {**kept_environment(old), **asked.env})

    # ── the entry ────────────────────────────────────────────────────────────────────────────────

    def old_entry(self) -> Any:
        """What stands under our name already."""
        return self._entry(None).find(self._text(self.config))

    def entry(self) -> list[tuple[str, Edit]]:
        """The edits that put us into the client's configuration."""
        text = self._text(self.config)
        fresh = [Entry([key], value) for key, value in self.client.fresh.items()] if not text.strip() else []
        return [(self.config, edit) for edit in (*fresh, self._entry(self._value()))]

    def _value(self) -> dict[str, Any]:
        start = self.start
        return merged(self.old_entry(), self._shape().entry(start.command, list(start.args), dict(start.env)))

    def _entry(self, value: Any) -> Entry:
        return Entry([*self._shape().keys, NAME], value, self.client.format, self.client.lenient)

    def _shape(self) -> Any:
        """How this file keeps servers: the first way that is in use in it, else the last."""
        *others, last = self.client.shapes
        if others:
            text = self._text(self.config)
            for shape in others:
                found = Entry(list(shape.keys), None, self.client.format, self.client.lenient).find(text)
                if isinstance(found, dict) and "type" not in found:  # not a server that is named like that
                    return shape
        return last

    def _text(self, path: str) -> str:
        data = files.read(path)
        text = "" if data is None else files.decoded(path, data)
        try:
            if self.client.format == "toml":
                tomltext.parse(text)
            else:
                jsonc.values(text, self.client.lenient)
        except Broken as fault:
            raise files.Untouchable(f"{path} is not in order, {fault}. Mend it first; nothing was changed.") from fault
        return text

    # ── what makes a model use it ────────────────────────────────────────────────────────────────

    def rules(self) -> list[tuple[str, Edit]]:
        """The edits that tell the model when to recall and when to save; none where no file is read for that."""
        rules = self.client.rules.get(self.scope)
        return [(chosen(rules.paths, self.known), Block(RULES, rules.head))] if rules else []

    def hook(self) -> list[tuple[str, Edit]]:
        """The edits that let a session begin with what the memory knows; none where hosts cannot do that."""
        paths = self.client.hooks.get(self.scope)
        if not paths:
            return []
        handler = {"type": "command", "command": self._brief()}
        return [(chosen(paths, self.known), Item(HOOK_KEYS, HOOK, {"hooks": [handler]}, self.client.lenient))]

    def _brief(self) -> str:
        """The command as the host's shell wants it, on the same memory as the server."""
        start = self.start
        memory = start.env.get("MEMORY_FILE_PATH")
        words = [start.command, *start.args, *(["-f", memory] if memory else []), *HOOK.split()]
        return typed(words, self.client.windows_shell if sys.platform == "win32" else "sh")

    def _import(self) -> str:
        """How to bring a file into the memory of this entry; its name is put into the braces."""
        memory = self.start.env.get("MEMORY_FILE_PATH")
        into = f" -f {shlex.quote(memory).replace('{', '{{').replace('}', '}}')}" if memory else ""
        return f"mcp-memory{into} import {{}}"

    def remarks(self) -> Iterator[str]:
        """What somebody should know before it is written."""
        old = self.old_entry()
        if old is not None and old != self._value():
            yield f"{self.client.title} has an entry named {NAME} already; it would be replaced."
            stays = [f"{name}={said}" for name, said in kept_environment(old).items() if self.start.env[name] == said]
            if stays:
                yield f"This stays: {', '.join(stays)}."
            yield from left_behind(old, self._import())
        if self.scope == "project" and is_of_this_computer(self.start):
            more = "whoever shares the file needs it there too" if self.uvx else "for a file that you share, add --uvx"
            yield f"The entry names a path of this computer: {more}."


def setup_for(name: str, scope: str, flags: Mapping[str, str], uvx: bool, config: str) -> Setup:
    client = CLIENTS[name]
    if scope not in client.config:
        offered = " or ".join(client.config)
        raise BadSetting(f"{client.title} has no configuration for --scope {scope}; it has one for {offered}.")
    return Setup(client, scope, flags, uvx, config)  # type: ignore[arg-type]  # the scope is one of its keys
