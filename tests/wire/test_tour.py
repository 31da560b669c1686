"""The official clients take the whole tour: every tool, resource, template, prompt and completion that the server
lists, over standard streams and over HTTP, through the official Python client in each of its modes and through the
command line of the Inspector (which leaves completions to its sister `mcpdo`)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import PromptReference, ResourceTemplateReference, methods

from mcp_memory.assembly import open_space
from mcp_memory.tools.catalog import catalog
from mcp_memory.wire.prompts import memory_prompts
from mcp_memory.wire.resources import TEMPLATES
from tests.conftest import Caller
from tests.peers import Peer, npm_folder, script
from tests.tour import COMPLETED, PROMPT_ARGUMENTS, filled, stops, variables
from tests.wire.network import HELLO, SETTINGS, real, running
from tests.wire.test_sdk_client import MODES
from tests.wire.toy import META

PATIENCE = 120
INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js"
MCPDO = "clients/mcpdo/build/mcp-bin.js"
TRANSPORTS = ["stdio", "http"]


def test_the_tour_stops_at_every_tool(tmp_path: Path) -> None:
    assert {name for name, _ in stops(tmp_path)} == set(catalog("full"))


# ── the official Python client ───────────────────────────────────────────────────────────────────


def command(folder: Path) -> list[str]:
    """The server as a child process."""
    file, settings = str(folder / "memory.db"), str(SETTINGS)
    return [sys.executable, "-m", "mcp_memory", "-f", file, "--roots", str(folder), "--settings", settings]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_official_client_drives_everything(tmp_path: Path, transport: str, mode: str) -> None:
    async def take(target: Any) -> None:
        async with asyncio.timeout(PATIENCE), Client(target, mode=mode) as client:
            await drive(client, tmp_path)

    if transport == "stdio":
        # Here with what tools answer: the client holds every answer against it.
        program, *arguments = [*command(tmp_path), "--output-schemas"]
        asyncio.run(take(StdioServerParameters(command=program, args=arguments)))
    else:
        with running(real(tmp_path / "memory.db", "http", "--roots", str(tmp_path))) as server:
            asyncio.run(take(streamable_http_client(f"http://127.0.0.1:{server.port}/mcp")))


@pytest.mark.parametrize(("version", "meta"), [("2025-06-18", {}), ("2025-11-25", {}), ("2026-07-28", META)])
def test_every_answer_of_a_tool_is_one_that_the_protocol_knows(
    tmp_path: Path, version: str, meta: dict[str, Any]
) -> None:
    with Peer(command(tmp_path), patience=PATIENCE * 2) as peer:
        if not meta:
            peer.request("initialize", {**HELLO, "protocolVersion": version})
        listed = peer.request("tools/list", {"_meta": meta})
        methods.validate_server_result("tools/list", version, listed)
        assert {tool["name"] for tool in listed["tools"]} == {name for name, _ in stops(tmp_path)}
        for name, arguments in stops(tmp_path):
            said = peer.request("tools/call", {"name": name, "arguments": arguments, "_meta": meta})
            assert not said.get("isError") and said["structuredContent"], name
            methods.validate_server_result("tools/call", version, said)


async def drive(client: Client, folder: Path) -> None:
    tour = stops(folder)
    listed = {tool.name for tool in (await client.list_tools()).tools}
    assert {name for name, _ in tour} == listed
    for name, arguments in tour:
        answer = await client.call_tool(name, arguments)
        assert not answer.is_error, (name, answer)
        assert answer.structured_content, name
    templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
    resources = [each.uri for each in (await client.list_resources()).resources]
    assert len(templates) >= 3 and len(resources) >= 4
    for uri in [*resources, *map(filled, templates)]:
        (contents,) = (await client.read_resource(uri)).contents
        assert contents.text, uri  # type: ignore[union-attr]
    prompts = (await client.list_prompts()).prompts
    assert len(prompts) >= 3
    for prompt in prompts:
        asked = [argument.name for argument in prompt.arguments or ()]
        shown = await client.get_prompt(prompt.name, {name: PROMPT_ARGUMENTS[name] for name in asked})
        assert shown.messages[0].content.text, prompt.name  # type: ignore[union-attr]
        await complete(client, PromptReference(name=prompt.name), asked)
    for template in templates:
        await complete(client, ResourceTemplateReference(uri=template), variables(template))


async def complete(client: Client, ref: PromptReference | ResourceTemplateReference, names: list[str]) -> None:
    for name in names:
        begun = COMPLETED.get(name, "x")[0]
        values = (await client.complete(ref, {"name": name, "value": begun})).completion.values
        assert values == [] if name not in COMPLETED else COMPLETED[name] in values, (ref, name, values)


# ── the Inspector ────────────────────────────────────────────────────────────────────────────────


class Inspector:
    """Its command line, always at the same server."""

    def __init__(self, peer: Peer, target: list[str], *options: str) -> None:
        self.peer, self.target, self.options = peer, target, options

    def run(self, method: str, *arguments: str) -> Any:
        """The result of one command, which must succeed."""
        shape = ["--format", "json", "--method", method]
        self.peer.send(json.dumps([*self.options, *shape, *arguments, *self.target]).encode())
        ended = self.peer.receive()
        assert ended["code"] == 0, (method, arguments, ended)
        printed = json.loads(ended["printed"])
        return printed.get("result", printed) if isinstance(printed, dict) else printed


@pytest.fixture(params=TRANSPORTS)
def inspector(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Inspector]:
    """A process for all commands: starting Node for each of the hundred would take a minute."""
    driver = str(Path(__file__).parent.parent / "peers" / "inspector.mjs")
    program = [script("", "")[0], driver, str(npm_folder() / INSPECTOR)]
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "MCP_INSPECTOR_SECRET_STORE": "memory"}
    with ExitStack() as stack:
        peer = stack.enter_context(Peer(program, home, patience=PATIENCE * 2))
        if request.param == "stdio":
            # A process for each command: without a model, as loading one fifty times shows nothing more.
            yield Inspector(peer, ["--", *command(tmp_path), "--model", "none"], "--protocol-era", "legacy")
        else:
            server = stack.enter_context(running(real(tmp_path / "memory.db", "http", "--roots", str(tmp_path))))
            url = f"http://127.0.0.1:{server.port}/mcp"
            yield Inspector(peer, ["--server-url", url, "--transport", "http"], "--protocol-era", "modern")


def test_the_inspector_drives_everything(inspector: Inspector, tmp_path: Path) -> None:
    tour = stops(tmp_path)
    listed = {tool["name"] for tool in inspector.run("tools/list", "--strict")["tools"]}
    assert {name for name, _ in tour} == listed
    last = None
    for name, arguments in tour:
        # Each command is another client, if it starts its server.
        told = {"call": last} if name == "undo" else arguments
        answer = inspector.run("tools/call", "--tool-name", name, "--tool-args-json", json.dumps(told))
        if name == "delete_entities":
            shown = inspector.run(
                "tools/call", "--tool-name", "history", "--tool-args-json", '{"tool":"delete_entities"}'
            )
            last = shown["structuredContent"]["calls"][0]["call"]
        assert not answer.get("isError") and answer["structuredContent"], (name, answer)
    templates = [each["uriTemplate"] for each in inspector.run("resources/templates/list")["resourceTemplates"]]
    for uri in [each["uri"] for each in inspector.run("resources/list")["resources"]] + list(map(filled, templates)):
        (contents,) = inspector.run("resources/read", "--uri", uri)["contents"]
        assert contents["text"], uri
    for prompt in inspector.run("prompts/list")["prompts"]:
        asked = [argument["name"] for argument in prompt["arguments"]]
        given = [f"{name}={PROMPT_ARGUMENTS[name]}" for name in asked]
        shown = inspector.run("prompts/get", "--prompt-name", prompt["name"], "--prompt-args", *given)
        assert shown["messages"][0]["content"]["text"], prompt["name"]


class Connected:
    """`mcpdo`: a daemon of its own that holds one connection, and a process for each command."""

    def __init__(self, folder: str, *target: str) -> None:
        places = {"HOME": folder, "USERPROFILE": folder, "MCP_INSPECTOR_DAEMON_DIR": folder}
        secrets = {"MCP_INSPECTOR_DAEMON_TOKEN": "of this test only", "MCP_INSPECTOR_SECRET_STORE": "memory"}
        self.environment = {**os.environ, **places, **secrets}
        self.name = self.run("connect", *target)["name"]

    def run(self, *words: str) -> Any:
        command = [*script("@modelcontextprotocol/inspector", MCPDO), "--format", "json", *words]
        done = subprocess.run(
            command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return json.loads(done.stdout) if done.stdout.startswith(b"{") else None

    def complete(self, kind: str, ref: str, names: list[str]) -> None:
        for name in names:
            asked = ["--complete-ref-type", f"ref/{kind}", "--complete-ref", ref, "--complete-arg-name", name]
            begun = ["--complete-arg-value", COMPLETED.get(name, "x")[0]]
            values = self.run("--connection", self.name, "prompts/complete", *asked, *begun)["values"]
            assert values == [] if name not in COMPLETED else COMPLETED[name] in values, (ref, name, values)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_inspector_completes_everything(transport: str, tmp_path: Path) -> None:
    space = open_space(tmp_path / "memory.db")
    call = Caller(space)
    for name, arguments in stops(tmp_path)[:2]:
        call(name, **arguments)
    space.close()
    # The path of a socket must be short.
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tour", ignore_cleanup_errors=True))
        if transport == "stdio":
            target = ["--era", "legacy", "--", *command(tmp_path)]
        else:
            server = stack.enter_context(running(real(tmp_path / "memory.db", "http")))
            target = ["--era", "modern", f"http://127.0.0.1:{server.port}/mcp"]
        connected = Connected(folder, *target)
        stack.callback(connected.run, "daemon", "stop")
        for prompt in memory_prompts().values():
            connected.complete("prompt", prompt.name, [argument.name for argument in prompt.arguments])
        for template in TEMPLATES:
            connected.complete("resource", template["uriTemplate"], variables(template["uriTemplate"]))
