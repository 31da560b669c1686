"""The tools in a FastMCP server: names, schemas, answers and refusals are those of the desk."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError

from mcp_memory.advice import instructions
from mcp_memory.assembly import open_space
from mcp_memory.desk import Desk
from mcp_memory.facts import Limits
from mcp_memory.fastmcp import memory_server
from mcp_memory.tools.catalog import catalog
from tests.peers import ROOT
from tests.tour import FLEETING, stops, timeless

# The older of the two lets a server ask in the middle of a call.
HANDSHAKE = "legacy"
# What is flagged behind the replies may be flagged already, or not yet.
FLEETING |= {"flagged_observations_count", "flagged_observations", "flags_pending", "similarity_flag"}
PATIENCE = 120


def talk(server: FastMCP, conversation: Callable[[Client[Any]], Awaitable[None]], **options: Any) -> None:
    async def hold() -> None:
        async with asyncio.timeout(PATIENCE), Client(server, **options) as client:
            await conversation(client)

    asyncio.run(hold())


def test_every_tool_answers_as_the_desk_does(tmp_path: Path) -> None:
    tour = stops(tmp_path)
    # Without a model: a vector that was kept is rounded, and which are kept already is a matter of time.
    space = open_space(tmp_path / "desk.db", roots=(str(tmp_path),), flags=True, model="none")
    desk = Desk(space, catalog(), Limits())

    async def conversation(client: Client[Any]) -> None:
        listed = {tool.name: tool for tool in await client.list_tools()}
        assert list(listed) == list(desk.tools)
        for name, tool in desk.tools.items():
            shown = listed[name]
            assert shown.input_schema == tool.schema, name
            assert (shown.description, shown.title) == (tool.description, tool.title)
            assert shown.annotations is not None
            assert shown.annotations.model_dump(by_alias=True, exclude_none=True) == tool.annotations
        for name, arguments in tour:
            theirs = await client.call_tool(name, arguments, raise_on_error=False)
            # In the history they are to have one name.
            ours = desk.call(desk.tools[name], msgspec.json.encode(arguments), origin="mcp")
            assert ours.structured is not None and not theirs.is_error, (name, theirs)
            assert timeless(theirs.structured_content) == timeless(json.loads(ours.structured)), name
            text = theirs.content[0].text  # type: ignore[union-attr]
            if ours.text is not None:
                assert text == ours.text, name
            else:
                assert json.loads(text) == theirs.structured_content, name

    talk(memory_server(tmp_path / "theirs.db", roots=(str(tmp_path),), model="none"), conversation)
    assert {name for name, _ in tour} == set(desk.tools)
    space.close()


def test_a_refusal_is_told_in_the_words_of_the_desk(tmp_path: Path) -> None:
    async def conversation(client: Client[Any]) -> None:
        refused = await client.call_tool("get_entity", {"name": "Nobody"}, raise_on_error=False)
        assert refused.is_error and refused.structured_content is None
        assert "Nobody" in json.loads(refused.content[0].text)["error"]  # type: ignore[union-attr]
        with pytest.raises(ToolError, match="must be"):
            await client.call_tool("open_nodes", {"names": 5})

    talk(memory_server(tmp_path / "memory.db"), conversation)


def test_choices_are_the_settings_and_a_server_may_be_mounted_in_another(tmp_path: Path) -> None:
    async def conversation(client: Client[Any]) -> None:
        names = {tool.name for tool in await client.list_tools()}
        assert names == {f"memory_{name}" for name in catalog("core", read_only=True)}
        await client.call_tool("memory_read_graph", {})

    app = FastMCP("team")
    app.mount(memory_server(tmp_path / "memory.db", profile="core", read_only=True), namespace="memory")
    talk(app, conversation)


def test_it_says_who_we_are_and_goes_on_after_a_client_has_left(tmp_path: Path) -> None:
    server = memory_server(tmp_path / "memory.db")

    async def keep(client: Client[Any]) -> None:
        assert client.initialize_result is not None and client.initialize_result.instructions == instructions()
        await client.call_tool("create_entities", {"entities": [{"name": "Ada"}]})

    async def find(client: Client[Any]) -> None:
        found = await client.call_tool("search_nodes", {"query": "ada"})
        assert found.structured_content is not None and len(found.structured_content["entities"]) == 1
        told = await client.call_tool("history", {"name": "Ada"})
        assert told.structured_content is not None and told.structured_content["calls"][0]["by"] == "keeper"

    from mcp_types import Implementation

    talk(server, keep, mode=HANDSHAKE, client_info=Implementation(name="keeper", version="1"))
    talk(server, find, mode=HANDSHAKE)


@pytest.mark.parametrize("agrees", [True, False])
def test_a_user_who_can_be_asked_is_asked_before_much_is_taken_away(tmp_path: Path, agrees: bool) -> None:
    asked: list[str] = []

    async def answer(message: str, response_type: Any, params: Any, context: Any) -> Any:
        asked.append(message)
        return {"value": agrees}

    async def conversation(client: Client[Any]) -> None:
        await client.call_tool("create_entities", {"entities": [{"name": f"n{i}"} for i in range(6)]})
        gone = await client.call_tool(
            "delete_entities", {"entityNames": [f"n{i}" for i in range(6)]}, raise_on_error=False
        )
        left = await client.call_tool("graph_stats", {})
        assert gone.is_error is not agrees
        assert left.structured_content is not None and left.structured_content["entities"] == (0 if agrees else 6)

    server = memory_server(tmp_path / "memory.db", confirm_above=5)
    talk(server, conversation, mode=HANDSHAKE, elicitation_handler=answer)
    assert asked == ["delete_entities would take away 6 entities. Go on?"]


def test_a_long_call_tells_how_far_it_is(tmp_path: Path) -> None:
    source = tmp_path / "other.jsonl"
    lines = [json.dumps({"type": "entity", "name": f"n{i}", "entityType": "T", "observations": []}) for i in range(400)]
    source.write_text("\n".join(lines), encoding="utf-8")
    steps: list[float] = []

    async def count(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async def conversation(client: Client[Any]) -> None:
        done = await client.call_tool("migrate", {"source_path": str(source)}, progress_handler=count)
        assert done.structured_content is not None and done.structured_content["entities_imported"] == 400

    talk(memory_server(tmp_path / "memory.db", roots=(str(tmp_path),)), conversation)
    assert steps and steps == sorted(steps)


def test_the_adapter_is_small_and_loaded_only_when_asked_for() -> None:
    text = (ROOT / "src" / "mcp_memory" / "fastmcp.py").read_text(encoding="utf-8")
    code = "import mcp_memory.server, mcp_memory.cli, mcp_memory.assembly, mcp_memory.tools.catalog, sys; "
    loaded = subprocess.run(
        [sys.executable, "-c", code + "print('fastmcp' in sys.modules)"], capture_output=True, text=True, check=True
    )

    assert len(text.splitlines()) < 150
    assert loaded.stdout.strip() == "False"
