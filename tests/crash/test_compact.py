"""Compacting a memory while others write to it and processes are killed: nothing acknowledged is lost."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.stores.store import HEALED
from tests.conftest import STORES
from tests.crash.harness import Gone, Refused, Server

ROUNDS = 3
SECONDS = 60.0


class Writers:
    """Two servers that write without pause and one that compacts, until all are killed."""

    def __init__(self, path: Path, turn: int) -> None:
        options = ("--model", "none", "--history-calls", "20")
        self.servers = [Server(path, *options) for _ in range(3)]
        self.acknowledged: set[str] = set()
        self.compacted = 0
        tasks = [(self._write, f"{turn} 0", 0), (self._write, f"{turn} 1", 1), (self._compact, "", 2)]
        self._threads = [threading.Thread(target=task, args=(name, self.servers[who])) for task, name, who in tasks]
        for thread in self._threads:
            thread.start()

    def _write(self, name: str, server: Server) -> None:
        number = 0
        with suppress(Gone):
            while True:
                number += 1
                with suppress(Refused):
                    server.call("create_entities", entities=[{"name": f"{name} {number}", "observations": ["seen"]}])
                    self.acknowledged.add(f"{name} {number}")

    def _compact(self, _: str, server: Server) -> None:
        with suppress(Gone):
            while True:
                with suppress(Refused):
                    server.call("compact")
                    self.compacted += 1

    def wait_until_all_work(self) -> None:
        deadline = time.monotonic() + SECONDS
        while len({one.split()[1] for one in self.acknowledged.copy()}) < 2 or not self.compacted:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def kill(self, chance: random.Random) -> None:
        for server in chance.sample(self.servers, 3):
            server.process.kill()
            time.sleep(chance.random() * 0.05)
        for thread in self._threads:
            thread.join()
        for server in self.servers:
            server.kill()


@pytest.mark.parametrize("name", STORES)
def test_compacting_among_writers_that_are_killed_loses_nothing(name: str, tmp_path: Path) -> None:
    path, chance = tmp_path / name, random.Random(7)
    promised: set[str] = set()
    compacted = 0
    for turn in range(ROUNDS):
        writers = Writers(path, turn)
        writers.wait_until_all_work()
        time.sleep(chance.random() * 0.5)
        writers.kill(chance)
        promised |= writers.acknowledged
        compacted += writers.compacted

        space = open_space(path)
        there = {one.name for one in space.graph().entities()}
        assert promised - there == set()
        # What a process that was killed while it compacted has left beside a journal goes at the next write.
        assert [finding.text for finding in space.check() if finding.remedy != HEALED] == []
        space.close()

    assert len(promised) > 2 * ROUNDS and compacted >= ROUNDS
