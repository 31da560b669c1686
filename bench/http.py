"""A small read over keep-alive HTTP, beside a FastMCP 4 server in the same run: `.venv-dev/bin/python bench/http.py`.

Ours reads an entity of a memory with two thousand; theirs has one tool that answers a dictionary of the same
size from a table. Both speak the stateless revision and answer in JSON. The two take turns, round by round, so
that what else happens on the machine happens to both; p50 is the best round's, calls a second the best round's.
Both are measured when they have nothing to do behind their replies: ours embeds and compares two thousand entities
first. FastMCP is installed by pip into an environment of its own, in the folder that git ignores."""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

if __name__ == "http":
    # A neighbour of this file asked for the standard library's package of this name: it gets that.
    places = sys.path[:]
    sys.path[:] = [place for place in places if Path(place).resolve() != Path(__file__).resolve().parent]
    del sys.modules["http"]
    import http  # noqa: F401

    sys.path[:] = places

from stdio import until_idle

ROOT = Path(__file__).resolve().parent.parent
FASTMCP = "fastmcp==4.1.2"
ENTITIES, BATCH = 2_000, 50
ROUNDS, CALLS, SECONDS, CONNECTIONS = 5, 300, 1.0, 32
MOST_LATENCY, LEAST_CALLS = 1 / 8, 15.0
THEIRS = """
import sys
from fastmcp import FastMCP

facts = [f"fact {n} about number 7, long enough to be a sentence" for n in range(3)]
people = {f"person {i}": {"name": f"person {i}", "entityType": "Person", "observations": facts} for i in range(2000)}
mcp = FastMCP("peer")


@mcp.tool
async def get(name: str) -> dict:
    return people[name]


mcp.run(
    transport="http", host="127.0.0.1", port=int(sys.argv[1]), path="/mcp", stateless_http=True, json_response=True,
    show_banner=False, log_level="error", uvicorn_config={"access_log": False},
)
"""


# ── servers ──────────────────────────────────────────────────────────────────────────────────────


def peer_python() -> Path:
    """A Python that has FastMCP, installed at the first run."""
    folder = Path(os.environ.get("MCP_MEMORY_PEERS") or ROOT / ".cache" / "peers") / re.sub(r"\W+", "-", FASTMCP)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", FASTMCP], check=True)
        (folder / "ready").touch()
    return python


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


@contextmanager
def running(*command: str | Path, **environment: str) -> Iterator[int]:
    """A server; its process."""
    process = subprocess.Popen([*map(str, command)], env={**os.environ, **environment}, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(20)


def reachable(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nobody listens at {port}")


# ── the client ───────────────────────────────────────────────────────────────────────────────────


def request(tool: str, arguments: dict[str, Any]) -> bytes:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Talker:
    """One connection that is kept alive."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.coming = b""

    def is_answered(self) -> bool:
        """Take what has come; is an answer complete with it?"""
        self.coming += self.socket.recv(65_536)
        head, found, body = self.coming.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if not found or length is None or len(body) < int(length[1]):
            return False
        assert head.startswith(b"HTTP/1.1 200 "), self.coming
        assert b"person 7" in body or b'"result"' in body, body
        self.coming = b""
        return True

    def ask(self, data: bytes) -> float:
        started = time.perf_counter()
        self.socket.sendall(data)
        while not self.is_answered():
            pass
        return time.perf_counter() - started


def one_by_one(port: int, data: bytes) -> float:
    """The median wait on one connection, in microseconds."""
    talker = Talker(port)
    for _ in range(30):
        talker.ask(data)
    times = [talker.ask(data) for _ in range(CALLS)]
    talker.socket.close()
    return median(times) * 1e6


def at_once(port: int, data: bytes) -> float:
    """Calls a second over all connections, each asking again as soon as it is answered."""
    talkers = [Talker(port) for _ in range(CONNECTIONS)]
    with selectors.DefaultSelector() as selector:
        for talker in talkers:
            selector.register(talker.socket, selectors.EVENT_READ, talker)
            talker.socket.sendall(data)
        answered, started = 0, time.perf_counter()
        while time.perf_counter() - started < SECONDS:
            for key, _ in selector.select(1):
                if key.data.is_answered():
                    answered += 1
                    key.data.socket.sendall(data)
        seconds = time.perf_counter() - started
    for talker in talkers:
        talker.socket.close()
    return answered / seconds


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


def person(number: int) -> dict[str, Any]:
    facts = [f"fact {n} about number {number}, long enough to be a sentence" for n in range(3)]
    return {"name": f"person {number}", "entityType": "Person", "observations": facts}


def fill(port: int) -> None:
    talker = Talker(port)
    for start in range(0, ENTITIES, BATCH):
        people = [person(number) for number in range(start, start + BATCH)]
        talker.ask(request("create_entities", {"entities": people}))
    talker.socket.close()


def main() -> int:
    our_port, their_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        script, settings = Path(folder, "peer.py"), Path(folder, "settings.toml")
        script.write_text(THEIRS, encoding="utf-8")
        settings.write_text("", encoding="utf-8")
        ours = (sys.executable, "-m", "mcp_memory", "-f", Path(folder, "memory.db"), "--transport", "http")
        with (
            running(*ours, "--bind", f"127.0.0.1:{our_port}", "--settings", settings, *sys.argv[1:]) as our_process,
            running(peer_python(), script, str(their_port)),
        ):
            reachable(our_port)
            reachable(their_port)
            fill(our_port)
            until_idle(our_process)
            contenders = {
                "ours": (our_port, request("open_nodes", {"names": ["person 7"]})),
                FASTMCP: (their_port, request("get", {"name": "person 7"})),
            }
            waits: dict[str, list[float]] = {name: [] for name in contenders}
            rates: dict[str, list[float]] = {name: [] for name in contenders}
            for _ in range(ROUNDS):
                for name, (port, data) in contenders.items():
                    waits[name].append(one_by_one(port, data))
                    rates[name].append(at_once(port, data))
    print(f"{ROUNDS} rounds of {CALLS} calls on 1 connection and {SECONDS:g} s on {CONNECTIONS}; the best of each\n")
    print(f"{'':<16}{'p50, 1 connection':>20}{f'calls/s, {CONNECTIONS} connections':>28}")
    for name in contenders:
        print(f"{name:<16}{min(waits[name]):>17.0f} us{max(rates[name]):>28,.0f}")
    latency = min(waits["ours"]) / min(waits[FASTMCP])
    calls = max(rates["ours"]) / max(rates[FASTMCP])
    print(f"\nlatency 1/{1 / latency:.1f} (wanted: 1/{1 / MOST_LATENCY:.0f} or less), ", end="")
    print(f"calls {calls:.1f}x (wanted: {LEAST_CALLS:.0f}x or more)")
    return 0 if latency <= MOST_LATENCY and calls >= LEAST_CALLS else 1


if __name__ == "__main__":
    sys.exit(main())
