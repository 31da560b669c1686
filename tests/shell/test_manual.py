"""The manual page: valid, whole, and where `man` looks."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mcp_memory.commands import COMMANDS, OPTIONS
from mcp_memory.server import main
from mcp_memory.settings import FIELDS

PAGE = Path(__file__).parent.parent.parent / "docs" / "mcp-memory.1"
REQUESTS = {"TH", "SH", "TP", "PP", "RS", "RE", "B", "nf", "fi"}


@pytest.fixture
def page(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["man"]) == 0
    return capsys.readouterr().out


def test_the_page_tells_about_every_command_option_and_setting(page: str) -> None:
    said = page.replace("\\-", "-")

    assert said == PAGE.read_text(encoding="utf-8").replace("\\-", "-")
    assert all(re.search(rf"^\\fB{name}\b", said, re.MULTILINE) for name in COMMANDS)
    assert all(f"\\fB{flag}\\fR" in said for flag in OPTIONS)
    assert all(f"\\fB{field.flag}\\fR" in said and field.env in said for field in FIELDS.values())


def test_the_page_uses_only_what_every_man_understands(page: str) -> None:
    assert page.isascii()
    assert {match[1] for match in re.finditer(r"^\.([A-Za-z]+)", page, re.MULTILINE)} == REQUESTS
    assert page.count("\n.RS\n") == page.count("\n.RE\n") and page.count("\n.nf\n") == page.count("\n.fi\n")
    assert not re.search(r"\\(?![-e&f\[\"])", page)


def test_groff_has_nothing_to_complain_about(page: str) -> None:
    """Where there is groff. The layout of the page is checked above wherever there is none."""
    if shutil.which("groff"):
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stderr == ""
    assert page.startswith('.\\" ')
