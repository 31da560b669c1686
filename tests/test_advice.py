"""What a model is told about the memory: short, and never about a tool that it is not offered."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from mcp_memory.advice import RULES, instructions
from mcp_memory.tools.catalog import FAMILIES, catalog
from mcp_memory.wire.offer import MOST_INSTRUCTIONS

TOOL = re.compile(r"\b[a-z]+_[a-z]+\b")
# One family, two, or no choice at all.
CHOICES = [(), *combinations(FAMILIES, 1), *combinations(FAMILIES, 2)]


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("profile", ["full", "core"])
def test_the_instructions_name_only_tools_that_are_offered(profile: str, read_only: bool) -> None:
    for families in CHOICES:
        said = instructions(profile, families, read_only)
        assert set(TOOL.findall(said)) <= set(catalog(profile, families, read_only)), (families, said)
        assert len(said) <= MOST_INSTRUCTIONS


def test_they_tell_when_to_recall_when_to_save_and_what_to_do_with_the_past() -> None:
    said = instructions()

    assert set(TOOL.findall(said)) == {
        "search_semantic",
        "search_nodes",
        "open_nodes",
        "add_observations",
        "end_relation",
    }
    assert "supersedes" in said


def test_a_memory_that_is_only_read_is_not_told_to_save() -> None:
    said = instructions(read_only=True)

    assert "Recall" in said
    assert not re.search(r"\b(Save|supersedes|Delete)\b", said)


def test_the_rules_for_a_host_name_tools_that_exist() -> None:
    named = set(re.findall(r"`(\w+_\w+)`", RULES))

    assert named and named <= set(catalog())
    assert len(RULES) < 1_500


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--read-only"], instructions(read_only=True)),
        (["--profile", "core", "--tools", "seek,recall"], instructions("core", ("seek", "recall"))),
        (["--profile", "official"], None),
    ],
)
def test_a_server_says_what_fits_how_it_was_started(tmp_path: Path, options: list[str], said: str | None) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    server = [sys.executable, "-m", "mcp_memory", "-f", str(tmp_path / "memory.db"), *options]
    answer = subprocess.run(
        server, input=json.dumps(request).encode() + b"\n", capture_output=True, timeout=120, check=True
    ).stdout

    assert json.loads(answer)["result"].get("instructions") == said
