"""Clients that read and write as fast as they can, check every answer, and know what must be left in the end.

The law: a talker writes only what is its own, so whatever the others do, its answers are known beforehand."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import deque
from pathlib import Path
from typing import Any

from mcp_memory.assembly import open_space
from mcp_memory.tools.dialects import plain_entity
from tests.conftest import person
from tests.wire.network import call
from tests.wire.toy import META

KEPT = 20  # entities that a client keeps; older ones it deletes, so that the memory's size stays
SHARES = (3, 2, 6, 2, 1)  # of writes of two kinds, and reads of three


class Talker:
    """A client on its own connection, and what it knows to be true; `who` tells it from those of other servers."""

    def __init__(self, number: int, transport: str, who: str = "") -> None:
        self.who = f"{who}{number}"
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
        return f"diary of {self.who}"

    async def create(self) -> None:
        self.count += 1
        name = f"thing {self.who}.{self.count}"
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


class Outcome:
    """What clients saw, beside what a fresh open of the file finds."""

    def __init__(self, talkers: list[Talker], file: Path) -> None:
        self.times = sorted(seconds for talker in talkers for seconds in talker.times)
        self.expected = {name: 1 for talker in talkers for name in talker.kept}
        self.expected |= {talker.diary: talker.observed for talker in talkers}
        space = open_space(file)
        graph = space.graph()
        self.kept = {entity.name: len(plain_entity(entity)["observations"]) for entity in graph.entities()}
        self.findings = [finding.text for finding in space.check()]
        space.close()

    def told(self, seconds: float) -> str:
        times = self.times
        return (
            f"{len(times) / seconds:7,.0f} calls/s   p50 {times[len(times) // 2] * 1e3:7.2f} ms   "
            f"p99 {times[len(times) * 99 // 100] * 1e3:7.2f} ms   most {times[-1] * 1e3:7.2f} ms"
        )
