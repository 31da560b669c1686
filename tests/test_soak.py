"""A short stretch of a long life; `bench/soak.py` lives all of it. Nothing grows that the memory does not need."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soaking import Soak


@pytest.mark.parametrize(("name", "calls"), [("memory.db", 3000), ("memory.jsonl", 1200), ("memory.mcpmem", 1200)])
def test_a_server_that_works_for_long_holds_no_more_than_at_first(name: str, calls: int, tmp_path: Path) -> None:
    soak = Soak(tmp_path / name)
    try:
        soak.run(calls // 3, samples=4)  # until every index is made and every thread runs
        first = soak.samples[-1]
        soak.samples.clear()
        soak.run(calls - calls // 3, samples=10)
        told, samples = soak.told(), soak.samples

        assert soak.complaints() == []
        assert told["done"] > told["refused"] * 2
        assert min(one.handles for one in samples[5:]) <= max(first.handles, *(one.handles for one in samples[:5]))
        assert max(one.threads for one in samples) <= first.threads + 1
        assert samples[-1].resident_mb < first.resident_mb + 40
        assert told["largest WAL MB"] < 64
        assert soak.end() == []
    finally:
        soak.kill()
