"""The commands for a person at a terminal. What they print is for reading; the server is for programs."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import msgspec

from mcp_memory import __version__
from mcp_memory.settings import DEFAULT_FILE, FIELDS, PREFIX, BadSetting, Request, Settings, full_path

WIDTH = 100


def run(request: Request) -> int:
    """Do one command; the result is the exit code."""
    if "help" in request.switches:
        print(help_text())
        return 0
    if "version" in request.switches:
        print(f"mcp-memory {__version__}")
        return 0
    name, *words = request.words or ["serve"]
    command = COMMANDS.get(name)
    if command is None:
        raise BadSetting(f"There is no command {name!r}. The commands are {', '.join(COMMANDS)}.")
    if len(words) != len(command.words) or not request.switches <= command.switches:
        raise BadSetting(f"It is used like this: mcp-memory {usage(name, command)}")
    try:
        return command.function(request, *words)
    except BrokenPipeError:  # whoever was reading has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


# ── commands ─────────────────────────────────────────────────────────────────────────────────────


def _serve(request: Request) -> int:
    from mcp_memory.server import serve

    return serve(request.settings)


def _demo(request: Request) -> int:
    from mcp_memory.demo import demo

    return demo()


def _import(request: Request, file: str) -> int:
    """Like the tool `migrate`, but the file may be anywhere: whoever types the command may read it."""
    from mcp_memory.assembly import desk_for
    from mcp_memory.space import Errand

    source = full_path(file)
    settings = msgspec.structs.replace(
        request.settings, profile="full", tools=(), read_only=False, roots=(os.path.dirname(source),)
    )
    desk = desk_for(settings)
    try:
        arguments = msgspec.json.encode({"source_path": source})
        answer = desk.call(desk.tools["migrate"], arguments, "import", Errand(_show_progress))
    finally:
        desk.space.close()
    _end_progress()
    if answer.is_error or answer.structured is None:
        print(f"mcp-memory: {msgspec.json.decode(answer.text or '{}').get('error', answer.text)}", file=sys.stderr)
        return 1
    print(f"{source} -> {settings.path}")
    _print_moved(msgspec.json.decode(answer.structured))
    return 0


def _export(request: Request, file: str) -> int:
    from mcp_memory.assembly import space_for
    from mcp_memory.conversion import export_memory
    from mcp_memory.space import Errand

    _must_exist(request.settings)
    target = full_path(file)
    space = space_for(request.settings)
    try:
        moved = export_memory(space, target, Errand(_show_progress))
    finally:
        space.close()
        _end_progress()
    print(f"{request.settings.path} -> {target}")
    _print_moved({key.replace("imported", "exported"): value for key, value in moved.items() if value})
    return 0


def _print_moved(moved: dict[str, Any]) -> None:
    """What came over, and what has no place in the format of the target."""
    left = moved.pop("not_held", {})
    _print_table(moved)
    if left:
        counted = ", ".join(f"{count:,} {what}" for what, count in left.items())
        print(f"  Not in this format, and only in the source: {counted}.")


def _doctor(request: Request) -> int:
    from mcp_memory.assembly import space_for

    _must_exist(request.settings)
    space = space_for(request.settings)
    try:
        findings = space.check("repair" in request.switches)
    finally:
        space.close()
    for finding in findings:
        print(f"{'repaired' if finding.repaired else 'found'}: {finding.text}")
    wrong = sum(not finding.repaired for finding in findings)
    if not findings:
        print(f"{request.settings.path}: everything is as it should be.")
    elif wrong and "repair" not in request.switches:
        print("mcp-memory doctor --repair puts right what can be derived from the facts.")
    return 1 if wrong else 0


def _stats(request: Request) -> int:
    from mcp_memory.assembly import space_for
    from mcp_memory.stores.formats import format_of

    _must_exist(request.settings)
    space = space_for(request.settings)
    try:
        graph = space.graph()
    finally:
        space.close()
    path = request.settings.path
    _print_table(
        {
            "file": path,
            "format": format_of(path),
            "bytes": f"{os.path.getsize(path):,}",
            "entities": f"{graph.entity_count:,}",
            "observations": f"{graph.observation_count:,}",
            "relations": f"{graph.relation_count:,}",
            "reflections": f"{len(graph.reflections):,}",
            "entity types": _counts(graph.type_counts.most_common(10)),
            "relation types": _counts(graph.relation_type_counts.most_common(10)),
        }
    )
    return 0


def _must_exist(settings: Settings) -> None:
    if not os.path.exists(settings.path):
        raise BadSetting(f"There is no memory file {settings.path} yet. Say which one with --memory-file.")


def _counts(counted: list[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counted) or "none"


def _print_table(rows: dict[str, Any]) -> None:
    width = max(map(len, rows)) + 2
    for name, value in rows.items():
        print(f"  {name:<{width}}{value}")


def _show_progress(done: int, total: int | None, message: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{done:,}{f' of {total:,}' if total else ''} {message}\x1b[K", end="", file=sys.stderr, flush=True)


def _end_progress() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# ── help ─────────────────────────────────────────────────────────────────────────────────────────


class Command(msgspec.Struct, frozen=True):
    """One word after `mcp-memory`, what it needs, and what it does."""

    function: Callable[..., int]
    about: str
    words: tuple[str, ...] = ()
    switches: frozenset[str] = frozenset()


COMMANDS = {
    "serve": Command(_serve, "Speak MCP on standard input and output. This is what happens without a command."),
    "demo": Command(_demo, "Show a conversation with a server on a temporary file."),
    "import": Command(
        _import,
        "Take over another memory file: JSONL of the official server, a journal (.mcpmem), a SQLite database of this "
        "program or of its Python predecessor. The file is only read, and repeating it does no harm.",
        ("FILE",),
    ),
    "export": Command(
        _export,
        "Write everything into a new file. Its suffix tells the format: .jsonl, .mcpmem or .db. What that format has "
        "no place for is counted.",
        ("FILE",),
    ),
    "doctor": Command(_doctor, "Check that everything agrees with everything else.", (), frozenset({"repair"})),
    "stats": Command(_stats, "Count what the memory file holds."),
}


def usage(name: str, command: Command) -> str:
    return " ".join((name, *command.words, *(f"[--{switch}]" for switch in sorted(command.switches))))


def help_text() -> str:
    """Everything the command line understands, from the tables that make it understand."""
    lines = ["mcp-memory: a memory for AI agents, over the Model Context Protocol.", "", "Commands"]
    for name, command in COMMANDS.items():
        lines += _entry(usage(name, command), command.about)
    lines += ["", "Settings: as an option, as an environment variable, or in the settings file"]
    for field in FIELDS.values():
        flag = " ".join(part for part in (field.flag, field.value) if part)
        short = f"{field.said['short']}, " if "short" in field.said else ""
        lines += _entry(f"{short}{flag}", f"{field.meta.description} [{field.env}; {_default(field.default)}]")
    lines += _entry("--settings FILE", f"The settings file, in TOML. [{PREFIX}SETTINGS; default: {DEFAULT_FILE}]")
    lines += ["", *_entry("--help, -h", "Show this."), *_entry("--version", "Show the version.")]
    return "\n".join(lines)


def _default(default: Any) -> str:
    return f"default: {str(default).lower() if isinstance(default, bool) else default}"


def _entry(head: str, about: str) -> list[str]:
    return [f"  {head}", *textwrap.wrap(about, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)]
