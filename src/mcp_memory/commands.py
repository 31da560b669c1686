"""What can be typed after `mcp-memory`: a table, and nothing that it leads to is imported before it is asked for.

A new command is a row here and a function that takes the request, its words, and by keyword the options
that were given; what an option means when it is not given is the default of that parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import msgspec


class Option(msgspec.Struct, frozen=True):
    """One option of a command. Without a `value` it is a yes-or-no."""

    about: str
    value: str = ""  # what stands for the value in a help text
    kind: Any = str  # what the value must be; commas separate where it is a tuple
    expected: str = ""  # the same in words, where EXPECTED has none that fit


class Command(msgspec.Struct, frozen=True):
    """One word after `mcp-memory`, what it needs, and what does it."""

    does: str  # module:function
    about: str
    words: tuple[str, ...] = ()  # what follows; in [brackets] if it may be left out
    options: Mapping[str, Option] = {}

    @property
    def function(self) -> Callable[..., int]:
        module, name = self.does.split(":")
        function: Callable[..., int] = getattr(import_module(module), name)
        return function


EXPECTED = {str: "text", int: "a whole number", float: "a number", tuple[float, ...]: "numbers, with commas between"}

COMMANDS = {
    "serve": Command(
        "mcp_memory.cli:serve", "Speak MCP on standard input and output. This is what happens without a command."
    ),
    "demo": Command("mcp_memory.cli:demo", "Show a conversation with a server on a temporary file."),
    "import": Command(
        "mcp_memory.cli:import_file",
        "Take over another memory file: JSONL of the official server, a journal (.mcpmem), a SQLite database of this "
        "program or of its Python predecessor. The file is only read, and repeating it does no harm.",
        ("FILE",),
    ),
    "export": Command(
        "mcp_memory.cli:export_file",
        "Write everything into a new file. Its suffix tells the format: .jsonl, .mcpmem or .db. What that format has "
        "no place for is counted.",
        ("FILE",),
    ),
    "doctor": Command(
        "mcp_memory.cli:doctor",
        "Check that everything agrees with everything else. The exit code is 1 if something does not.",
        options={
            "repair": Option("Put right what can be derived from the facts."),
            "json": Option("Print the findings as JSON, for a program."),
        },
    ),
    "model": Command(
        "mcp_memory.embedding.command:model",
        "Models that turn texts into meaning. list: which there are; which: the one in use; download: fetch one from "
        "the Hugging Face hub or from HF_ENDPOINT, by default the documented one; verify: compare files with their "
        "hashes.",
        ("[list|which|download|verify]", "[NAME]"),
    ),
    "stats": Command("mcp_memory.cli:stats", "Count what the memory file holds."),
    "token": Command(
        "mcp_memory.cli:token",
        "Manage the tokens that clients show over tcp and http, in the file that --auth-token-file names: create NAME, "
        "list, revoke NAME. A token is shown once, when it is created; only its hash is kept.",
        ("ACTION", "[NAME]"),
        {
            "scopes": Option("What it allows: read, write, admin, with commas between.", "SCOPES", tuple[str, ...]),
            "expires": Option("When it ends: a length such as 30d or 12h, or a date such as 2026-12-31.", "WHEN"),
        },
    ),
}


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


# Every option of every command. The same name means the same to all that have it: a value, or none.
OPTIONS = {flag_of(name): (name, option) for command in COMMANDS.values() for name, option in command.options.items()}


def usage(name: str) -> str:
    """A command as it is typed."""
    command = COMMANDS[name]
    options = [f"[{told(option, of)}]" for option, of in command.options.items()]
    return " ".join(["mcp-memory", name, *command.words, *(options if len(options) <= 2 else ["[OPTIONS]"])])


def told(name: str, option: Option) -> str:
    return f"{flag_of(name)} {option.value}".rstrip()
