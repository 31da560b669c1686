"""The commands for a person at a terminal. What they print is for reading; the server is for programs."""

from __future__ import annotations

import os
import sys
import textwrap
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory import __version__
from mcp_memory.commands import COMMANDS, EXPECTED, Option, flag_of, told, usage
from mcp_memory.quoting import data, named, visible
from mcp_memory.settings import DEFAULT_FILE, FIELDS, PREFIX, BadSetting, Request, Settings, full_path

if TYPE_CHECKING:
    from mcp_memory.safekeeping import Kept

WIDTH = 100


def run(request: Request) -> int:
    """Do one command; the result is the exit code."""
    name, *words = request.words or ["serve"]
    if "help" in request.switches:
        return _print(help_on(name) if request.words and name in COMMANDS else help_text())
    if "version" in request.switches:
        print(f"mcp-memory {__version__}")
        return 0
    command = COMMANDS.get(name)
    if command is None:
        raise BadSetting(f"There is no command {name!r}. The commands are {', '.join(COMMANDS)}.")
    needed = sum(not word.startswith("[") for word in command.words)
    if not needed <= len(words) <= len(command.words) or not request.options.keys() <= command.options.keys():
        raise BadSetting(f"It is used like this: {usage(name)}")
    options = {option: _read(command.options[option], option, said) for option, said in request.options.items()}
    try:
        return command.function(request, *words, **options)
    except BrokenPipeError:
        return _seen_enough()


def _print(text: str) -> int:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        return _seen_enough()
    return 0


def _seen_enough() -> int:
    """Whoever was reading went away; what is still to be said goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _read(option: Option, name: str, said: str) -> Any:
    """The value of an option, as the command wants it."""
    if not option.value:
        return True
    kind = option.kind.__origin__ if hasattr(option.kind, "__metadata__") else option.kind
    is_several = getattr(kind, "__origin__", None) is tuple
    given = [part.strip() for part in said.split(",") if part.strip()] if is_several else said
    try:
        return msgspec.convert(given, option.kind, strict=False)
    except msgspec.ValidationError as fault:
        expected = option.expected or EXPECTED.get(option.kind, str(fault))
        raise BadSetting(f"{flag_of(name)} cannot be {said!r}: it must be {expected}.") from fault


# ── commands ─────────────────────────────────────────────────────────────────────────────────────


def serve(request: Request) -> int:
    from mcp_memory import server

    return server.serve(request)


def demo(request: Request) -> int:
    from mcp_memory.demo import demo as show

    return show()


def import_file(request: Request, file: str) -> int:
    """Like the tool `migrate`, but the file may be anywhere: whoever types the command may read it. And a relation to
    an entity that is yet to be created comes over, which the document of `migrate` leaves out."""
    from mcp_memory.assembly import desk_for
    from mcp_memory.errand import Errand
    from mcp_memory.server import user

    source = full_path(file)
    settings = msgspec.structs.replace(
        request.settings, profile="full", tools=(), read_only=False, roots=(os.path.dirname(source),)
    )
    desk = desk_for(settings)
    try:
        arguments = msgspec.json.encode({"source_path": source})
        errand = Errand(_show_progress)
        errand.keeps_loose_ends = True
        origin = f"mcp-memory/{__version__} import as {user()}"
        answer = desk.call(desk.tools["migrate"], arguments, origin, errand)
    finally:
        desk.space.close()
    _end_progress()
    if answer.is_error or answer.structured is None:
        said = msgspec.json.decode(answer.text or "{}").get("error", answer.text)
        print(f"mcp-memory: {visible(said)}", file=sys.stderr)
        return 1
    print(f"{source} -> {settings.path}")
    _print_moved(msgspec.json.decode(answer.structured))
    return 0


def export_file(request: Request, file: str, *, journal_version: int | None = None) -> int:
    from mcp_memory.assembly import space_for
    from mcp_memory.conversion import export_memory
    from mcp_memory.errand import Errand

    _must_exist(request.settings)
    target = full_path(file)
    space = space_for(request.settings)
    try:
        moved = export_memory(space, target, Errand(_show_progress), journal_version)
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


def backup(request: Request, file: str | None = None, *, keep: int | None = None) -> int:
    from mcp_memory.safekeeping import back_up

    _must_exist(request.settings)
    place = None if file is None else full_path(file) + (os.sep if file.endswith(("/", os.sep)) else "")
    kept, removed = back_up(request.settings.path, place, keep)
    print(f"{request.settings.path} -> {kept.path}")
    _print_kept(kept)
    for old in removed:
        print(f"  Removed: {old}")
    return 0


def restore(request: Request, file: str) -> int:
    from mcp_memory.safekeeping import restore as put_back

    restored = put_back(full_path(file), request.settings.path)
    print(f"{full_path(file)} -> {request.settings.path}")
    _print_kept(restored.kept)
    if restored.before is not None:
        print(f"  The memory as it was: {restored.before}")
    return 0


def compact(request: Request) -> int:
    from mcp_memory.assembly import space_for

    _must_exist(request.settings)
    space, path = space_for(request.settings), request.settings.path
    before = os.path.getsize(path)
    try:
        dropped = space.compact()
    finally:
        space.close()
    print(path)
    _print_table({"bytes before": f"{before:,}", "bytes after": f"{os.path.getsize(path):,}"})
    if dropped is not None:
        calls = "call" if dropped.calls == 1 else "calls"
        print(f"  Let go of the history of {dropped.calls:,} {calls}, the last of {dropped.until}. No fact is lost.")
    elif not any(space.retention):
        print("  All history is kept: history_days and history_calls say how much of it is needed.")
    return 0


def _print_kept(kept: Kept) -> None:
    told = {"entities": f"{kept.entities:,}", "relations": f"{kept.relations:,}"}
    if kept.calls is not None:
        told["calls in the history"] = f"{kept.calls:,}"
    _print_table({**told, "bytes": f"{os.path.getsize(kept.path):,}", "examined": "in order"})


def doctor(request: Request, *, repair: bool = False, json: bool = False) -> int:
    from mcp_memory.assembly import space_for
    from mcp_memory.stores.store import Finding, StoreFault

    _must_exist(request.settings)
    space = space_for(request.settings)
    try:
        findings = space.check(repair)
    except StoreFault as fault:  # it cannot even be read
        findings = [Finding(str(fault), remedy=fault.remedy)]
    finally:
        space.close()
    wrong = sum(not finding.repaired for finding in findings)
    if json:
        print(data(_as_json(request.settings.path, findings)))
        return 1 if wrong else 0
    for finding in findings:
        print(f"{visible(finding.outcome)}: {visible(finding.text)}")
    if not findings:
        print(f"{request.settings.path}: everything is as it should be.")
    for remedy in dict.fromkeys(one.remedy for one in findings if not one.repaired or one.moved_to):
        print(f"What to do: {remedy}.")
    return 1 if wrong else 0


def _as_json(path: str, findings: list[Any]) -> dict[str, Any]:
    listed = [{"text": one.text, "repaired": one.repaired, "remedy": one.remedy} for one in findings]
    return {"file": path, "ok": all(one.repaired for one in findings), "findings": listed}


def stats(request: Request) -> int:
    from mcp_memory.assembly import space_for
    from mcp_memory.stores.formats import format_of
    from mcp_memory.stores.vectors import vectors_of

    _must_exist(request.settings)
    space = space_for(request.settings)
    try:
        graph = space.graph()
        # While another model takes over there are those of both.
        embedded = vectors_of(space.store, may_write=False).stamps()
        version = getattr(space.store, "journal_version", None)
    finally:
        space.close()
    path = request.settings.path
    _print_table(
        {
            "file": path,
            "format": format_of(path) + (f", version {version}" if version else ""),
            "bytes": f"{os.path.getsize(path):,}",
            "entities": f"{graph.entity_count:,}",
            "observations": f"{graph.observation_count:,}",
            "relations": f"{graph.relation_count:,}",
            "reflections": f"{len(graph.reflections):,}",
            "entity types": _counts(graph.type_counts.most_common(10)),
            "relation types": _counts(graph.relation_type_counts.most_common(10)),
            "texts with a vector": _counts([(stamp.rpartition("/")[0], count) for stamp, count in embedded.items()]),
        }
    )
    return 0


def token(
    request: Request, action: str, name: str = "", *, scopes: tuple[str, ...] = ("read", "write"), expires: str = ""
) -> int:
    from mcp_memory.wire import tokens

    path = full_path(request.settings.auth_token_file or tokens.DEFAULT_FILE)
    now = datetime.now(timezone.utc)
    if action == "list" and not name:
        kept = tokens.read_tokens(path) if os.path.exists(path) else ()
        print(f"{path}: {len(kept) or 'no'} token{'' if len(kept) == 1 else 's'}")
        _print_table({one.name: tokens.said_about(one, now) for one in kept})
    elif action == "create" and name:
        made, secret = tokens.create(path, name, scopes, expires, now)
        print(f"{name} may {tokens.said_about(made, now)}. Its token, which is not shown again:", file=sys.stderr)
        print(secret, flush=True)
        print(f"A server that takes it: mcp-memory --transport http --auth-token-file {path}", file=sys.stderr)
    elif action == "revoke" and name:
        tokens.revoke(path, name)
        print(f"{name} is revoked. A running server notices within a second or two.")
    else:
        raise BadSetting("mcp-memory token takes: create NAME, list, or revoke NAME.")
    return 0


def _must_exist(settings: Settings) -> None:
    if not os.path.exists(settings.path):
        raise BadSetting(f"There is no memory file {settings.path} yet. Say which one with --memory-file.")


def _counts(counted: list[tuple[str, int]]) -> str:
    return ", ".join(f"{named(name)} {count:,}" for name, count in counted) or "none"


def _print_table(rows: dict[str, Any]) -> None:
    width = max(map(len, rows), default=0) + 2
    for name, value in rows.items():
        print(f"  {name:<{width}}{value}")


def _show_progress(done: int, total: int | None, message: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{done:,}{f' of {total:,}' if total else ''} {message}\x1b[K", end="", file=sys.stderr, flush=True)


def _end_progress() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# ── help ─────────────────────────────────────────────────────────────────────────────────────────


def help_text() -> str:
    """Everything the command line understands, from the tables that make it understand."""
    lines = ["mcp-memory: a memory for AI agents, over the Model Context Protocol.", "", "Commands"]
    for name, command in COMMANDS.items():
        lines += _entry(usage(name).removeprefix("mcp-memory "), command.about)
    lines += ["", "mcp-memory COMMAND --help lists the options of one command."]
    lines += ["", "Settings: as an option, as an environment variable, or in the settings file"]
    for field in FIELDS.values():
        flag = " ".join(part for part in (field.flag, field.value) if part)
        short = f"{field.said['short']}, " if "short" in field.said else ""
        lines += _entry(f"{short}{flag}", f"{field.meta.description} [{field.env}; {_default(field.default)}]")
    lines += _entry("--settings FILE", f"The settings file, in TOML. [{PREFIX}SETTINGS; default: {DEFAULT_FILE}]")
    lines += ["", *_entry("--help, -h", "Show this."), *_entry("--version", "Show the version.")]
    return "\n".join(lines)


def help_on(name: str) -> str:
    """One command with its options."""
    command = COMMANDS[name]
    lines = [usage(name), *textwrap.wrap(command.about, WIDTH)]
    if command.options:
        lines += ["", "Options"]
    for option, of in command.options.items():
        lines += _entry(told(option, of), of.about)
    lines += ["", "The settings that every command understands: mcp-memory --help"]
    return "\n".join(lines)


def _default(default: Any) -> str:
    return f"default: {str(default).lower() if isinstance(default, bool) else default}"


def _entry(head: str, about: str) -> list[str]:
    return [f"  {head}", *textwrap.wrap(about, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)]
