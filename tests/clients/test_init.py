"""`mcp-memory init`: a client's files are found, shown, written, kept and given back, byte for byte."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import shlex
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.advice import RULES
from mcp_memory.clients.files import BACKUP
from mcp_memory.clients.jsonc import parse
from mcp_memory.clients.launch import typed
from mcp_memory.clients.setup import HOOK
from mcp_memory.clients.table import CLIENTS, NAME, chosen, places
from mcp_memory.server import main
from mcp_memory.settings import FIELDS

Run = Callable[..., tuple[int, str, str]]
BOTH = [(client, scope) for client, row in CLIENTS.items() for scope in row.config]

# What somebody may have in each file already, with what must not be lost.
BEFORE = {
    "json": '{\n    "starts": 7,\n    "KEY": {\n        "git": { "command": "git-mcp", "env": {"A": "ä"} }\n    }\n}\n',
    "jsonc": '// mine\n{\n\t"KEY": { // servers\n\t\t"git": { "command": "git" }, // keep\n\t},\n\t"a": 1,\n}\n',
    "toml": '# mine\r\nmodel = "o"\r\n\r\n[mcp_servers.git] # keep\r\ncommand = "git-mcp"\r\n\r\n[tui]\r\nx = 1\r\n',
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that nobody has lived in, and a project beside it."""
    for name in (
        "XDG_CONFIG_HOME",
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "APPDATA",
        "LOCALAPPDATA",
        "MCP_MEMORY_SETTINGS",
    ):
        monkeypatch.delenv(name, raising=False)
    for field in FIELDS.values():
        monkeypatch.delenv(field.env, raising=False)
    home = tmp_path / "home"
    (tmp_path / "project").mkdir()
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(tmp_path / "project")
    return home


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Somebody at a terminal who gives these answers."""

    def answering(*answers: str) -> None:
        said = io.StringIO("".join(f"{answer}\n" for answer in answers))
        said.isatty = lambda: True  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stdin", said)

    return answering


def config_of(client: str, scope: str, home: Path) -> Path:
    known = places(os.environ, str(home), os.getcwd())
    return Path(chosen(CLIENTS[client].config[scope], known))  # type: ignore[index]


def keys_of(client: str) -> tuple[str, ...]:
    return CLIENTS[client].shapes[-1].keys


def before_of(client: str) -> str:
    row = CLIENTS[client]
    kind = "toml" if row.format == "toml" else "jsonc" if row.lenient else "json"
    return BEFORE[kind].replace("KEY", keys_of(client)[0])


def read(client: str, file: Path) -> Any:
    text = file.read_text(encoding="utf-8")
    return tomllib.loads(text) if CLIENTS[client].format == "toml" else parse(text).value


def entry_in(client: str, file: Path) -> Any:
    found = read(client, file)
    for key in keys_of(client):
        found = found[key]
    return found[NAME]


def all_files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# ── every client ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("client", "scope"), BOTH)
def test_a_client_that_has_nothing_yet_gets_a_file_and_undo_leaves_no_trace(
    run: Run, home: Path, client: str, scope: str
) -> None:
    code, printed, _ = run("init", client, "--scope", scope, "--yes", "--rules", "--hook")
    file = config_of(client, scope, home)

    assert code == 0
    assert f"{file} (a new file)" in printed and CLIENTS[client].then in printed
    assert entry_in(client, file)["command"]
    assert file.read_bytes().endswith(b"\n")

    assert run("init", client, "--undo", "--yes")[0] == 0
    assert all_files(home.parent) == {}
    assert list(home.rglob("*")) in ([], [home / ".config", home / ".config" / "mcp-memory"])


@pytest.mark.parametrize(("client", "scope"), BOTH)
def test_what_was_there_stays_byte_for_byte_and_comes_back_exactly(
    run: Run, home: Path, client: str, scope: str
) -> None:
    file, text = config_of(client, scope, home), before_of(client)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())

    code, printed, _ = run("init", client, "--scope", scope, "--yes")

    assert code == 0 and f"{file}{BACKUP}" in printed
    assert "\n@@ -" in printed
    made = iter(file.read_bytes().decode().splitlines(keepends=True))
    for line in text.splitlines(keepends=True):  # all are there, in their order; at most one got a comma
        assert any(found in (line, line.replace("\n", ",\n")) for found in made), line
    rest = read(client, file)
    del (rest[keys_of(client)[0]])[NAME]
    assert rest == (tomllib.loads(text) if CLIENTS[client].format == "toml" else parse(text).value)

    assert run("init", client, "--undo", "--yes", "--scope", scope)[0] == 0
    assert file.read_bytes() == text.encode()
    assert [name for name in all_files(home.parent) if BACKUP in name] == []


@pytest.mark.parametrize(("client", "scope"), BOTH)
def test_once_more_changes_nothing(run: Run, home: Path, client: str, scope: str) -> None:
    options = ("init", client, "--scope", scope, "--yes", "--rules", "--hook", "-f", "here.db")
    run(*options)
    first = all_files(home.parent)
    code, printed, _ = run(*options)

    assert code == 0 and "is set up already" in printed
    assert all_files(home.parent) == first
    assert run("init", client, "--scope", scope, "--yes", "--rules", "--hook")[1].startswith(
        f"{CLIENTS[client].title} is set up already"
    ), "the memory file that it was given stays"


@pytest.mark.parametrize(("client", "scope"), BOTH)
def test_print_writes_nothing_and_shows_what_yes_would_write(run: Run, home: Path, client: str, scope: str) -> None:
    code, printed, complained = run("init", client, "--scope", scope, "--print", "--yes", "--rules")
    assert all_files(home.parent) == {}
    run("init", client, "--scope", scope, "--yes")

    assert (code, "There is nobody to ask" in complained) == (0, False)
    file = config_of(client, scope, home)
    assert printed.startswith(f"{file} (a new file)\n{file.read_text(encoding='utf-8')}\n")


@pytest.mark.parametrize("client", CLIENTS)
def test_the_server_starts_as_the_file_says_and_answers(run: Run, home: Path, client: str) -> None:
    """What a client does with the entry: take command, arguments and environment, start it, and ask."""
    run("init", client, "--yes", "-f", "my memory.db", "--profile", "core", "--tools", "recall,seek", "--model", "none")
    entry = entry_in(client, config_of(client, "user", home))
    command = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    env = entry.get("env") or entry["environment"]
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    asked = "".join(json.dumps(message) + "\n" for message in messages).encode()
    answered = subprocess.run(
        command, input=asked, capture_output=True, env={**os.environ, **env}, cwd=home, timeout=120, check=True
    )
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, answered.stdout.splitlines())}

    assert answers[1]["serverInfo"]["name"] == "memory"
    assert {tool["name"] for tool in answers[2]["tools"]} >= {"search_nodes", "open_nodes"}
    assert "create_entities" not in str(answers[2])
    assert env == {"MEMORY_FILE_PATH": str(home.parent / "project" / "my memory.db")}


@pytest.mark.parametrize(("client", "scope"), BOTH)
def test_a_broken_file_is_refused_with_its_place_and_not_touched(run: Run, home: Path, client: str, scope: str) -> None:
    file = config_of(client, scope, home)
    file.parent.mkdir(parents=True, exist_ok=True)
    broken = "a = 1\nb = = 2\n" if CLIENTS[client].format == "toml" else '{\n  "a": 1\n  "b": 2\n}\n'
    file.write_text(broken, encoding="utf-8")

    for option in ("--yes", "--print"):
        code, _, complained = run("init", client, "--scope", scope, option)
        assert code == 1
        assert "line 2, column 5" in complained or "line 3, column 3" in complained
        assert str(file) in complained and "nothing was changed" in complained
    assert all_files(home.parent) == {str(file.relative_to(home.parent)): broken.encode()}


# ── asking ───────────────────────────────────────────────────────────────────────────────────────


def test_without_anybody_to_ask_nothing_is_written(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    code, printed, complained = run("init", "cursor")

    assert code == 2
    assert "mcp.json (a new file)" in printed and "Say --yes" in complained
    assert all_files(home) == {}


def test_no_is_the_answer_if_none_is_given(run: Run, home: Path, answering: Callable[..., None]) -> None:
    answering("")
    code, printed, _ = run("init", "cursor")

    assert code == 1
    assert "Write this? [y/N]" in printed and "Nothing was written." in printed
    assert all_files(home) == {}


def test_on_a_terminal_rules_and_hook_are_offered_each_on_its_own(
    run: Run, home: Path, answering: Callable[..., None]
) -> None:
    answering("y", "no", "yes")
    code, printed, _ = run("init", "claude-code")

    assert code == 0
    assert printed.count("[y/N]") == 3
    assert (home / ".claude.json").exists() and not (home / ".claude" / "CLAUDE.md").exists()
    assert "brief --hook" in (home / ".claude" / "settings.json").read_text(encoding="utf-8")

    answering("y")
    assert run("init", "claude-code", "--undo")[0] == 0
    assert all_files(home) == {}


# ── what is there already ────────────────────────────────────────────────────────────────────────


OFFICIAL = {
    "command": "npx",
    "args": ["-y", "@modelcontextprotocol/server-memory"],
    "env": {"MEMORY_FILE_PATH": "/data/memory.jsonl", "NODE_OPTIONS": "--x"},
    "alwaysAllow": ["search_nodes"],
}


def test_an_entry_of_the_official_server_is_replaced_only_after_saying_so_and_its_memory_stays(
    run: Run, home: Path
) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": {"memory": OFFICIAL}}, indent=2), encoding="utf-8")

    _, _, complained = run("init", "cursor", "--yes")

    assert "has an entry named memory already; it would be replaced." in complained
    assert "This stays: MEMORY_FILE_PATH=/data/memory.jsonl." in complained
    entry = entry_in("cursor", file)
    assert entry["env"] == {"MEMORY_FILE_PATH": "/data/memory.jsonl"}
    assert entry["alwaysAllow"] == ["search_nodes"]
    assert "npx" not in str(entry) and "args" not in entry

    run("init", "cursor", "--yes", "-f", "/data/other.db")
    assert entry_in("cursor", file)["env"] == {"MEMORY_FILE_PATH": str(Path("/data/other.db"))}


def official_entry(home: Path, *words: str) -> None:
    """An entry that names no memory file."""
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    entry = {"command": words[0], "args": words[1:]}
    file.write_text(json.dumps({"mcpServers": {"memory": entry}}), encoding="utf-8")


@pytest.mark.parametrize("how", ["npx", "path"])
def test_facts_that_the_official_server_keeps_in_its_own_package_are_found_and_come_over_as_told(
    run: Run, home: Path, how: str
) -> None:
    package = home / ".npm/_npx/15b07286cbcc3329/node_modules/@modelcontextprotocol/server-memory/dist"
    package.mkdir(parents=True)
    facts = package / "memory.jsonl"
    facts.write_text('{"type":"entity","name":"Ada","entityType":"Person","observations":[]}', encoding="utf-8")
    (package / "memory.json").touch()  # empty: nothing to bring in
    npx = ("npx", "-y", "@modelcontextprotocol/server-memory")
    official_entry(home, *(npx if how == "npx" else ("node", str(package / "index.js"))))

    _, _, complained = run("init", "cursor", "--yes", "-f", home / "my memory.db")

    assert f"inside its own package, where they may be deleted: {facts}." in complained
    command = shlex.split(complained.partition("bring them in with: ")[2].splitlines()[0])
    assert command == ["mcp-memory", "-f", str(home / "my memory.db"), "import", str(facts)]
    assert run(*command[1:])[0] == 0
    assert "entities 1" in " ".join(run("-f", home / "my memory.db", "stats")[1].split())
    assert "its own package" not in run("init", "cursor", "--yes")[2]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("npx", "-y", "@modelcontextprotocol/server-memory"), "which was not found here"),
        (("docker", "run", "-i", "-v", "claude-memory:/app/dist", "--rm", "mcp/memory"), "in a container"),
    ],
)
def test_facts_of_the_official_server_that_are_elsewhere_are_told_about(
    run: Run, home: Path, words: tuple[str, ...], told: str
) -> None:
    official_entry(home, *words)
    _, _, complained = run("init", "cursor", "--yes")

    assert told in complained
    assert "mcp-memory import memory.jsonl" in complained


@pytest.mark.parametrize("client", CLIENTS)
def test_settings_that_were_chosen_once_stay_until_others_are_chosen(run: Run, home: Path, client: str) -> None:
    run("init", client, "--yes", "-f", "a.db", "--profile", "core")
    first = entry_in(client, config_of(client, "user", home))

    assert "is set up already" in run("init", client, "--yes")[1]
    run("init", client, "--yes", "--uvx")
    by_uvx = entry_in(client, config_of(client, "user", home))
    assert "uvx" in str(by_uvx) and "core" in str(by_uvx) and "a.db" in str(by_uvx)
    run("init", client, "--yes", "-f", "b.db")
    assert str(entry_in(client, config_of(client, "user", home))) == str(first).replace("a.db", "b.db")
    run("init", client, "--yes", "--read-only")
    last = entry_in(client, config_of(client, "user", home))
    assert "--read-only" in str(last) and "core" not in str(last) and "b.db" in str(last)


def test_what_an_entry_held_is_kept_where_only_its_owner_reads_it(run: Run, home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"memory": {"command": "x", "env": {"KEY": "secret"}}}}', encoding="utf-8")
    file.chmod(0o600)
    run("init", "cursor", "--yes")

    holding = [place for place in home.rglob("*") if place.is_file() and b"secret" in place.read_bytes()]
    assert len(holding) == 2  # the copy beside it, and what --undo needs
    assert all(stat.S_IMODE(place.stat().st_mode) == 0o600 for place in holding)


def test_what_others_wrote_meanwhile_survives_an_undo(run: Run, home: Path) -> None:
    file = home / ".claude.json"
    file.write_text(json.dumps({"numStartups": 1, "mcpServers": {"memory": OFFICIAL}}, indent=2), encoding="utf-8")
    run("init", "claude-code", "--yes")
    busy = json.loads(file.read_text(encoding="utf-8"))
    busy["numStartups"] = 2
    busy["mcpServers"]["new"] = {"command": "x"}
    file.write_text(json.dumps(busy), encoding="utf-8")

    code, printed, _ = run("init", "claude-code", "--undo", "--yes")

    assert code == 0 and "was written by others since, so only our part was taken out" in printed
    assert json.loads(file.read_text(encoding="utf-8")) == {
        "numStartups": 2,
        "mcpServers": {"memory": OFFICIAL, "new": {"command": "x"}},
    }


def test_a_file_of_ours_that_others_wrote_into_loses_only_our_part(run: Run, home: Path) -> None:
    run("init", "codex", "--yes", "--rules", "--hook")
    config, rules = home / ".codex" / "config.toml", home / ".codex" / "AGENTS.md"
    config.write_bytes(config.read_bytes() + b"\n[tui]\nx = 1\n")
    rules.write_bytes(b"# Mine\n\n" + rules.read_bytes())
    hooks = home / ".codex" / "hooks.json"
    hooks.write_bytes(hooks.read_bytes().replace(b'"hooks": {', b'"description": "x", "hooks": {', 1))

    assert run("init", "codex", "--undo", "--yes")[0] == 0
    assert config.read_bytes() == b"\n[tui]\nx = 1\n"
    assert rules.read_bytes() == b"# Mine\n"
    assert json.loads(hooks.read_bytes()) == {"description": "x"}


def test_runs_are_taken_back_one_by_one(run: Run, home: Path) -> None:
    file = home / ".gemini" / "settings.json"
    file.parent.mkdir()
    file.write_bytes(b'{"theme": "x"}')
    run("init", "gemini", "--yes")
    first = file.read_bytes()
    run("init", "gemini", "--yes", "--hook", "-f", "a.db")

    assert run("init", "gemini", "--undo", "--yes")[0] == 0
    assert file.read_bytes() == first
    assert run("init", "gemini", "--undo", "--yes")[0] == 0
    assert file.read_bytes() == b'{"theme": "x"}'
    code, _, complained = run("init", "gemini", "--undo", "--yes")
    assert (code, "nothing to take back for gemini" in complained) == (2, True)


def test_an_undo_can_be_looked_at_first(run: Run, home: Path) -> None:
    run("init", "cursor", "--yes")
    before = all_files(home)
    code, printed, _ = run("init", "cursor", "--undo", "--print")

    assert code == 0 and "mcp.json (will be removed)" in printed
    assert all_files(home) == before


def test_what_was_done_in_another_project_is_not_taken_back_here(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("init", "vscode", "--scope", "project", "--yes")
    monkeypatch.chdir(home)
    code, _, complained = run("init", "vscode", "--undo", "--yes")

    assert code == 2 and str(home.parent / "project") in complained
    assert (home.parent / "project" / ".vscode" / "mcp.json").exists()


# ── files as people keep them ────────────────────────────────────────────────────────────────────


def test_a_link_stays_a_link_and_permissions_stay_as_they_were(run: Run, home: Path) -> None:
    dotfiles = home / "dotfiles"
    dotfiles.mkdir()
    (home / ".cursor").mkdir()
    real, link = dotfiles / "mcp.json", home / ".cursor" / "mcp.json"
    real.write_bytes(b"{}\n")
    real.chmod(0o600)
    link.symlink_to(real)

    run("init", "cursor", "--yes")
    assert link.is_symlink() and b"mcpServers" in real.read_bytes()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(f"{link}{BACKUP}").stat().st_mode) == 0o600

    run("init", "cursor", "--undo", "--yes")
    assert link.is_symlink() and real.read_bytes() == b"{}\n"
    assert [file.name for file in dotfiles.iterdir()] == ["mcp.json"]


def test_a_read_only_file_is_left_alone(run: Run, home: Path) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_bytes(b"a = 1\n")
    file.chmod(0o444)

    code, _, complained = run("init", "codex", "--yes", "--rules")

    assert code == 1 and "is read-only" in complained
    assert all_files(home) == {os.path.join(".codex", "config.toml"): b"a = 1\n"}


def test_if_one_file_cannot_be_written_none_is(run: Run, home: Path) -> None:
    rules = home / ".codex" / "AGENTS.md"
    rules.parent.mkdir()
    rules.write_bytes(b"# Mine\n")
    rules.chmod(0o444)

    code, _, _ = run("init", "codex", "--yes", "--rules")

    assert code == 1
    assert all_files(home) == {os.path.join(".codex", "AGENTS.md"): b"# Mine\n"}


@pytest.mark.parametrize(
    ("client", "content", "complaint"),
    [
        ("cursor", b"\xff\xfe{\x00}\x00", "is not written in UTF-8"),
        ("cursor", b'{"mcpServers": []}', "mcpServers must be an object"),
        ("cursor", b"[]", "it must be an object"),
        ("claude-desktop", b'{\n  "a": 1,\n}', "line 2, column 9: this client allows no comma before the end"),
        ("claude-code", b'{"a": 1} // mine', "line 1, column 10: this client allows no comments"),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_refused(
    run: Run, home: Path, client: str, content: bytes, complaint: str
) -> None:
    file = config_of(client, "user", home)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    code, _, complained = run("init", client, "--yes")

    assert code == 1 and complaint in complained
    assert all_files(home) == {str(file.relative_to(home)): content}


def test_servers_in_one_line_of_toml_are_refused_with_a_way_out(run: Run, home: Path) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_bytes(b'mcp_servers = { git = { command = "git-mcp" } }\n')
    code, _, complained = run("init", "codex", "--yes")

    assert code == 1 and "write them as tables" in complained
    assert file.read_bytes() == b'mcp_servers = { git = { command = "git-mcp" } }\n'


def test_a_mark_at_the_beginning_of_a_file_stays(run: Run, home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_bytes(b"\xef\xbb\xbf{}")
    run("init", "cursor", "--yes")

    assert file.read_bytes().startswith(b"\xef\xbb\xbf{")
    assert "memory" in file.read_text(encoding="utf-8-sig")


def test_opencode_s_newer_place_for_servers_is_used_where_the_file_uses_it(run: Run, home: Path) -> None:
    file = home / ".config" / "opencode" / "opencode.jsonc"
    file.parent.mkdir(parents=True)
    file.write_text('{\n  "mcp": {\n    "servers": {} // mine\n  }\n}\n', encoding="utf-8")
    run("init", "opencode", "--yes")

    servers = parse(file.read_text(encoding="utf-8")).value["mcp"]["servers"]
    assert servers["memory"]["type"] == "local" and "enabled" not in servers["memory"]
    assert "// mine" in file.read_text(encoding="utf-8")


# ── rules and hook ───────────────────────────────────────────────────────────────────────────────


def test_rules_are_a_block_that_is_renewed_and_never_doubled(run: Run, home: Path) -> None:
    file = home / ".claude" / "CLAUDE.md"
    file.parent.mkdir()
    file.write_bytes(b"# Mine\n\nBe kind.")
    run("init", "claude-code", "--yes", "--rules")
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# Mine\n\nBe kind.\n\n<!-- mcp-memory: begin") and RULES in text

    file.write_text(text.replace("Recall first", "Recall never") + "\nMore of mine.\n", encoding="utf-8")
    run("init", "claude-code", "--yes", "--rules")
    renewed = file.read_text(encoding="utf-8")
    assert renewed.count("mcp-memory: begin") == 1 and RULES in renewed
    assert renewed.endswith("<!-- mcp-memory: end -->\n\nMore of mine.\n")

    run("init", "claude-code", "--undo", "--yes")
    run("init", "claude-code", "--undo", "--yes")
    assert file.read_bytes() == b"# Mine\n\nBe kind.\n\nMore of mine.\n"


def test_two_clients_that_read_the_same_file_share_one_block(run: Run, home: Path) -> None:
    run("init", "codex", "--scope", "project", "--yes", "--rules")
    run("init", "opencode", "--scope", "project", "--yes", "--rules")

    assert (home.parent / "project" / "AGENTS.md").read_text(encoding="utf-8").count("mcp-memory: begin") == 1


@pytest.mark.parametrize("client", [name for name, row in CLIENTS.items() if row.hooks])
def test_the_hook_tells_a_session_what_the_memory_holds(run: Run, home: Path, client: str) -> None:
    facts = home / "facts.jsonl"
    facts.write_text('{"type":"entity","name":"Ada \\"the\\"\\nfirst","entityType":"Person","observations":["x"]}\n')
    run("-f", home / "my memory.db", "import", facts)
    run("init", client, "--yes", "--hook", "-f", home / "my memory.db")
    run("init", client, "--yes", "--hook", "-f", home / "my memory.db")
    file = Path(CLIENTS[client].hooks["user"][0].format(**places(os.environ, str(home), "")))
    (group,) = json.loads(file.read_text(encoding="utf-8"))["hooks"]["SessionStart"]
    (handler,) = group["hooks"]
    told = subprocess.run(shlex.split(handler["command"]), capture_output=True, timeout=120, check=True)
    said = json.loads(told.stdout)["hookSpecificOutput"]

    assert handler["type"] == "command" and said["hookEventName"] == "SessionStart"
    assert r'knows 1 entities. Types: "Person" 1. Learnt last: "Ada \"the\"\nfirst".' in (said["additionalContext"])
    assert "\n" not in said["additionalContext"]


def test_a_hook_never_stands_in_the_way_of_a_session(run: Run, home: Path) -> None:
    (home / "memory.mcpmem").write_bytes(b"MCPMEMV9" + bytes(20))
    assert run("brief", "--hook", "-f", home / "memory.mcpmem")[:2] == (0, "")
    assert run("brief", "-f", home / "memory.mcpmem")[0] == 1
    assert "is empty so far" in run("brief", "-f", home / "none.db")[1]
    assert not (home / "none.db").exists()


def test_where_a_host_has_no_file_for_rules_their_text_is_printed(run: Run, home: Path) -> None:
    _, _, complained = run("init", "claude-desktop", "--yes", "--rules", "--hook")

    assert RULES in complained and "--hook does nothing here" in complained


# ── how it is started ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def came_from(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """As if this installation came from there; from an index, which installers do not note, where nothing is said."""

    def came_from(**noted: Any) -> None:
        text = json.dumps(noted) if noted else None
        monkeypatch.setattr(importlib.metadata.PathDistribution, "read_text", lambda self, name: text)

    return came_from


@pytest.mark.parametrize(
    ("noted", "source"),
    [
        ({"url": "file:///there/a%20checkout", "dir_info": {}}, "/there/a checkout"),
        ({"url": "file:///there/mcp_memory-1-py3-none-any.whl"}, "/there/mcp_memory-1-py3-none-any.whl"),
        (
            {"url": "https://example.org/m.git", "vcs_info": {"vcs": "git", "commit_id": "ab12"}},
            "git+https://example.org/m.git@ab12",
        ),
    ],
)
def test_a_name_is_not_written_for_what_no_index_gave(
    run: Run, home: Path, came_from: Callable[..., None], noted: Any, source: str
) -> None:
    came_from(**noted)
    _, _, told = run("init", "cursor", "--scope", "project", "--yes", "--uvx", "--profile=core")
    entry = entry_in("cursor", home.parent / "project" / ".cursor" / "mcp.json")

    written = source if "+" in source else str(Path(source))
    assert entry == {"command": "uvx", "args": ["--from", written, "mcp-memory", "--profile", "core"]}
    assert ("needs it there too" in told) is ("+" not in source)


def test_uvx_is_written_so_that_others_can_use_the_file_too(
    run: Run, home: Path, came_from: Callable[..., None]
) -> None:
    came_from()
    run("init", "claude-code", "--scope", "project", "--yes", "--uvx", "--profile=core")
    file = home.parent / "project" / ".mcp.json"

    assert entry_in("claude-code", file) == {
        "type": "stdio",
        "command": "uvx",
        "args": ["mcp-memory", "--profile", "core"],
    }
    assert "add --uvx" in run("init", "cursor", "--scope", "project", "--print")[2]


def test_a_path_that_will_not_last_is_not_written(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, came_from: Callable[..., None]
) -> None:
    came_from()
    passing = home / ".cache" / "uv" / "archive-v0" / "x" / "bin" / "mcp-memory"
    passing.parent.mkdir(parents=True)
    passing.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(passing)])
    monkeypatch.setenv("PATH", "")
    run("init", "cursor", "--yes")

    assert entry_in("cursor", home / ".cursor" / "mcp.json") == {"command": "uvx", "args": ["mcp-memory"]}


def test_the_package_without_semantic_search_is_fetched_by_its_own_name(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name != "mcp-memory-slim":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setenv("PATH", "")
    run("init", "cursor", "--yes", "--uvx", "--profile", "core")
    file = home / ".cursor" / "mcp.json"

    assert entry_in("cursor", file)["args"] == ["--from", "mcp-memory-slim", "mcp-memory", "--profile", "core"]
    assert "is set up already" in run("init", "cursor", "--yes", "--uvx")[1]


def test_an_installed_command_is_named_as_it_was_found_link_or_not(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "venv").mkdir()
    (home / "bin").mkdir()
    (home / "venv" / "mcp-memory").touch(mode=0o755)
    (home / "bin" / "mcp-memory").symlink_to(home / "venv" / "mcp-memory")
    monkeypatch.setattr(sys, "argv", ["mcp-memory"])
    monkeypatch.setenv("PATH", str(home / "bin"))
    run("init", "cursor", "--yes", "--read-only", "--roots", os.pathsep.join(["~", "."]))

    entry = entry_in("cursor", home / ".cursor" / "mcp.json")
    assert entry["command"] == str(home / "bin" / "mcp-memory")
    assert entry["args"] == ["--read-only", "--roots", os.pathsep.join([str(home), str(home.parent / "project")])]


def test_another_file_can_be_named(run: Run, home: Path) -> None:
    run("init", "vscode", "--yes", "--config", "insiders.json")

    assert "memory" in (home.parent / "project" / "insiders.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["init", "claude"], "did you mean claude-code"),
        (["init", "vs-code"], "did you mean vscode"),
        (["init", "Cursor "], "did you mean cursor"),
        (["init", "zed"], "For any other: docs/clients/other.md"),
        (["init"], "It is used like this: mcp-memory init claude-code|"),
        (["init", "claude-desktop", "--scope", "project"], "it has one for user"),
        (["init", "cursor", "--scope", "here"], "it must be user or project"),
        (["init", "cursor", "--bind", "127.0.0.1:1", "--print"], "is for a server that many clients share"),
        (["init", "cursor", "--profile", "fuller"], "it must be one of full, core, official"),
    ],
)
def test_a_mistake_is_explained(run: Run, arguments: list[str], complaint: str) -> None:
    code, printed, complained = run(*arguments)

    assert (code, printed) == (2, "")
    assert complaint in complained


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("sh", r"'C:\my programs\m.exe' -f /o/m.db brief --hook"),
        ("bash", r"'C:/my programs/m.exe' -f /o/m.db brief --hook"),
        ("cmd", r'cmd /c "C:\my programs\m.exe" -f /o/m.db brief --hook'),
        ("powershell", r"& 'C:\my programs\m.exe' -f /o/m.db brief --hook"),
    ],
)
def test_a_hook_s_command_is_written_for_the_shell_that_runs_it(shell: str, line: str) -> None:
    assert typed([r"C:\my programs\m.exe", "-f", "/o/m.db", *HOOK.split()], shell) == line
    assert HOOK in line  # by which it is found again


# ── other systems ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("client", "platform", "environment", "path"),
    [
        ("claude-desktop", "darwin", {}, "/h/Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", {"APPDATA": "/r"}, "/r/Claude/claude_desktop_config.json"),
        ("claude-desktop", "linux", {}, "/h/.config/Claude/claude_desktop_config.json"),
        ("vscode", "darwin", {}, "/h/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", {}, "/h/AppData/Roaming/Code/User/mcp.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("codex", "win32", {"CODEX_HOME": "/c"}, "/c/config.toml"),
        ("opencode", "win32", {}, "/h/.config/opencode/opencode.json"),
    ],
)
def test_each_system_has_its_places(client: str, platform: str, environment: dict[str, str], path: str) -> None:
    known = places(environment, "/h", "/p", platform)

    assert chosen(CLIENTS[client].config["user"], known) == os.path.normpath(path)
