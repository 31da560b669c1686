"""The check-up tells what is wrong with a database, and nothing else."""

from __future__ import annotations

from pathlib import Path

from mcp_memory.assembly import open_space
from tests.conftest import Caller


def test_what_another_process_wrote_since_the_last_check_up_is_not_wrong(keep: Caller, database: Path) -> None:
    assert keep.space.check() == []
    other = open_space(database)
    Caller(other)("create_entities", entities=[{"name": "Ada"}])
    other.close()

    assert [finding.text for finding in keep.space.check()] == []
