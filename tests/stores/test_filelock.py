"""The lock between processes."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import types
from pathlib import Path

import pytest

from mcp_memory.stores import filelock
from mcp_memory.stores.filelock import FileLock


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "lock")


def test_one_holds_it_and_others_do_not(path: str) -> None:
    one, other = FileLock(path), FileLock(path)
    assert one.acquire(0)
    assert not other.acquire(0.01)

    one.release()
    assert other.acquire(0)
    other.close()
    assert one.acquire(0)


def test_another_process_holds_it_until_it_dies(path: str) -> None:
    hold = (
        "import sys; from mcp_memory.stores.filelock import FileLock; lock = FileLock(sys.argv[1]);"
        "print(lock.acquire(5), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        mine = FileLock(path)
        assert not mine.acquire(0.01)
        other.kill()
        assert mine.acquire(5)


def test_a_lock_file_that_was_removed_is_made_again(path: str) -> None:
    one = FileLock(path)
    assert one.acquire(0)
    one.release()
    if os.name != "nt":  # there a file in use cannot be removed
        os.unlink(path)
    other = FileLock(path)
    assert other.acquire(0)

    assert not one.acquire(0.01)
    other.release()
    assert one.acquire(0)


def test_the_file_stays_when_it_is_closed(path: str) -> None:
    lock = FileLock(path)
    lock.acquire(0)
    lock.close()

    assert os.path.exists(path)


def test_on_windows_it_asks_msvcrt_for_the_first_byte(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held: set[int] = set()

    def locking(file: int, mode: int, count: int) -> None:
        assert (os.lseek(file, 0, os.SEEK_CUR), count) == (0, 1)
        if mode == 0:
            held.clear()
        elif held:
            raise PermissionError(13, "Permission denied")
        else:
            held.add(file)

    monkeypatch.setattr(sys, "platform", "win32")
    fake = types.SimpleNamespace(locking=locking, LK_NBLCK=2, LK_UNLCK=0)
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    lock_of_windows = runpy.run_path(filelock.__file__)["FileLock"]
    one, other = lock_of_windows(path), lock_of_windows(path)

    assert one.acquire(0)
    assert not other.acquire(0)
    one.release()
    assert other.acquire(0)
    other.close()
    one.close()
