"""The pages about clients: their blocks are what `mcp-memory init` would write, and their files those it means."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_memory.advice import RULES
from mcp_memory.clients.table import CLIENTS, places
from mcp_memory.server import main

CHECKOUT = Path(__file__).parent.parent.parent
PAGES = CHECKOUT / "docs" / "clients"
COMMAND = "/path/to/mcp-memory"
SHORT = places({}, "~", ".", "linux")


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `init --print` shows somebody who has nothing yet, with the command where the pages have it."""
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    installed = tmp_path / "mcp-memory"
    installed.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(installed)])
    monkeypatch.setattr("mcp_memory.clients.launch.full_path", str)  # the pages' paths are nobody's

    def printed(*arguments: str) -> str:
        assert main(["init", *arguments, "--print"]) == 0
        return capsys.readouterr().out.replace(json.dumps(str(installed))[1:-1], COMMAND)

    return printed


def blocks_in(page: Path) -> set[str]:
    return {
        block.strip() for block in re.findall(r"^```\w+\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    }


def files_in(shown: str) -> list[str]:
    """What each of the new files would hold."""
    return [part.strip() for part in re.split(r"^.* \(a new file\)\n", shown, flags=re.MULTILINE)[1:]]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_page_shows_what_init_would_write(printed: Callable[..., str], client: str) -> None:
    with_file = ("-f", "/path/to/memory.db")
    configuration, *hook = files_in(printed(client, *with_file, *(["--hook"] if CLIENTS[client].hooks else [])))
    if client == "gemini":  # both are in one file, and the page shows them one after the other
        hook = [json.dumps({"hooks": json.loads(configuration)["hooks"]}, indent=2)]
        (configuration,) = files_in(printed(client, *with_file))

    assert {configuration, *hook} <= blocks_in(PAGES / f"{client}.md")


@pytest.mark.parametrize("client", ["claude-desktop", "cursor", "vscode", "opencode", "codex"])
def test_the_readme_shows_what_init_would_write(printed: Callable[..., str], client: str) -> None:
    assert set(files_in(printed(client))) <= blocks_in(CHECKOUT / "README.md")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_page_names_every_file_that_init_may_write(client: str) -> None:
    row, said = CLIENTS[client], (PAGES / f"{client}.md").read_text("utf-8").replace("\\", "/")
    paths = [path for scoped in (row.config, row.hooks) for paths in scoped.values() for path in paths]
    paths += [path for rules in row.rules.values() for path in rules.paths]

    for path in paths:
        last = path.format(**SHORT).removeprefix("./")
        assert last in said or Path(last).name in said, path
    assert f"mcp-memory init {client}\n" in said and f"mcp-memory init {client} --undo\n" in said
    assert ("--hook" in said) is bool(row.hooks)


def test_the_rules_are_shown_as_they_are_written() -> None:
    said = (PAGES / "rules.md").read_text("utf-8")

    assert RULES.strip() in blocks_in(PAGES / "rules.md")
    for row in CLIENTS.values():
        for rules in row.rules.values():
            assert f"`{rules.paths[-1].format(**SHORT).removeprefix('./')}`" in said


@pytest.mark.parametrize(
    "page", [*PAGES.parent.glob("*.md"), *PAGES.glob("*.md"), CHECKOUT / "README.md"], ids=lambda page: page.name
)
def test_no_page_has_anybody_install_a_name(page: Path) -> None:
    """The name on the index is nobody's until a release: docs/deployment.md says what becomes of PATH then."""
    by_name = r"(?:uv tool|uvx|pipx|pip3?)(?: install| run)? ['\"]?mcp-memory"

    assert not re.findall(by_name, page.read_text("utf-8"))


def test_every_client_has_a_page_and_every_page_is_listed() -> None:
    listed = (PAGES / "README.md").read_text("utf-8")

    assert {page.stem for page in PAGES.glob("*.md")} == {*CLIENTS, "README", "other", "rules", "writing"}
    assert all(f"({page.name})" in listed for page in PAGES.glob("*.md") if page.stem != "README")
