"""What docs/durability.md says is what tests show: every one that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mcp_memory.commands import COMMANDS, flag_of
from mcp_memory.torture.targets import FAULTS

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "durability.md").read_text(encoding="utf-8")


def names_in(file: str) -> set[str]:
    tree = ast.parse((CHECKOUT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_page_names_is_there() -> None:
    named = re.findall(r"(tests/[\w/]+\.py)::(\w+)", PAGE)

    assert len(named) > 20
    assert [f"{file}::{test}" for file, test in named if test not in names_in(file)] == []


def test_every_promise_in_a_table_names_its_test() -> None:
    tables = [table.splitlines() for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE) if "Shown by" in table]
    rows = [row for table in tables for row in table[2:]]

    assert len(rows) > 15
    assert [row for row in rows if "::test_" not in row] == []


def test_every_fault_and_every_option_of_the_page_is_one() -> None:
    told = PAGE.partition("## Torture")[2]
    options = {*map(flag_of, COMMANDS["torture"].options), "--durability"}

    assert set(re.findall(r"^\| `(\w+)` \|", told, re.MULTILINE)) == set(FAULTS)
    assert set(re.findall(r"--[a-z][a-z-]+", told)) <= options
