"""The same tools in a FastMCP server, for those who want its OAuth proxies, middleware or composition:

    from fastmcp import FastMCP
    from mcp_memory.fastmcp import memory_server

    app = FastMCP("team")
    app.mount(memory_server("memory.db"), namespace="memory")
    app.run(transport="http")

Needs the extra `fastmcp` of this package; nothing else in it imports this. The law: names, schemas, answers and
refusals are the desk's. Who may do what is FastMCP's business: our tokens and scopes are not asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from math import inf
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import msgspec
from fastmcp import Context, FastMCP
from fastmcp.server.dependencies import get_access_token, get_context
from fastmcp.tools import Tool, ToolResult
from mcp_types import TextContent, ToolAnnotations
from pydantic import PrivateAttr

from mcp_memory.advice import instructions
from mcp_memory.assembly import desk_for
from mcp_memory.errand import Errand
from mcp_memory.losses import Unconfirmed
from mcp_memory.settings import Settings

if TYPE_CHECKING:
    from mcp_memory.desk import Answer, Desk
    from mcp_memory.tools.registry import Tool as OurTool

DECLINED = "Nothing was changed: the user did not agree to take away {losses}."


class MemoryTool(Tool):
    """One of our tools, as FastMCP knows tools."""

    _desk: Desk = PrivateAttr()
    _tool: OurTool = PrivateAttr()
    _confirm_above: int = PrivateAttr()

    @classmethod
    def of(cls, desk: Desk, name: str, confirm_above: int = 0) -> MemoryTool:
        tool = desk.tools[name]
        made = cls(
            name=name,
            title=tool.title,
            description=tool.description,
            parameters=tool.schema,
            annotations=ToolAnnotations.model_validate(tool.annotations),
        )
        made._desk, made._tool, made._confirm_above = desk, tool, confirm_above
        return made

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """In a thread: a call may wait for a file, and the loop must not."""
        context = get_context()
        most = self._confirm_above if self._confirm_above and can_ask(context) else inf
        try:
            answer = await self._call(arguments, context, most)
        except Unconfirmed as stakes:
            question = f"{self.name} would take away {stakes.losses}. Go on?"
            said = await context.elicit(question, bool)
            if said.action != "accept" or not said.data:
                return refused(DECLINED.format(losses=stakes.losses))
            answer = await self._call(arguments, context, stakes.losses.total)
        return result(answer)

    async def _call(self, arguments: dict[str, Any], context: Context, most: float) -> Answer:
        loop = asyncio.get_running_loop()

        def report(done: int, total: int | None, message: str) -> None:
            send(loop, context.report_progress(done, total, message))

        errand = Errand(report) if self._tool.is_errand else None
        given = msgspec.json.encode(arguments)
        try:
            return await asyncio.to_thread(
                self._desk.call, self._tool, given, origin_of(context), errand=errand, most_lost=most
            )
        except asyncio.CancelledError:
            if errand is not None:
                errand.cancel()
            raise


def send(loop: asyncio.AbstractEventLoop, said: Coroutine[Any, Any, None]) -> None:
    """From a call's thread, behind the call; a client that has gone needs no news."""
    with suppress(RuntimeError):
        asyncio.run_coroutine_threadsafe(said, loop)


def origin_of(context: Context) -> str:
    """Who it was, for the history: the client that a token names, else what the client calls itself."""
    token = get_access_token()
    told = getattr(context.session, "client_params", None)
    return token.client_id if token is not None else told.client_info.name if told is not None else "fastmcp"


def can_ask(context: Context) -> bool:
    """Can this client show its user a question in the middle of a call? Only after a handshake, says FastMCP."""
    told = getattr(context.session, "client_params", None)
    return told is not None and told.capabilities.elicitation is not None and not context._is_modern_protocol()


def refused(text: str) -> ToolResult:
    return result_of(msgspec.json.encode({"error": text}).decode(), is_error=True)


def result(answer: Answer) -> ToolResult:
    """The desk's answer, text and object alike."""
    body = answer.structured
    text = answer.text if answer.text is not None else (body or b"").decode()
    return result_of(text, None if body is None else msgspec.json.decode(body), answer.is_error)


def result_of(text: str, structured: Any = None, is_error: bool = False) -> ToolResult:
    return ToolResult([TextContent(type="text", text=text)], structured, is_error=is_error)


def memory_server(memory_file: str | PathLike[str] | None = None, *, name: str = "memory", **choices: Any) -> FastMCP:
    """A FastMCP server with the tools of a memory. `choices` are settings by their names: profile="core",
    read_only=True, tools=("recall", "seek"); docs/settings.md has them all. The memory is closed with the server."""
    if memory_file is not None:
        choices["memory_file"] = fspath(memory_file)
    settings = msgspec.convert(choices, Settings)
    desk = desk_for(settings)

    @asynccontextmanager
    async def closing(server: FastMCP) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await asyncio.to_thread(desk.space.close)

    names = [each for each, tool in desk.tools.items() if each == tool.name]  # each once, by its own name
    tools = [MemoryTool.of(desk, each, settings.confirm_above) for each in names]
    is_official = settings.profile == "official"
    advice = None if is_official else instructions(settings.profile, settings.tools, settings.read_only)
    return FastMCP(name, advice, tools=tools, lifespan=closing)
