"""A file that can be made again is whole or as it was, and what dead processes left of one goes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mcp_memory.stores.derived import ABANDONED_SECONDS, whole


def test_it_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "memory.db-graph"
    path.write_bytes(b"before")
    with whole(str(path)) as file:
        file.write(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("trouble", [OSError, KeyboardInterrupt])
def test_what_goes_wrong_meanwhile_changes_nothing(trouble: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "memory.db-graph"
    path.write_bytes(b"before")
    with pytest.raises(trouble), whole(str(path)) as file:
        file.write(b"half")
        raise trouble
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == [path.name]


def test_what_somebody_left_half_written_goes_when_he_is_surely_dead(tmp_path: Path) -> None:
    path = tmp_path / "memory.db-graph"
    old, young, other = (tmp_path / name for name in (f"{path.name}.1.tmp", f"{path.name}.2.tmp", "memory.db.1.tmp"))
    for each in (old, young, other):
        each.write_bytes(b"half")
    long_ago = time.time() - ABANDONED_SECONDS - 1
    for each in (old, other):
        os.utime(each, (long_ago, long_ago))
    with whole(str(path)) as file:
        file.write(b"all")
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, young.name, other.name])
