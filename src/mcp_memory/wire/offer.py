"""What a client is offered: who we are, which tools and resources, in the words of its revision.

Shared by every session. Answers that never change are encoded once for each revision."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

from mcp_memory.wire.callers import ALL
from mcp_memory.wire.eras import HANDSHAKE_ERAS, OFFICIAL_ERAS, STATELESS_VERSIONS, Era
from mcp_memory.wire.jsonrpc import INVALID_PARAMS, Fault, encode
from mcp_memory.wire.news import LISTS, Watcher

if TYPE_CHECKING:
    from mcp_memory.desk import Desk
    from mcp_memory.tools.registry import Tool
    from mcp_memory.wire.asking import Dialogue
    from mcp_memory.wire.prompts import Prompt
    from mcp_memory.wire.resources import Resources
    from mcp_memory.wire.retries import Retries
    from mcp_memory.wire.sealing import Sealer
    from mcp_memory.wire.session import Session

MOST_INSTRUCTIONS = 600  # characters: every conversation pays for them
# How long a client may keep what stays the same while we run; and what may change at any moment.
KEEP_MS, CHANGES_MS = 3_600_000, 0
# Of a list in one answer. Some clients never ask for a second page, so the tools must fit on the first.
PAGE = 200
CURSOR = "from-"
CONFIRM_ABOVE = 50
SKILLS = "io.modelcontextprotocol/skills"
REQUEST_KEY = "mcp-memory/requestKey"  # docs/clients/writing.md


Instructions = Callable[[int], str] | str | None


class Offer:
    """A desk and the name over it. The desk may be a function: then it is set up when first needed."""

    def __init__(
        self,
        desk: Desk | Callable[[], Desk],
        server_info: Mapping[str, Any],
        instructions: Instructions = None,
        *,
        official: bool = False,
        confirm_above: int = CONFIRM_ABOVE,
        output_schemas: bool = False,
        page: int = PAGE,
    ) -> None:
        """`instructions`: what is said of all this, or a function of how many of the scopes somebody has.
        `confirm_above`: a call that takes away more facts than these asks the user first; 0 asks never.
        `output_schemas`: say with each tool what it answers."""
        longest = instructions(ALL) if callable(instructions) else instructions or ""
        if len(longest) > MOST_INSTRUCTIONS:
            raise ValueError(f"instructions: {len(longest)} > {MOST_INSTRUCTIONS} characters")
        self._desk = desk
        self.server_info = dict(server_info)
        self.instructions = instructions
        self.official = official
        self.eras = OFFICIAL_ERAS if official else HANDSHAKE_ERAS
        self.confirm_above = confirm_above
        self._output_schemas = output_schemas
        self.writes = 0  # counted up with each write, ours or others'
        self.list_changes = dict.fromkeys(LISTS, 0)
        self._page = page
        self._lock = threading.Lock()
        self._watcher: Watcher | None = None
        self._marks: tuple[int, dict[Any, Any]] = (0, {})  # after so many writes
        # Every stateless result says what it is and who speaks; the others simply end.
        self.said_at_the_end = {
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/serverInfo": self.server_info},
        }
        self.stateless_end = b"," + encode(self.said_at_the_end)[1:]
        self._encoded: dict[tuple[str, str, int], bytes] = {}
        # Told whose call has written, in whichever thread it has; None: another process, or a list has changed.
        self.listeners: list[Callable[[Session | None], None]] = []

    @property
    def desk(self) -> Desk:
        if callable(self._desk):
            self._desk = self._desk()
        return self._desk

    # ── made when first needed ───────────────────────────────────────────────────────────────────

    @cached_property
    def resources(self) -> Resources:
        from mcp_memory.wire.resources import MemoryResources, Resources

        return Resources() if self.official else MemoryResources()

    @cached_property
    def prompts(self) -> dict[str, Prompt]:
        from mcp_memory.wire.prompts import memory_prompts

        return {} if self.official else memory_prompts()

    def seen(self, level: int = ALL) -> dict[str, Tool]:
        """The tools that somebody with so many of the scopes is shown."""
        tools = self.desk.tools
        return tools if level >= ALL else {name: tool for name, tool in tools.items() if tool.level <= level}

    def offered_prompts(self, level: int = ALL) -> dict[str, Prompt]:
        """The prompts that can be followed with the tools that are shown."""
        tools = self.seen(level)
        return {name: prompt for name, prompt in self.prompts.items() if prompt.fits(tools)}

    @cached_property
    def sealer(self) -> Sealer:
        from mcp_memory.wire.sealing import Sealer

        return Sealer()

    @cached_property
    def retries(self) -> Retries:
        from mcp_memory.wire.retries import Retries

        return Retries()

    # ── news ─────────────────────────────────────────────────────────────────────────────────────

    def wrote(self, session: Session | None) -> None:
        """Somebody has written, another process if it is None."""
        with self._lock:
            self.writes += 1
        self._tell(session)

    def change_lists(self, *names: str) -> None:
        """These lists are not what they were."""
        with self._lock:
            self._encoded = {}
            for name in names:
                self.list_changes[name] += 1
        self._tell(None)

    def reoffer(self, tools: dict[str, Tool], instructions: Instructions) -> bool:
        """Offer these tools from now on, and say this of them; were they others before?"""
        is_new = list(self.desk.tools) != list(tools)
        if is_new:
            prompts = list(self.offered_prompts())
            self.desk.tools, self.instructions = tools, instructions
            # The skill, a resource, speaks of the tools that there are.
            changed = ("tools", "resources", "prompts")
            self.change_lists(*(changed if list(self.offered_prompts()) != prompts else changed[:2]))
        return is_new

    def _tell(self, session: Session | None) -> None:
        for tell in self.listeners:
            tell(session)

    def watch(self) -> None:
        """From now on notice what other processes write."""
        with self._lock:
            if self._watcher is None:
                self._watcher = Watcher(self.desk.space.look_around, lambda: self.wrote(None))
        self._watcher.begin()

    def end(self) -> None:
        if self._watcher is not None:
            self._watcher.end()

    def mark_of(self, place: Any, at_once: bool = False) -> Any:
        """What differs when the resource at this place does: looked up once after each write, for all who follow it."""
        writes, marks = self._marks
        if writes != self.writes:
            writes, marks = self._marks = (self.writes, {})
        if place not in marks:
            marks[place] = self.resources.mark(place, self.desk.space, at_once)
        return marks[place]

    def most_lost(self, tool: Tool, dialogue: Dialogue) -> float:
        """How many facts this call may take away without asking. Who cannot ask is not stopped."""
        if not tool.destructive or not self.confirm_above or not dialogue.can_ask("elicitation/create"):
            return inf
        return self.confirm_above

    # ── results ──────────────────────────────────────────────────────────────────────────────────

    def result(self, era: Era, fields: dict[str, Any], keep_ms: int | None = None) -> bytes:
        """These fields as a result of this revision; `keep_ms` for the ones that may be cached."""
        if era.stateless:
            if keep_ms is not None:
                fields |= {"ttlMs": keep_ms, "cacheScope": "private"}
            fields |= self.said_at_the_end
        return encode(fields)

    def standing(self, method: str, era: Era, level: int = ALL) -> bytes:
        """The answer to a request that always gets the same one, from somebody with so many of the scopes."""
        key = (method, era.version, level)
        if key not in self._encoded:
            fields = STANDING[method](self, era, level)
            if method.endswith("/list"):
                (name, items), *_ = fields.items()
                fields = self._paged(name, items)
            self._encoded[key] = self.result(era, fields, KEEP_MS)
        return self._encoded[key]

    def page(self, method: str, era: Era, cursor: Any, level: int = ALL) -> bytes:
        """A list, from where the cursor says."""
        if cursor is None:
            return self.standing(method, era, level)
        start = _start_of(cursor)
        made = STANDING[method](self, era, level)
        (name, items), *_ = made.items()
        if start is None or start % self._page or start >= len(items):
            raise Fault(INVALID_PARAMS, "Invalid params: this cursor is none of ours; begin without one")
        return self.result(era, self._paged(name, items, start), KEEP_MS)

    def _paged(self, name: str, items: list[Any], start: int = 0) -> dict[str, Any]:
        end = start + self._page
        return {name: items[start:end], **({"nextCursor": f"{CURSOR}{end}"} if end < len(items) else {})}

    def _hello(self, era: Era, level: int) -> dict[str, Any]:
        return {
            "protocolVersion": era.version,
            "capabilities": self._capabilities(era),
            "serverInfo": era.known("server", self.server_info),
            **self._instructions(level),
        }

    def _discovered(self, era: Era, level: int) -> dict[str, Any]:
        return {
            "supportedVersions": STATELESS_VERSIONS,
            "capabilities": self._capabilities(era),
            **self._instructions(level),
        }

    def _capabilities(self, era: Era) -> dict[str, Any]:
        if self.official:
            return {"tools": {"listChanged": True}, "resources": {"listChanged": True, "subscribe": True}}
        offered = {
            "tools": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "completions": {},
            "logging": {},
            "extensions": {SKILLS: {}, REQUEST_KEY: {}},
        }
        return era.known("capability", offered)

    def _instructions(self, level: int) -> dict[str, str]:
        told = self.instructions(level) if callable(self.instructions) else self.instructions
        return {} if told is None else {"instructions": told}

    def _tools(self, era: Era, level: int) -> dict[str, Any]:
        # A tool may be called by a second name; it is listed by its own.
        offered = [tool for name, tool in self.seen(level).items() if name == tool.name]
        return {"tools": [era.known("tool", described(tool, self._output_schemas)) for tool in offered]}

    def _resources(self, era: Era, level: int) -> dict[str, Any]:
        return {"resources": [era.known("resource", each) for each in self.resources.listed()]}

    def _templates(self, era: Era, level: int) -> dict[str, Any]:
        return {"resourceTemplates": [era.known("template", each) for each in self.resources.templates()]}

    def _prompts(self, era: Era, level: int) -> dict[str, Any]:
        return {
            "prompts": [
                era.known("prompt", _introduced(prompt, era)) for prompt in self.offered_prompts(level).values()
            ]
        }

    def _skills(self, era: Era, level: int) -> dict[str, Any]:
        from mcp_memory.wire.skills import skills

        return {"skills": skills(self.seen(level))}


STANDING: dict[str, Callable[[Offer, Era, int], dict[str, Any]]] = {
    "initialize": Offer._hello,
    "server/discover": Offer._discovered,
    "tools/list": Offer._tools,
    "resources/list": Offer._resources,
    "resources/templates/list": Offer._templates,
    "prompts/list": Offer._prompts,
    "skills/list": Offer._skills,
}


def _start_of(cursor: Any) -> int | None:
    number = cursor[len(CURSOR) :] if isinstance(cursor, str) and cursor.startswith(CURSOR) else ""
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else None


def _introduced(prompt: Prompt, era: Era) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": prompt.name, "title": prompt.title, "description": prompt.description}
    if prompt.arguments:
        shown["arguments"] = [
            {"name": each.name, "description": each.description, **({"required": True} if each.required else {})}
            for each in prompt.arguments
        ]
    return shown


def described(tool: Tool, with_answer: bool = False) -> dict[str, Any]:
    """A tool as `tools/list` shows it; one that has a `wire` method describes itself."""
    wire: Callable[[], dict[str, Any]] | None = getattr(tool, "wire", None)
    if wire is not None:
        return wire()
    shown = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": tool.annotations,
    }
    if with_answer:
        from mcp_memory.tools.answers import output_schema

        answer = output_schema(tool.name)
        return shown if answer is None else {**shown, "outputSchema": answer}
    return shown
