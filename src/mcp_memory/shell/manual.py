"""`mcp-memory man`: the manual page, from the tables that the command line is read by. `scripts/docs.py` writes the
same into docs/mcp-memory.1, which an installation puts where `man` looks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from mcp_memory import __version__
from mcp_memory.commands import COMMANDS, usage
from mcp_memory.settings import DEFAULT_FILE, FIELDS, PREFIX, Request
from mcp_memory.shell.words import Flag, options, settings

EXAMPLES = (
    ("Put it into Claude Code, for all your work:", "mcp-memory init claude-code"),
    ("Serve one file to one client, as the official memory server would:", "mcp-memory --profile official -f m.jsonl"),
    ("Move the official server's file into a database:", "mcp-memory import m.jsonl -f memory.db"),
    ("Copy the memory while it is in use, and keep the last seven copies:", "mcp-memory backup --keep 7"),
    ("Let completion work in this shell:", 'eval "$(mcp-memory completion bash)"'),
)


def man(request: Request) -> int:
    sys.stdout.write(page())
    return 0


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield '.\\" Written by mcp-memory man from its tables of commands and settings; change it there.'
    yield f'.TH MCP\\-MEMORY 1 "" "mcp\\-memory {__version__}" "User Commands"'
    yield from _section("NAME", "mcp-memory - a memory for AI agents, over the Model Context Protocol")
    yield ".SH SYNOPSIS"
    yield ".B mcp\\-memory"
    yield "[\\fISETTINGS\\fR] [\\fICOMMAND\\fR [\\fIWORDS\\fR] [\\fIOPTIONS\\fR]]"
    yield from _section(
        "DESCRIPTION",
        "mcp-memory keeps a knowledge graph of entities, observations and relations, and serves it to AI agents. "
        "Without a command it speaks MCP on standard input and output, which is how a client starts it.",
        "mcp-memory init puts it into the configuration of a client.",
    )
    yield ".SH COMMANDS"
    for name, command in COMMANDS.items():
        yield from _entry(f"\\fB{_roff(usage(name).removeprefix('mcp-memory '))}\\fR", command.about)
        flags = list(options(command))
        if flags:
            yield ".RS"
            yield from (line for flag in flags for line in _flag(flag))
            yield ".RE"
    yield ".SH SETTINGS"
    yield _text("The first that names a setting decides it: the option, the environment variable, the settings file.")
    for flag in settings():
        yield from _flag(flag)
    yield ".SH FILES"
    yield from _entry(_italic(DEFAULT_FILE), "The settings, in TOML: read_only = true. Another by --settings.")
    yield from _entry(_italic(FIELDS["memory_file"].default), "The memory, where no other file is named.")
    yield ".SH ENVIRONMENT"
    yield _text(f"Every setting has a variable, named above; {PREFIX}SETTINGS names the file of settings.")
    yield ".SH EXIT STATUS"
    for code, about in EXITS:
        yield from _entry(f"\\fB{code}\\fR", about)
    yield ".SH EXAMPLES"
    for about, example in EXAMPLES:
        yield from _entry(_text(about), "")
        yield f".RS\n.nf\n{_roff(example)}\n.fi\n.RE"


EXITS = (
    ("0", "Everything was done."),
    ("1", "Something went wrong, or doctor found something; what to do is said on standard error."),
    ("2", "What was typed or set cannot be followed."),
    ("130", "Interrupted from the keyboard."),
)


def _section(title: str, *paragraphs: str) -> Iterator[str]:
    yield f".SH {title}"
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ".PP"
        yield _text(paragraph)


def _flag(flag: Flag) -> Iterator[str]:
    names = ", ".join(f"\\fB{_roff(name)}\\fR" for name in flag.names)
    said = [part for part in (flag.variable, f"default: {flag.default}" if flag.default else "") if part]
    about = f"{flag.about} [{'; '.join(said)}]" if said else flag.about
    yield from _entry(f"{names} {_italic(flag.value.name)}" if flag.value else names, about)


def _entry(head: str, about: str) -> Iterable[str]:
    return (".TP", head, *([_text(about)] if about else []))


def _italic(text: str) -> str:
    return f"\\fI{_roff(text)}\\fR"


def _text(text: str) -> str:
    """A line of text: what begins like a request is none."""
    escaped = _roff(text)
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


def _roff(text: str) -> str:
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in plain)
