"""A conversation with a real server, printed for a person: `mcp-memory demo`.

Two server processes, one after the other, on one temporary file; the client is forty lines and knows
JSON and pipes. Everything printed was really said, without the envelope around it; the times are the
client's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from typing import Any

from mcp_memory import __version__
from mcp_memory.settings import PREFIX

WIDTH = 100
MOST_LINES = 9
PROTOCOL = "2025-11-25"

ENTITIES = [
    {"name": "Ada", "entityType": "Person", "observations": ["Leads the Atlas project", "Drinks tea, never coffee"]},
    {"name": "Grace", "entityType": "Person", "observations": ["Writes the compiler"]},
    {"name": "Atlas", "entityType": "Project", "observations": ["Ships in March", "Written in Python"]},
]
RELATIONS = [
    {"from": "Ada", "to": "Atlas", "relationType": "leads"},
    {"from": "Grace", "to": "Atlas", "relationType": "works_on"},
]


class Unexpected(Exception):
    """The server did not do what this demonstration is about."""


class Client:
    """The least that can speak MCP: one request line out, one answer line in."""

    def __init__(self, memory_file: str, settings_file: str) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith((PREFIX, "MEMORY_FILE_PATH"))}
        self.server = subprocess.Popen(
            [sys.executable, "-m", "mcp_memory", "--memory-file", memory_file, "--settings", settings_file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env=environment,
        )
        self.asked = 0

    def ask(self, method: str, **params: Any) -> Any:
        self.asked += 1
        self._send({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})
        assert self.server.stdout is not None
        line = self.server.stdout.readline()
        if not line:
            raise Unexpected(f"the server ended with exit code {self.server.wait()}; what it said stands above")
        answer = json.loads(line)
        if "result" not in answer:
            raise Unexpected(f"{method} was refused: {line}")
        return answer["result"]

    def tell(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def hang_up(self) -> int:
        assert self.server.stdin is not None
        self.server.stdin.close()
        return self.server.wait(timeout=30)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        with self.server:
            if self.server.poll() is None:
                self.server.kill()

    def _send(self, message: dict[str, Any]) -> None:
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps(message, ensure_ascii=False) + "\n")
        self.server.stdin.flush()


def demo() -> int:
    """Store facts, relate them, find them, and find them again after a restart."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    with tempfile.TemporaryDirectory(prefix="mcp-memory-demo-") as folder:
        memory_file, settings_file = os.path.join(folder, "memory.db"), os.path.join(folder, "settings.toml")
        with open(settings_file, "wb"):
            pass  # empty, so that the demonstration does not depend on anybody's settings
        print(f"mcp-memory {__version__}: a client and a real server, talking over standard input and output.")
        try:
            for session in (_first_session, _second_session):
                with Client(memory_file, settings_file) as client:
                    session(client)
        except Unexpected as surprise:
            print(f"\nThis is not what should happen: {surprise}", file=sys.stderr)
            return 1
    print("\nThat is all: facts in, facts out, and nothing is forgotten in between. `mcp-memory --help` has the rest.")
    return 0


def _first_session(client: Client) -> None:
    _open(client, "Start a server on an empty file")
    started = time.perf_counter()
    names = [tool["name"] for tool in client.ask("tools/list")["tools"]]
    _say("What can it do?", "tools/list", {}, names, started)
    _call(client, "Store three things worth knowing", "create_entities", entities=ENTITIES)
    _call(client, "Say how they belong together", "create_relations", relations=RELATIONS)
    _call(
        client,
        "Learn something new about one of them",
        "add_observations",
        observations=[{"entityName": "Grace", "contents": ["Moves to Lisbon in May"]}],
    )
    found = _call(client, "Who was it that moves to Lisbon?", "search_nodes", query="lisbon")
    _expect([entity["name"] for entity in found["entities"]] == ["Grace"], "Grace was not found")
    _close(client)


def _second_session(client: Client) -> None:
    _open(client, "Start another server, tomorrow, on the same file")
    found = _call(client, "What is known about Atlas, and who has to do with it?", "open_nodes", names=["Atlas"])
    _expect(len(found["relations"]) == len(RELATIONS), "the relations were forgotten")
    _close(client)


def _open(client: Client, why: str) -> None:
    started = time.perf_counter()
    hello = client.ask(
        "initialize",
        protocolVersion=PROTOCOL,
        capabilities={},
        clientInfo={"name": "mcp-memory-demo", "version": __version__},
    )
    shown = {key: hello[key] for key in ("protocolVersion", "serverInfo")}
    _say(why, "initialize", {"protocolVersion": PROTOCOL}, shown, started)
    client.tell("notifications/initialized")


def _call(client: Client, why: str, tool: str, **arguments: Any) -> Any:
    started = time.perf_counter()
    result = client.ask("tools/call", name=tool, arguments=arguments)
    said = result.get("structuredContent", result["content"])
    _say(why, tool, arguments, said, started)
    _expect(not result.get("isError"), f"{tool} answered with an error")
    return said


def _close(client: Client) -> None:
    started = time.perf_counter()
    code = client.hang_up()
    print(f"\n# Hang up\n  the server ended with exit code {code}  ({_milliseconds(started)})")
    _expect(code == 0, "the exit code should be 0")


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Unexpected(otherwise)


def _say(why: str, what: str, arguments: Any, answer: Any, started: float) -> None:
    took = _milliseconds(started)
    print(f"\n# {why}")
    _wrapped("  -> ", f"{what} {_json(arguments)}")
    _wrapped("  <- ", _json(answer))
    print(f"     {took}")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _wrapped(sign: str, text: str) -> None:
    lines = textwrap.wrap(text, WIDTH, initial_indent=sign, subsequent_indent=" " * len(sign))
    for line in lines[:MOST_LINES]:
        print(line)
    if len(lines) > MOST_LINES:
        print(f"{' ' * len(sign)}... and {len(lines) - MOST_LINES} lines more")


def _milliseconds(started: float) -> str:
    return f"{(time.perf_counter() - started) * 1000:.1f} ms"
