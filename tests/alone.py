"""Tests that measure how long others wait must not measure the tests beside them: they run alone.

Where pytest-xdist runs several processes, a test marked `alone` begins when no other test is running, and
none begins until it has ended. Two locks on files: everybody comes in through the turnstile, so that one
who waits for the floor is not overtaken for ever. What is waited here is not the test's time."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

if sys.platform == "win32":

    @contextmanager
    def floor(folder: Path, alone: bool) -> Iterator[None]:
        """Windows has no lock that some share and one has to himself: there nobody waits."""
        yield

else:
    import fcntl

    @contextmanager
    def floor(folder: Path, alone: bool) -> Iterator[None]:
        """The floor, for oneself or beside others who share it; closing a file lets go of its lock."""
        with open(folder / "floor.lock", "ab") as held:
            with open(folder / "turnstile.lock", "ab") as turnstile:
                fcntl.flock(turnstile, fcntl.LOCK_EX)
                fcntl.flock(held, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    folder = item.config.rootpath / ".cache"
    folder.mkdir(exist_ok=True)
    with floor(folder, alone=item.get_closest_marker("alone") is not None):
        return (yield)
