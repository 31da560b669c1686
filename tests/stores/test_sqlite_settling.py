"""Projections and checkpoints in quiet moments, several of which may come at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.stores.sqlite import store
from tests.conftest import Caller


def test_two_threads_may_settle_and_checkpoint_at_once(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHECKPOINT_BYTES", 0)
    space = open_space(database)
    call = Caller(space)
    written = threading.Event()

    def settle() -> int:
        rounds = 0
        while not written.is_set() or not rounds:
            space.store.settle()
            rounds += 1
        return rounds

    with ThreadPoolExecutor(3) as threads:
        settling = [threads.submit(settle) for _ in range(3)]
        for number in range(20):
            call(
                "create_entities", entities=[{"name": f"{number}.{i}", "observations": ["x" * 900]} for i in range(30)]
            )
        written.set()

    assert all(each.result() for each in settling)
    space.settle()
    assert space.check() == []
    space.close()
