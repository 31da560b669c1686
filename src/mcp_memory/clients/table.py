"""What is known about each client: its files, how it writes a server down, and what makes its model use one.

A client is a row. Nothing else in this package asks which client it is. Paths are written with `{names}` that
`places` fills in; of several, the first that exists is meant, else the last."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

NAME = "memory"  # of the entry; clients put it before the names of tools, so it is short
Scope = Literal["user", "project"]


class Rules(msgspec.Struct, frozen=True):
    """A file of which a host tells its model at the start of every session."""

    paths: tuple[str, ...]
    head: str = ""  # what a new file begins with, so that the host takes notice of it


class Shape(msgspec.Struct, frozen=True):
    """Where a client's file keeps its servers, and how one is written there."""

    keys: tuple[str, ...]
    entry: Callable[[str, list[str], dict[str, str]], dict[str, Any]]


class Client(msgspec.Struct, frozen=True):
    """One program that starts MCP servers."""

    title: str
    config: Mapping[Scope, tuple[str, ...]]
    shapes: tuple[Shape, ...]  # the first whose keys are in the file already, else the last
    then: str  # what makes it take notice
    format: Literal["json", "toml"] = "json"
    lenient: bool = True  # does it read comments in JSON?
    fresh: Mapping[str, Any] = {}  # what a new file says besides
    rules: Mapping[Scope, Rules] = {}
    hooks: Mapping[Scope, tuple[str, ...]] = {}  # where a command can be named that runs when a session starts
    hook_note: str = ""
    windows_shell: Literal["bash", "cmd", "powershell"] = "bash"  # that runs the hook's command there
    no_rules: str = ""  # what to do where there is no such file


def _plain(command: str, args: list[str], env: dict[str, str]) -> dict[str, Any]:
    return {"command": command, **({"args": args} if args else {}), **({"env": env} if env else {})}


def _typed(command: str, args: list[str], env: dict[str, str]) -> dict[str, Any]:
    return {"type": "stdio", **_plain(command, args, env)}


def _listed(command: str, args: list[str], env: dict[str, str]) -> dict[str, Any]:
    return {"type": "local", "command": [command, *args], **({"environment": env} if env else {})}


def _enabled(command: str, args: list[str], env: dict[str, str]) -> dict[str, Any]:
    return {**_listed(command, args, env), "enabled": True}


SERVERS = Shape(("mcpServers",), _plain)
MDC = "---\ndescription: When to recall from the memory server and when to save to it\nalwaysApply: true\n---\n\n"
INSTRUCTIONS = '---\ndescription: When to recall from the memory server and when to save to it\napplyTo: "**"\n---\n\n'

CLIENTS: dict[str, Client] = {
    "claude-code": Client(
        title="Claude Code",
        config={"user": ("{claude_json}",), "project": ("{project}/.mcp.json",)},
        shapes=(Shape(("mcpServers",), _typed),),
        lenient=False,
        rules={"user": Rules(("{claude}/CLAUDE.md",)), "project": Rules(("{project}/CLAUDE.md",))},
        hooks={"user": ("{claude}/settings.json",), "project": ("{project}/.claude/settings.json",)},
        then="Start a new session and type /mcp: memory must be there, connected.",
    ),
    "claude-desktop": Client(
        title="Claude Desktop",
        config={
            "user": (
                "{packages}/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
                "{apps}/Claude/claude_desktop_config.json",
            )
        },
        shapes=(SERVERS,),
        lenient=False,
        then="Quit Claude Desktop altogether and start it again; memory is then among the tools below the text field.",
        no_rules="Claude Desktop keeps such rules in its settings, under the instructions for Claude in your profile",
    ),
    "cursor": Client(
        title="Cursor",
        config={"user": ("{home}/.cursor/mcp.json",), "project": ("{project}/.cursor/mcp.json",)},
        shapes=(SERVERS,),
        rules={"project": Rules(("{project}/.cursor/rules/mcp-memory.mdc",), MDC)},
        then="Look into Cursor's settings, under MCP: memory must be there and switched on.",
        no_rules="Cursor keeps the rules of a user in its settings, under Rules; those of a project are a file",
    ),
    "vscode": Client(
        title="VS Code",
        config={"user": ("{apps}/Code/User/mcp.json",), "project": ("{project}/.vscode/mcp.json",)},
        shapes=(Shape(("servers",), _typed),),
        rules={
            "user": Rules(("{home}/.copilot/instructions/mcp-memory.instructions.md",), INSTRUCTIONS),
            "project": Rules(("{project}/.github/copilot-instructions.md",)),
        },
        then="Run MCP: List Servers from the command palette, and start memory if it does not run.",
    ),
    "opencode": Client(
        title="OpenCode",
        config={
            "user": ("{config}/opencode/opencode.jsonc", "{config}/opencode/opencode.json"),
            "project": ("{project}/opencode.jsonc", "{project}/opencode.json"),
        },
        # Version 2 has a place of its own for servers and reads the older one too; version 1 knows only that.
        shapes=(Shape(("mcp", "servers"), _listed), Shape(("mcp",), _enabled)),
        fresh={"$schema": "https://opencode.ai/config.json"},
        rules={"user": Rules(("{config}/opencode/AGENTS.md",)), "project": Rules(("{project}/AGENTS.md",))},
        then="Start OpenCode anew; opencode mcp list must show memory as connected.",
    ),
    "codex": Client(
        title="Codex",
        config={"user": ("{codex}/config.toml",), "project": ("{project}/.codex/config.toml",)},
        shapes=(Shape(("mcp_servers",), _plain),),
        format="toml",
        rules={
            "user": Rules(("{codex}/AGENTS.override.md", "{codex}/AGENTS.md")),
            "project": Rules(("{project}/AGENTS.override.md", "{project}/AGENTS.md")),
        },
        hooks={"user": ("{codex}/hooks.json",), "project": ("{project}/.codex/hooks.json",)},
        windows_shell="cmd",
        hook_note="Codex runs a new hook only after you have looked at it: type /hooks.",
        then="Start Codex anew and type /mcp. The files of a project count only where the project is trusted.",
    ),
    "gemini": Client(
        title="Gemini CLI",
        config={"user": ("{home}/.gemini/settings.json",), "project": ("{project}/.gemini/settings.json",)},
        shapes=(SERVERS,),
        rules={"user": Rules(("{home}/.gemini/GEMINI.md",)), "project": Rules(("{project}/GEMINI.md",))},
        hooks={"user": ("{home}/.gemini/settings.json",), "project": ("{project}/.gemini/settings.json",)},
        windows_shell="powershell",
        then="Start Gemini CLI anew and type /mcp: memory must be there, connected.",
    ),
}


def places(environment: Mapping[str, str], home: str, project: str, platform: str = sys.platform) -> dict[str, str]:
    """Where things are on this system, under the names that the table uses."""
    config = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
    claude = environment.get("CLAUDE_CONFIG_DIR")
    apps = {
        "win32": environment.get("APPDATA") or f"{home}/AppData/Roaming",
        "darwin": f"{home}/Library/Application Support",
    }
    return {
        "home": home,
        "project": project,
        "config": config,
        "apps": apps.get(platform, config),
        "packages": f"{environment.get('LOCALAPPDATA') or f'{home}/AppData/Local'}/Packages",
        "claude": claude or f"{home}/.claude",
        "claude_json": f"{claude or home}/.claude.json",
        "codex": environment.get("CODEX_HOME") or f"{home}/.codex",
    }


def chosen(paths: tuple[str, ...], known: Mapping[str, str]) -> str:
    """Which of these files is meant."""
    filled = [os.path.normpath(path.format(**known)) for path in paths]
    return next((path for path in filled if os.path.lexists(path)), filled[-1])
