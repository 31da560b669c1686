"""One memory whose power can be cut: servers of ours that remember what they flushed, and what is left after it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcp_memory.torture.client import Server
from mcp_memory.torture.deeds import Census, Deed, entity
from mcp_memory.torture.promises import Kept, Promises, Verdict
from mcp_memory.torture.siege import cut
from mcp_memory.torture.targets import Ours, Place

STORES = ("sqlite", "journal", "jsonl")


class Memory:
    """A memory of this kind in this folder. It ends with what nobody may find: `survivors` and `lost`."""

    def __init__(self, folder: Path, store: str, durability: str) -> None:
        self.target = Ours(store, durability)
        self.place = Place(str(folder / "place"), self.target.file)
        self.place.begin_platter()
        self.promises = Promises()
        self.made: list[Deed] = []
        self.servers: list[Server] = []

    def start(self) -> Server:
        server = self.target.start(self.place, len(self.servers))
        self.servers.append(server)
        return server

    def ask(self, server: Server, name: str, size: int = 10) -> None:
        deed = entity(name, "x" * size)
        self.made.append(deed)
        self.promises.ask(server, deed)

    def cut_the_power(self, chance: random.Random) -> float:
        """Now. The answer is when that was."""
        for server in self.servers:
            server.process.kill()
        at = time.monotonic()
        for server in self.servers:
            server.kill()
        self.servers.clear()
        self.promises.collect()
        cut(self.place, chance)
        return at

    def census(self) -> Census:
        """What a fresh open finds, in which the doctor finds nothing to complain about."""
        look = self.target.look(self.place)
        assert look.trouble == ""
        assert look.findings == []
        assert look.census is not None
        return look.census

    def verdict(self) -> tuple[Verdict, Census]:
        census = self.census()
        verdict = self.promises.verdict(census)
        assert verdict.twice == []
        return verdict, census

    def lost(self) -> list[Kept]:
        return self.verdict()[0].lost


@contextmanager
def memory(folder: Path, store: str, durability: str) -> Iterator[Memory]:
    one = Memory(folder, store, durability)
    try:
        yield one
    finally:
        for server in one.servers:
            server.kill()
