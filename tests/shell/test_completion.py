"""Completion as shells do it: the scripts are run by the shells that are here, bash first of all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_memory.clients.table import CLIENTS
from mcp_memory.commands import COMMANDS, OPTIONS
from mcp_memory.server import main
from mcp_memory.settings import FLAGS, SWITCHES
from mcp_memory.shell.completion import SHELLS

Complete = Callable[..., list[str]]
EVERYTHING = {*COMMANDS, *OPTIONS, *FLAGS, *SWITCHES, "--settings"}

# Does what bash does when somebody presses the key: the words, parted at `=` too, and which of them is typed now.
PRESS = """\
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_mcp_memory 2>/dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], Path]:
    def script(shell: str) -> Path:
        assert main(["completion", shell]) == 0
        file = tmp_path / f"completion.{shell}"
        file.write_text(capsys.readouterr().out, encoding="utf-8", newline="\n")
        return file

    return script


@pytest.fixture
def bash(script: Callable[[str], Path], tmp_path: Path) -> Complete:
    """What bash offers after these words, of which the last is being typed."""
    file = script("bash")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "my memory.db").touch()
    (tmp_path / "files" / "models").mkdir()

    def complete(*words: str) -> list[str]:
        run = ["bash", "--norc", "-c", PRESS, "bash", str(file), "mcp-memory", *words]
        done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path / "files", timeout=60, check=True)
        return [line for line in done.stdout.splitlines() if line]

    return complete


def test_bash_offers_commands_options_and_what_they_take(bash: Complete) -> None:
    assert set(bash("")) == set(COMMANDS)
    assert bash("ini") == ["init"]
    assert set(bash("init", "")) == set(CLIENTS)
    assert bash("init", "cu") == ["cursor"]
    assert bash("init", "cursor", "") == []
    assert bash("init", "cursor", "--sc") == ["--scope"]
    assert bash("init", "--scope", "") == ["user", "project"]
    assert bash("init", "--scope", "project", "cl") == ["claude-code", "claude-desktop"]
    assert bash("model", "") == ["list", "which", "download", "verify"]
    assert bash("token", "c") == ["create"]
    assert bash("completion", "b") == ["bash"]


def test_bash_knows_that_options_may_come_first_and_have_values(bash: Complete) -> None:
    assert bash("--profile", "") == ["full", "core", "official"]
    assert bash("--profile", "=", "co") == ["core"]
    assert bash("--profile", "=") == ["full", "core", "official"]
    assert bash("--profile", "core", "do") == ["doctor"]
    assert bash("--profile", "=", "core", "do") == ["doctor"]
    assert bash("-f", "init", "do") == ["doctor"]
    assert bash("--bind", "") == []
    assert "forget" in bash("--tools", "fo")


def test_bash_offers_an_option_only_to_the_command_that_has_it(bash: Complete) -> None:
    assert set(bash("doctor", "--re")) == {"--require-model", "--read-only", "--repair"}
    assert "--repair" not in bash("stats", "--re")
    assert "--undo" in bash("init", "--")


def test_bash_completes_files_with_spaces_and_folders_where_folders_are_meant(bash: Complete) -> None:
    assert bash("-f", "my") == ["my memory.db"]
    assert bash("--memory-file", "=", "my") == ["my memory.db"]
    assert sorted(bash("import", "m")) == ["models", "my memory.db"]
    assert bash("--roots", "m") == ["models"]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_script_knows_every_word_and_invents_none(script: Callable[[str], Path], shell: str) -> None:
    said = script(shell).read_text(encoding="utf-8")
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", said))
    if shell == "fish":
        flags = {f"--{name}" for name in re.findall(r" -l ([a-z-]+)", said)}

    long = {word for word in EVERYTHING if word.startswith("--")}
    assert long <= flags
    assert flags - long <= {"--option", "--norc"}
    assert all(re.search(rf"(?<![\w-]){name}(?![\w-])", said) for name in (*COMMANDS, *CLIENTS))


def test_the_shells_that_are_here_understand_their_scripts(script: Callable[[str], Path], tmp_path: Path) -> None:
    checked = [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)]
    for shell in checked:
        done = subprocess.run(
            [shell, "-n", str(script(shell))], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), shell
    if shutil.which("pwsh"):
        parse = f"[scriptblock]::Create((Get-Content -Raw '{script('powershell')}')) | Out-Null"
        subprocess.run(["pwsh", "-NoProfile", "-Command", parse], timeout=120, check=True)

    assert "bash" in checked or os.name == "nt"


def test_fish_offers_the_same_where_there_is_fish(script: Callable[[str], Path], tmp_path: Path) -> None:
    file = script("fish")

    def fish(typed: str) -> set[str]:
        ask = f"source '{file}'; complete -C'mcp-memory {typed}'"
        env = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
        done = subprocess.run(
            ["fish", "--no-config", "-c", ask], capture_output=True, text=True, env=env, timeout=60, check=True
        )
        return {line.split("\t")[0] for line in done.stdout.splitlines()}

    if shutil.which("fish"):
        assert fish("") == set(COMMANDS)
        assert fish("init ") == set(CLIENTS)
        assert fish("init cursor --scope ") == {"user", "project"}
        assert fish("--profile ") == {"full", "core", "official"}
        assert "--repair" in fish("doctor --re") and "--repair" not in fish("stats --re")
    assert f"-a '{' '.join(CLIENTS)}'" in file.read_text(encoding="utf-8")


def test_a_shell_that_is_not_known_is_told_which_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "nushell"]) == 2
    assert "The shells are bash, zsh, fish, powershell." in capsys.readouterr().err
