"""32 clients at a time, each reading and writing as fast as it can: no error, no lost write, no growing memory.

A few seconds in the suite; MCP_MEMORY_SOAK_SECONDS=30 makes it half a minute, and `-s` prints the figures."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.tools.dialects import plain_entity
from tests.conftest import person
from tests.wire.network import PATIENCE, SIGNALS, Server, call, real, running
from tests.wire.toy import META

CLIENTS = 32
SECONDS = float(os.environ.get("MCP_MEMORY_SOAK_SECONDS") or 2)
KEPT = 20  # entities that a client keeps; older ones it deletes, so that the memory's size stays
SHARES = (3, 2, 6, 2, 1)  # of writes of two kinds, and reads of three
# What a process may grow by while the memory it serves does not: caches, the allocator's moods.
MOST_GROWTH_MB = 24


class Talker:
    """A client on its own connection, and what it knows to be true."""

    def __init__(self, number: int, transport: str) -> None:
        self.number = number
        self.transport = transport
        self.random = random.Random(number)
        self.kept: deque[str] = deque()
        self.observed = 0
        self.count = 0
        self.times: list[float] = []

    async def talk(self, port: int, until: float) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        await self.call("create_entities", entities=[person(self.diary)])
        while time.monotonic() < until:
            act = self.random.choices((self.create, self.observe, self.read, self.search, self.survey), SHARES)[0]
            await act()
        self.writer.close()

    @property
    def diary(self) -> str:
        return f"diary of {self.number}"

    async def create(self) -> None:
        self.count += 1
        name = f"thing {self.number}.{self.count}"
        await self.call("create_entities", entities=[person(name, "is one of many")])
        self.kept.append(name)
        if len(self.kept) > KEPT:
            oldest = self.kept.popleft()
            await self.call("delete_entities", entityNames=[oldest])

    async def observe(self) -> None:
        if self.observed < 100:
            self.observed += 1
            observations = [{"entityName": self.diary, "contents": [f"note {self.observed}"]}]
            await self.call("add_observations", observations=observations)

    async def read(self) -> None:
        names = [self.diary, *list(self.kept)[-3:]]
        said = await self.call("open_nodes", names=names)
        found = said["structuredContent"]["entities"]
        assert [entity["name"] for entity in found] == names
        assert len(found[0]["observations"]) == self.observed

    async def search(self) -> None:
        said = await self.call("search_nodes", query=self.diary)
        assert self.diary in [entity["name"] for entity in said["structuredContent"]["entities"]]

    async def survey(self) -> None:
        await self.call("graph_stats")

    async def call(self, tool: str, **arguments: Any) -> Any:
        started = time.monotonic()
        message = await (self.over_tcp if self.transport == "tcp" else self.over_http)(tool, arguments)
        self.times.append(time.monotonic() - started)
        assert message["id"] == len(self.times), message
        assert "isError" not in message["result"], message
        return message["result"]

    async def over_tcp(self, tool: str, arguments: dict[str, Any]) -> Any:
        self.writer.write(call(len(self.times) + 1, tool, **arguments) + b"\n")
        return json.loads(await self.reader.readline())

    async def over_http(self, tool: str, arguments: dict[str, Any]) -> Any:
        params = {"name": tool, "arguments": arguments, "_meta": META}
        message = {"jsonrpc": "2.0", "id": len(self.times) + 1, "method": "tools/call", "params": params}
        body = json.dumps(message).encode()
        head = (
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        answer = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert answer.startswith("http/1.1 200 "), answer
        length = int(answer.partition("content-length: ")[2].partition("\r\n")[0])
        return json.loads(await self.reader.readexactly(length))


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
@pytest.mark.timeout(SECONDS * 3 + PATIENCE * 2)
def test_many_clients_read_and_write_at_once_and_nothing_is_lost(tmp_path: Path, transport: str, name: str) -> None:
    talkers = [Talker(number, transport) for number in range(CLIENTS)]
    with running(real(tmp_path / name, transport)) as server:
        early, late = asyncio.run(all_talk(talkers, server))
        if SIGNALS:
            assert server.end() == (0, "")
    times = sorted(seconds for talker in talkers for seconds in talker.times)
    space = open_space(tmp_path / name)
    graph = space.graph()
    kept = {entity.name: len(plain_entity(entity)["observations"]) for entity in graph.entities()}
    findings = [finding.text for finding in space.check()]
    space.close()

    print(
        f"\n{transport}, {name}: {len(times) / SECONDS:,.0f} calls/s, p50 {times[len(times) // 2] * 1e3:.2f} ms, "
        f"p99 {times[len(times) * 99 // 100] * 1e3:.2f} ms, {early:.1f} -> {late:.1f} MB"
    )
    assert findings == []
    assert kept == {
        **{name: 1 for talker in talkers for name in talker.kept},
        **{talker.diary: talker.observed for talker in talkers},
    }
    assert late - early < MOST_GROWTH_MB
