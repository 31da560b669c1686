"""The official Python client drives the real server over HTTP, in each of its three modes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceUpdatedNotification

from tests.wire.network import PATIENCE, SIGNALS, Server, real, running
from tests.wire.test_sdk_client import ADA, MODES, URI, Talk

TOKEN = "a-token-of-some-length"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(real(tmp_path / "memory.db", "http")) as server:
        yield server


def talk(server: Server, mode: str, conversation: Talk, token: str = "") -> None:
    """Hold a conversation; it gets the client and the list in which notifications arrive."""
    heard: list[Any] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    async def hold() -> None:
        url = f"http://127.0.0.1:{server.port}/mcp"
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with asyncio.timeout(PATIENCE), httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode, message_handler=hear) as client:
                await conversation(client, heard)

    asyncio.run(hold())


@pytest.mark.parametrize(("mode", "version"), MODES.items())
def test_it_agrees_on_the_newest_revision_of_its_mode(server: Server, mode: str, version: str) -> None:
    async def conversation(client: Client, heard: list[Any]) -> None:
        assert client.protocol_version == version

    talk(server, mode, conversation)


@pytest.mark.parametrize(
    ("profile", "mode"), [*(("full", mode) for mode in MODES), ("official", "auto"), ("official", "legacy")]
)
def test_it_lists_calls_and_reads(tmp_path: Path, profile: str, mode: str) -> None:
    async def conversation(client: Client, heard: list[Any]) -> None:
        tools = (await client.list_tools()).tools
        assert {"create_entities", "search_nodes", "open_nodes"} <= {tool.name for tool in tools}
        created = await client.call_tool("create_entities", {"entities": [ADA]})
        assert not created.is_error
        found = await client.call_tool("open_nodes", {"names": ["Ada"]})
        assert found.structured_content == {"entities": [ADA], "relations": []}
        refused = await client.call_tool("open_nodes", {"names": 5})
        assert refused.is_error and refused.structured_content is None
        assert (await client.list_resources()).resources[0].uri == URI
        read = (await client.read_resource(URI)).contents[0]
        assert json.loads(read.text)["entities"] == [ADA]  # type: ignore[union-attr]

    with running(real(tmp_path / "memory.db", "http", "--profile", profile)) as server:
        talk(server, mode, conversation)
        if SIGNALS:
            assert server.end() == (0, "")


@pytest.mark.parametrize("mode", MODES)
def test_it_is_told_of_an_unknown_tool_and_an_unknown_resource(server: Server, mode: str) -> None:
    async def conversation(client: Client, heard: list[Any]) -> None:
        with pytest.raises(MCPError, match="Unknown tool: nope"):
            await client.call_tool("nope", {})
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("memory://nope")

    talk(server, mode, conversation)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # that is what the mode is for
def test_after_a_handshake_it_hears_of_writes_it_subscribed_to(server: Server) -> None:
    async def conversation(client: Client, heard: list[Any]) -> None:
        await client.subscribe_resource(URI)
        await client.call_tool("create_entities", {"entities": [ADA]})
        while not heard:
            await asyncio.sleep(0.001)
        (update,) = heard
        assert isinstance(update, ResourceUpdatedNotification)
        assert str(update.params.uri) == URI

    talk(server, "legacy", conversation)


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
def test_without_a_handshake_it_hears_of_writes_on_its_stream(server: Server, mode: str) -> None:
    async def conversation(client: Client, heard: list[Any]) -> None:
        async with client.listen(resource_subscriptions=[URI]) as stream:
            await client.call_tool("create_entities", {"entities": [ADA]})
            event = await anext(aiter(stream))
            assert getattr(event, "uri", None) == URI

    talk(server, mode, conversation)


@pytest.mark.parametrize("mode", MODES)
def test_it_hears_of_progress_and_gets_its_answer(tmp_path: Path, mode: str) -> None:
    source = tmp_path / "official.jsonl"
    lines = [{"type": "entity", **ADA, "name": f"n{i}"} for i in range(300)]
    source.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    steps: list[float] = []

    async def count(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async def conversation(client: Client, heard: list[Any]) -> None:
        done = await client.call_tool("migrate", {"source_path": str(source)}, progress_callback=count)
        assert done.structured_content is not None
        assert done.structured_content["entities_imported"] == 300
        assert steps and steps == sorted(steps)

    with running(real(tmp_path / "memory.db", "http", "--roots", str(tmp_path))) as server:
        talk(server, mode, conversation)


@pytest.mark.parametrize("mode", MODES)
def test_it_shows_the_token(tmp_path: Path, mode: str) -> None:
    async def conversation(client: Client, heard: list[Any]) -> None:
        assert (await client.list_tools()).tools

    with running(real(tmp_path / "memory.db", "http", "--auth-token", TOKEN)) as server:
        talk(server, mode, conversation, TOKEN)
        with pytest.raises(BaseExceptionGroup):
            talk(server, mode, conversation, "wrong")
