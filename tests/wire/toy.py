"""A space that lives in a list, a handful of tools, and a client that speaks in JSON: enough to try the wire on.

Run as a program it serves over stdio; its argument says how."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp_memory.changes import EntityCreated, Entry, Plan
from mcp_memory.desk import Desk, Said
from mcp_memory.errand import Errand
from mcp_memory.facts import BadInput, Limits
from mcp_memory.graph import Graph
from mcp_memory.space import Space
from mcp_memory.stores.store import Finding
from mcp_memory.tools.registry import Tool
from mcp_memory.wire import Offer, Session

SERVER = {"name": "toy", "title": "Toy", "version": "1.0", "description": "For tests"}
INSTRUCTIONS = "Remember names."
GATE_SECONDS = 20


class ListStore:
    """A store whose feed is a list: all that the wire needs of one."""

    quick = True

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        folder = tempfile.mkdtemp()  # for what is kept beside a store
        self.path = str(Path(folder, "toy"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @contextmanager
    def begin(self, wait: bool = True) -> Iterator[None]:
        yield

    def write(self, entries: list[Entry]) -> None:
        self.entries += entries

    def news_since(self, graph: Graph) -> list[Entry] | None:
        return self.entries[graph.seq :]

    def load(self) -> Graph:
        graph = Graph()
        graph.apply(self.entries)
        return graph

    def feed(self) -> Iterator[Entry]:
        return iter(self.entries)

    def settle(self, seconds: float | None = None) -> None:
        return

    def behind(self) -> int:
        return 0

    def check(self, repair: bool) -> list[Finding]:
        return []

    def rebuild(self) -> None:
        pass

    def compact(self, progress: Callable[[int, int], None] | None = None) -> None:
        return

    def close(self) -> None:
        return


# ── tools ────────────────────────────────────────────────────────────────────────────────────────


def remember(graph: Graph, name: str, note: str = "") -> Plan:
    """Keep a name."""
    if not name:
        raise BadInput("The name must have at least one character.")
    created = EntityCreated(graph.next_entity, name, "Name", first=graph.next_observation, texts=[note] if note else [])
    return Plan([created], answer={"remembered": name})


def names(graph: Graph) -> dict[str, list[str]]:
    """All names, in the order they came."""
    return {"names": [entity.name for entity in graph.entities()]}


def count(graph: Graph) -> list[int]:
    """A bare list, which not every revision can carry."""
    return [graph.entity_count]


def sing(graph: Graph) -> Said:
    """Answer with prose beside the object."""
    return Said("la la", {"notes": 2})


def toil(errand: Errand, name: str = "", steps: int = 3, gate: str = "") -> dict[str, int]:
    """Work for long: report each step, wait for the gate (a file, or `open_gate`), then keep the name."""
    TOILING.set()
    for step in range(1, steps + 1):
        errand.progress(step, steps, f"step {step}")
    deadline = time.monotonic() + GATE_SECONDS
    while gate and time.monotonic() < deadline and not (GATE.is_set() or Path(gate).exists()):
        time.sleep(0.002)
        errand.progress(steps, steps)
    errand.progress(steps, steps)
    if name:
        errand.commit(lambda graph: remember(graph, name))
    return {"steps": steps}


def shout(graph: Graph) -> dict[str, str]:
    """Print where nobody should."""
    print("stray output", flush=True)
    sys.stdout.write("more of it\n")
    return {"printed": "yes"}


def swell(graph: Graph, size: int) -> dict[str, str]:
    """Answer with this many characters."""
    return {"text": "ä" * size}


def route(graph: Graph, region: str = "", floor: int = 0, open: bool = False) -> dict[str, Any]:
    """Answer with arguments that headers say again."""
    return {"region": region, "floor": floor, "open": open}


GATE = threading.Event()
TOILING = threading.Event()
TOOLS = {function.__name__: Tool(function) for function in (remember, names, count, sing, toil, shout, swell)}
ROUTE = Tool(route, headers={"region": "Region", "floor": "Floor", "open": "Open"})
TOOLS["route"] = ROUTE


# ── a client ─────────────────────────────────────────────────────────────────────────────────────


class Client:
    """Sends dictionaries to a session and reads dictionaries back."""

    def __init__(
        self,
        *,
        official: bool = False,
        version: str | None = "2025-11-25",
        tools: dict[str, Tool] | None = None,
        capabilities: dict[str, Any] | None = None,
        space: Space | None = None,
        **more: Any,
    ) -> None:
        self.space = space or Space(ListStore())
        desk = Desk(self.space, tools or TOOLS, Limits())
        self.offer = Offer(desk, SERVER, None if official else INSTRUCTIONS, official=official, **more)
        self.session = Session(self.offer, "test")
        self.sent: list[Any] = []  # what came from a worker
        self.worker: threading.Thread | None = None
        self._last_id = 0
        if version is not None:
            self.result(
                "initialize",
                protocolVersion=version,
                capabilities=capabilities or {},
                clientInfo={"name": "t", "version": "1"},
            )

    def line(self, line: bytes | str) -> list[Any]:
        """Everything that a line is answered with."""
        said = self.session.receive(line.encode() if isinstance(line, str) else line)
        if self.session.errand_begun:
            self.session.errand_begun = False
            self.worker = threading.Thread(target=self.session.work, args=(self._keep,))
            self.worker.start()
        return [json.loads(one) for one in said]

    def _keep(self, lines: list[bytes]) -> None:
        self.sent += [json.loads(line) for line in lines]

    def send(self, method: str, ident: Any = None, **params: Any) -> list[Any]:
        self._last_id += 1
        ident = self._last_id if ident is None else ident
        return self.line(json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}))

    def notify(self, method: str, **params: Any) -> list[Any]:
        return self.line(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def result(self, method: str, **params: Any) -> Any:
        """The result of a request, whatever is said beside it."""
        (reply,) = (said for said in self.send(method, **params) if said.get("method") != "notifications/message")
        assert "result" in reply, reply
        return reply["result"]

    def error(self, method: str, **params: Any) -> Any:
        (reply,) = self.send(method, **params)
        assert "error" in reply, reply
        return reply["error"]

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.result("tools/call", name=tool, arguments=arguments)

    def names(self) -> list[str]:
        return [entity.name for entity in self.space.graph().entities()]

    def wait(self) -> list[Any]:
        """What the worker said, once it is done."""
        assert self.worker is not None
        self.worker.join(GATE_SECONDS)
        assert not self.worker.is_alive()
        return self.sent


META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "9"},
}


def serve() -> int:
    """This file as a server; its first argument is a file to leave behind when it has closed, the rest are settings."""
    from mcp_memory.settings import read

    left, *arguments = sys.argv[1:]
    settings = read(arguments).settings
    space = Space(ListStore())
    offer = Offer(lambda: Desk(space, TOOLS, Limits()), SERVER, INSTRUCTIONS)

    def close() -> None:
        Path(left).write_text(json.dumps(len(space.graph().by_id)), encoding="utf-8")

    if settings.transport != "stdio":
        from mcp_memory.wire.serving import listen

        return listen(offer, settings, close)
    from mcp_memory.wire.stdio import serve as serve_stdio

    return serve_stdio(Session(offer), close)


if __name__ == "__main__":
    sys.exit(serve())
