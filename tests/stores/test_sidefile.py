"""What stands beside a file that is no database: usage and vectors, in a small database of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mcp_memory.stores.sqlite.sidefile import SideFile

DIES_WRITING = """
import os, signal, sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("pragma cache_size = 1")
connection.execute("begin immediate")
for number in range(2000):
    connection.execute("insert into entities (name) values (?)", (f"half written {number} " + "x" * 500,))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="nothing there dies of SIGKILL")
def test_what_a_killed_process_had_half_written_is_taken_back_by_the_next_who_reads(tmp_path: Path) -> None:
    side = SideFile(str(tmp_path / "memory.jsonl-usage"))
    with side.writing() as connection:
        side.bring(connection, ["Ada"])
    died = subprocess.run([sys.executable, "-c", DIES_WRITING, side.path], check=False)
    assert died.returncode != 0
    assert (tmp_path / "memory.jsonl-usage-journal").stat().st_size > 0

    with side.reading() as found:
        assert found is not None
        assert found.execute("select name from entities").fetchall() == [("Ada",)]
