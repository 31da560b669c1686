"""What a client waits for, beside the official server in the same run: `.venv-dev/bin/python bench/stdio.py`.

A raw client over pipes, one call after the other. The null echo is a loop that answers each line with
itself: what pipes and Python cost before anything is done. Figures are medians; a busy machine makes
all of them worse, which is why the ratios are printed. Server time is what a call costs on the processor, in
all threads of the server, pipes included, twenty calls at a time, in the best of several rounds: waiting for
others is not in it. Everybody is measured when what the writes before left to do is done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.peers import node, npm_folder

ENTITIES = 2_000
BATCH = 50
CALLS = 400
ROUNDS = 10
STARTS = 15
AT_ONCE = 20
# A server is idle that for so many looks in a row has not used that share of a processor.
LOOK, IDLE, IDLE_LOOKS, PATIENCE = 0.5, 0.02, 8, 120.0
WIDE = 1 << 20
ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.buffer.flush()"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}

Call = Callable[[int], tuple[str, dict[str, Any]]]


class Server:
    """A program on the other end of two pipes."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
        )
        assert self.process.stdin and self.process.stdout
        self.write = self.process.stdin.write
        # A wide buffer: with Python's own of 8 kB reading a line of 25 MB takes longer than writing it.
        self.answers = open(self.process.stdout.fileno(), "rb", WIDE, closefd=False)  # noqa: SIM115  (closed by `end`)

    def ask(self, line: bytes) -> bytes:
        self.write(line)
        return self.answers.readline()

    def resident_mb(self) -> float | None:
        """Memory in use, where /proc tells it."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        except OSError:
            return None
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    def processor_us(self) -> float | None:
        return processor_us(self.process.pid)

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(30)
        self.answers.close()


def processor_us(process: int) -> float | None:
    """How long it has run so far, all threads together, where /proc tells it."""
    try:
        threads = Path(f"/proc/{process}/task").iterdir()
        return sum(int((one / "schedstat").read_text(encoding="ascii").split()[0]) for one in threads) / 1e3
    except OSError:
        return None


def until_idle(process: int) -> None:
    """What is done behind the replies to writes (vectors, comparing, tables) is over."""
    end, before = time.monotonic() + PATIENCE, processor_us(process)
    quiet = 0
    while time.monotonic() < end and quiet < IDLE_LOOKS:
        time.sleep(LOOK)
        after = processor_us(process)
        idle = before is not None and after is not None and after - before < LOOK * 1e6 * IDLE
        quiet, before = quiet + 1 if idle else 0, after


class Contender:
    """One way to start a memory server."""

    def __init__(self, name: str, command: list[str], file: str, environment: dict[str, str]) -> None:
        self.name = name
        self.command = command
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("MCP_MEMORY_", "PYTHON"))}
        self.environment = {**clean, **environment, "MEMORY_FILE_PATH": file}

    @contextmanager
    def running(self) -> Iterator[Server]:
        server = Server(self.command, self.environment)
        try:
            yield server
        finally:
            server.end()


def request(method: str, params: Any, ident: int = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode() + b"\n"


def person(number: int) -> dict[str, Any]:
    facts = [f"fact {n} about number {number}, long enough to be a sentence" for n in range(3)]
    return {"name": f"person {number}", "entityType": "Person", "observations": facts}


def open_nodes(number: int) -> tuple[str, dict[str, Any]]:
    return "open_nodes", {"names": [f"person {number * 37 % ENTITIES}"]}


def create_entities(number: int) -> tuple[str, dict[str, Any]]:
    return "create_entities", {"entities": [person(ENTITIES + number)]}


def measured(server: Server, call: Call) -> float:
    """The median round trip of a call, in microseconds."""
    times = []
    for number in range(CALLS):
        name, arguments = call(number)
        line = request("tools/call", {"name": name, "arguments": arguments})
        started = time.perf_counter()
        answer = server.ask(line)
        times.append(time.perf_counter() - started)
        assert b'"result"' in answer and b'"isError":true' not in answer, answer
    return median(times) * 1e6


def served(server: Server, line: bytes) -> float | None:
    """What such a line costs the server, in microseconds of a processor, in its best round.

    Several come at a time: what it costs to be woken by a pipe is the system's, and three times as much on one
    machine as on another."""
    rounds = []
    for _ in range(ROUNDS):
        before = server.processor_us()
        for _ in range(CALLS // AT_ONCE):
            server.write(line * AT_ONCE)
            for _ in range(AT_ONCE):
                server.answers.readline()
        after = server.processor_us()
        if before is None or after is None:
            return None
        rounds.append((after - before) / CALLS)
    return min(rounds)


def fill(server: Server) -> None:
    for start in range(0, ENTITIES, BATCH):
        entities = [person(number) for number in range(start, start + BATCH)]
        answer = server.ask(request("tools/call", {"name": "create_entities", "arguments": {"entities": entities}}))
        assert b'"isError":true' not in answer, answer


def started(contender: Contender) -> tuple[float, float | None]:
    """The median time from spawn to the answer to `initialize`, in milliseconds, and the memory then."""
    times, memory = [], None
    for _ in range(STARTS):
        begun = time.perf_counter()
        with contender.running() as server:
            server.ask(request("initialize", HELLO))
            times.append(time.perf_counter() - begun)
            memory = server.resident_mb()
    return median(times) * 1e3, memory


def measure(contender: Contender) -> dict[str, float | None]:
    start_ms, resident = started(contender)
    with contender.running() as server:
        server.ask(request("initialize", HELLO))
        server.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        fill(server)
        until_idle(server.process.pid)
        name, arguments = open_nodes(1)
        return {
            "spawn to initialize, ms": start_ms,
            "resident after it, MB": resident,
            "open_nodes, us": measured(server, open_nodes),
            "open_nodes, server time, us": served(
                server, request("tools/call", {"name": name, "arguments": arguments})
            ),
            "ping, server time, us": served(server, request("ping", {})),
            "create_entities (1 with 3), us": measured(server, create_entities),
        }


def echo() -> tuple[float, float | None]:
    """A round trip of the null echo, and its server time."""
    server = Server([sys.executable, "-c", ECHO], dict(os.environ))
    line = request("tools/call", {"name": "open_nodes", "arguments": {"names": ["person 1"]}})
    times = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        server.ask(line)
        times.append(time.perf_counter() - begun)
    spent = served(server, line)
    server.end()
    return median(times) * 1e6, spent


def main() -> None:
    official = npm_folder() / "node_modules/@modelcontextprotocol/server-memory/dist/index.js"
    ours = [sys.executable, "-m", "mcp_memory"]
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "settings.toml"
        settings.write_text("", encoding="utf-8")
        # Compiled code is kept as an installed package keeps it.
        plain = {"MCP_MEMORY_SETTINGS": str(settings), "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled")}
        contenders = [
            Contender("official, JSONL", [node(), str(official)], f"{folder}/official.jsonl", {}),
            Contender("ours, database", ours, f"{folder}/ours.db", plain),
            Contender("ours, official profile, JSONL", [*ours, "--profile=official"], f"{folder}/ours.jsonl", plain),
        ]
        trip, spent = echo()
        of_it = "" if spent is None else f", {spent:.1f} us of it server time"
        print(f"{ENTITIES:,} entities, {CALLS} calls each, medians; null echo {trip:.0f} us{of_it}\n")
        base: dict[str, float | None] = {}
        for contender in contenders:
            figures = measure(contender)
            base = base or figures
            print(contender.name)
            for name, figure in figures.items():
                if figure is not None:
                    print(f"  {name:<32}{figure:>9.1f}   {(base[name] or 0) / figure:>6.1f}x")


if __name__ == "__main__":
    main()
