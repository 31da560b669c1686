"""The official Python client drives the real server over stdio, in each of its three modes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceUpdatedNotification

URI = "memory://knowledge-graph"
MODES = {"auto": "2026-07-28", "legacy": "2025-11-25", "2026-07-28": "2026-07-28"}
PROFILES = ["full", "official"]
PATIENCE = 60
ADA = {"name": "Ada", "entityType": "Person", "observations": ["leads \u2028 Atlas", 'says "hi"']}

Talk = Callable[[Client, list[Any]], Awaitable[None]]


def parameters(folder: Path, profile: str = "full") -> StdioServerParameters:
    settings = Path(__file__).parent.parent / "peers" / "settings.toml"
    arguments = ["-m", "mcp_memory", "--memory-file", str(folder / "memory.db"), "--profile", profile]
    return StdioServerParameters(command=sys.executable, args=[*arguments, "--settings", str(settings)])


def talk(folder: Path, mode: str, conversation: Talk, profile: str = "full") -> None:
    """Hold a conversation; it gets the client and the list in which notifications arrive."""
    heard: list[Any] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    async def hold() -> None:
        async with asyncio.timeout(PATIENCE):
            async with Client(parameters(folder, profile), mode=mode, message_handler=hear) as client:
                await conversation(client, heard)

    asyncio.run(hold())


@pytest.mark.parametrize(("mode", "version"), MODES.items())
def test_it_agrees_on_the_newest_revision_of_its_mode(tmp_path: Path, mode: str, version: str) -> None:
    async def conversation(client: Client, heard: list[Any]) -> None:
        assert client.protocol_version == version
        assert client.server_info is None or client.server_info.name == "memory"
        if mode != "2026-07-28":  # pinned, it asks nobody
            assert client.server_capabilities.resources is not None
            assert client.instructions

    talk(tmp_path, mode, conversation)


# The official profile, like that server, knows only revisions with a handshake.
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
        assert json.loads(found.content[0].text) == found.structured_content  # type: ignore[union-attr]
        refused = await client.call_tool("open_nodes", {"names": 5})
        assert refused.is_error and refused.structured_content is None
        resources = [r.uri for r in (await client.list_resources()).resources]
        assert resources[0] == URI
        templates = (await client.list_resource_templates()).resource_templates
        if profile == "official":
            assert (resources, templates) == ([URI], [])
        read = (await client.read_resource(URI)).contents[0]
        assert json.loads(read.text)["entities"] == [ADA]  # type: ignore[union-attr]

    talk(tmp_path, mode, conversation, profile)


@pytest.mark.parametrize("mode", MODES)
def test_it_is_told_of_an_unknown_tool_and_an_unknown_resource(tmp_path: Path, mode: str) -> None:
    async def conversation(client: Client, heard: list[Any]) -> None:
        with pytest.raises(MCPError, match="Unknown tool: nope"):
            await client.call_tool("nope", {})
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("memory://nope")

    talk(tmp_path, mode, conversation)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # that is what the mode is for
@pytest.mark.parametrize("profile", PROFILES)
def test_after_a_handshake_it_hears_of_writes_it_subscribed_to(tmp_path: Path, profile: str) -> None:
    async def conversation(client: Client, heard: list[Any]) -> None:
        await client.call_tool("create_entities", {"entities": [ADA]})
        assert heard == []
        await client.subscribe_resource(URI)
        await client.call_tool("delete_entities", {"entityNames": ["Ada"]})
        while not heard:
            await asyncio.sleep(0.001)
        (update,) = heard
        assert isinstance(update, ResourceUpdatedNotification)
        assert str(update.params.uri) == URI
        await client.unsubscribe_resource(URI)
        await client.call_tool("create_entities", {"entities": [ADA]})
        assert len(heard) == 1

    talk(tmp_path, "legacy", conversation, profile)


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
def test_without_a_handshake_it_hears_of_writes_on_its_stream(tmp_path: Path, mode: str) -> None:
    async def conversation(client: Client, heard: list[Any]) -> None:
        async with client.listen(resource_subscriptions=[URI]) as stream:
            await client.call_tool("create_entities", {"entities": [ADA]})
            event = await anext(aiter(stream))
            assert getattr(event, "uri", None) == URI

    talk(tmp_path, mode, conversation)


def test_what_one_conversation_keeps_the_next_one_finds(tmp_path: Path) -> None:
    async def keep(client: Client, heard: list[Any]) -> None:
        await client.call_tool("create_entities", {"entities": [ADA]})

    async def find(client: Client, heard: list[Any]) -> None:
        found = await client.call_tool("search_nodes", {"query": "atlas"})
        assert found.structured_content is not None
        assert [entity["name"] for entity in found.structured_content["entities"]] == ["Ada"]

    talk(tmp_path, "legacy", keep)
    talk(tmp_path, "auto", find)
