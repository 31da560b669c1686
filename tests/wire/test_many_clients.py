"""32 clients at a time, each reading and writing as fast as it can: no error, no lost write, no growing memory.

A few seconds in the suite; `bench/clients.py` goes on for half a minute and prints the figures."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.wire.network import PATIENCE, SIGNALS, Server, real, running
from tests.wire.talkers import Outcome, Talker

CLIENTS = 32
SECONDS = 2.0
# What a process may grow by while the memory it serves does not: caches, the allocator's moods.
MOST_GROWTH_MB = 24


async def all_talk(talkers: list[Talker], server: Server) -> list[float]:
    """Let them talk; the memory of the server when a third of the time was over, and at the end."""
    until = time.monotonic() + SECONDS
    async with asyncio.timeout(SECONDS + PATIENCE):
        talks = [asyncio.create_task(talker.talk(server.port, until)) for talker in talkers]
        await asyncio.sleep(SECONDS / 3)
        early = server.resident_mb()
        await asyncio.gather(*talks)
    return [early, server.resident_mb()]


@pytest.mark.parametrize("transport", ["tcp", "http"])
@pytest.mark.parametrize("name", ["memory.db", "memory.jsonl", "memory.mcpmem"])
def test_many_clients_read_and_write_at_once_and_nothing_is_lost(tmp_path: Path, transport: str, name: str) -> None:
    talkers = [Talker(number, transport) for number in range(CLIENTS)]
    with running(real(tmp_path / name, transport)) as server:
        early, late = asyncio.run(all_talk(talkers, server))
        if SIGNALS:
            assert server.end() == (0, "")
    outcome = Outcome(talkers, tmp_path / name)

    assert outcome.findings == []
    assert outcome.kept == outcome.expected
    assert late - early < MOST_GROWTH_MB


def test_clients_of_two_servers_share_one_file_and_nothing_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    talkers = [Talker(number, transport, transport) for transport in ("tcp", "http") for number in range(CLIENTS)]

    async def talk(ports: dict[str, int]) -> None:
        until = time.monotonic() + SECONDS
        async with asyncio.timeout(SECONDS + PATIENCE):
            await asyncio.gather(*(talker.talk(ports[talker.transport], until) for talker in talkers))

    with running(real(file, "tcp")) as tcp, running(real(file, "http")) as http:
        asyncio.run(talk({"tcp": tcp.port, "http": http.port}))
    outcome = Outcome(talkers, file)

    assert outcome.findings == []
    assert outcome.kept == outcome.expected
