"""A disk that takes its time makes everything slower, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_memory.torture.weather import Weather
from tests.crash.power import STORES, memory

SLOW = 0.02  # the longest that a touch of the disk takes, in seconds


@pytest.mark.parametrize("durability", ["normal", "sync"])
@pytest.mark.parametrize("store", STORES)
def test_on_a_slow_disk_processes_refuse_nothing_and_lose_nothing(store: str, durability: str, tmp_path: Path) -> None:
    with memory(tmp_path, store, durability) as tortured:
        servers = [tortured.start(), tortured.start()]
        tortured.ask(servers[0], "before")
        tortured.promises.collect()
        Weather(slow=SLOW).write(tortured.place.weather)
        for number in range(5):
            for who, server in enumerate(servers):
                tortured.ask(server, f"{who} {number}", 1900)
        tortured.promises.collect()
        assert len(tortured.promises.acknowledged) == 11
        for server in servers:
            server.kill()

        assert tortured.lost() == []
