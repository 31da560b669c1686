"""What a client is offered: who we are, which tools and resources, in the words of its revision.

Shared by every session. Answers that never change are encoded once for each revision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mcp_memory.wire import resources
from mcp_memory.wire.eras import HANDSHAKE_ERAS, OFFICIAL_ERAS, STATELESS_VERSIONS, Era
from mcp_memory.wire.jsonrpc import encode

if TYPE_CHECKING:
    from mcp_memory.desk import Desk
    from mcp_memory.tools.registry import Tool
    from mcp_memory.wire.session import Session

MOST_INSTRUCTIONS = 600  # characters: every conversation pays for them
# How long a client may keep what stays the same while we run; and what may change at any moment.
KEEP_MS, CHANGES_MS = 3_600_000, 0


class Offer:
    """A desk and the name over it. The desk may be a function: then it is set up when first needed."""

    def __init__(
        self,
        desk: Desk | Callable[[], Desk],
        server_info: Mapping[str, Any],
        instructions: str | None = None,
        *,
        official: bool = False,
    ) -> None:
        if instructions is not None and len(instructions) > MOST_INSTRUCTIONS:
            raise ValueError(f"instructions: {len(instructions)} > {MOST_INSTRUCTIONS} characters")
        self._desk = desk
        self.server_info = dict(server_info)
        self.instructions = instructions
        self.official = official
        self.eras = OFFICIAL_ERAS if official else HANDSHAKE_ERAS
        # Every stateless result says what it is and who speaks; the others simply end.
        self._said_at_the_end = {
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/serverInfo": self.server_info},
        }
        self.stateless_end = b"," + encode(self._said_at_the_end)[1:]
        self._encoded: dict[tuple[str, str], bytes] = {}
        # Told whose call has written, in whichever thread it has.
        self.listeners: list[Callable[[Session], None]] = []

    @property
    def desk(self) -> Desk:
        if callable(self._desk):
            self._desk = self._desk()
        return self._desk

    def result(self, era: Era, fields: dict[str, Any], keep_ms: int | None = None) -> bytes:
        """These fields as a result of this revision; `keep_ms` for the ones that may be cached."""
        if era.stateless:
            if keep_ms is not None:
                fields |= {"ttlMs": keep_ms, "cacheScope": "private"}
            fields |= self._said_at_the_end
        return encode(fields)

    def standing(self, method: str, era: Era) -> bytes:
        """The answer to a request that always gets the same one."""
        key = (method, era.version)
        if key not in self._encoded:
            self._encoded[key] = self.result(era, STANDING[method](self, era), KEEP_MS)
        return self._encoded[key]

    def _hello(self, era: Era) -> dict[str, Any]:
        return {
            "protocolVersion": era.version,
            "capabilities": self._capabilities(),
            "serverInfo": era.known("server", self.server_info),
            **self._instructions(),
        }

    def _discovered(self, era: Era) -> dict[str, Any]:
        return {"supportedVersions": STATELESS_VERSIONS, "capabilities": self._capabilities(), **self._instructions()}

    def _capabilities(self) -> dict[str, Any]:
        if self.official:
            return {"tools": {"listChanged": True}, "resources": {"listChanged": True, "subscribe": True}}
        return {"tools": {}, "resources": {"subscribe": True}}

    def _instructions(self) -> dict[str, str]:
        return {} if self.instructions is None else {"instructions": self.instructions}

    def _tools(self, era: Era) -> dict[str, Any]:
        # A tool may be called by a second name; it is listed by its own.
        offered = [tool for name, tool in self.desk.tools.items() if name == tool.name]
        return {"tools": [era.known("tool", described(tool)) for tool in offered]}

    def _resources(self, era: Era) -> dict[str, Any]:
        return {"resources": [era.known("resource", resources.listed())]}

    def _templates(self, era: Era) -> dict[str, Any]:
        return {"resourceTemplates": []}


STANDING: dict[str, Callable[[Offer, Era], dict[str, Any]]] = {
    "initialize": Offer._hello,
    "server/discover": Offer._discovered,
    "tools/list": Offer._tools,
    "resources/list": Offer._resources,
    "resources/templates/list": Offer._templates,
}


def described(tool: Tool) -> dict[str, Any]:
    """A tool as `tools/list` shows it; one that has a `wire` method describes itself."""
    wire: Callable[[], dict[str, Any]] | None = getattr(tool, "wire", None)
    if wire is not None:
        return wire()
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": tool.annotations,
    }
