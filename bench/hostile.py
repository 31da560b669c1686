"""What a hostile input costs a server over stdio: `.venv-dev/bin/python bench/hostile.py [ENTITIES]`.

Lines of 16 MiB and more, an import of a million entities (or so many), queries that would be slow as patterns, and
JSON nested without end. Printed beside what each may cost; the exit code says whether all of it held. Memory is the
most that was ever resident (VmHWM), as Linux tells it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.crash.harness import COMMAND

MIB = 1 << 20
ENTITIES = 1_000_000
# The largest line there may be, its parts as they are looked at, and the answer: a few copies of it.
MOST_FOR_A_LINE = 8 * 16
MOST_FOR_NOISE = 16  # MB: a line over the limit is not kept
SEARCHED = 100_000  # entities of the memory that is searched
# Kept for good after an import, and held while it runs, in bytes for each entity of the file written here.
MOST_AN_ENTITY = 4_000
PATTERNS = (
    "(a+)+$" + "a" * 400,
    "(" * 250 + ")" * 250,
    ".*" * 200,
    "%_" * 200,
    '"' * 499,
    "NEAR(" * 80,
    "a* OR " * 80,
    "\\" * 500,
    "e" * 500,
    "e " * 249,
)


class Server:
    """A server on two pipes; one request after the other."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "-f", str(path), "--roots", str(path.parent), "--model", "none"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask(line("initialize", hello))

    def ask(self, request: bytes) -> Any:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(request)
        self.process.stdin.flush()
        while "id" not in (answer := json.loads(self.process.stdout.readline())):
            pass
        return answer

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.ask(line("tools/call", {"name": tool, "arguments": arguments}))["result"]

    def megabytes(self, what: str = "VmHWM") -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return next(int(one.split()[1]) / 1024 for one in status.splitlines() if one.startswith(what))

    def end(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def line(method: str, params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"


class Report:
    def __init__(self) -> None:
        self.exceeded = 0

    def note(self, what: str, value: float, most: float, unit: str) -> None:
        self.exceeded += value > most
        print(f"  {what:<66}{value:>10,.1f} {unit:<3} (at most {most:,.0f})", flush=True)


def long_lines(report: Report, folder: Path) -> None:
    server = Server(folder / "lines.db")
    server.call("create_entities", entities=[{"name": "Ada"}])
    before = server.megabytes()
    started = time.perf_counter()
    said = server.call("open_nodes", names=["Ada"], padding="x" * (16 * MIB - 300))
    report.note("a line of 16 MiB, answered: seconds", time.perf_counter() - started, 5, "s")
    report.note("  memory more than before", server.megabytes() - before, MOST_FOR_A_LINE, "MB")
    assert said["structuredContent"]["entities"][0]["name"] == "Ada"
    before = server.megabytes()
    for size in (17, 64, 512):
        started = time.perf_counter()
        assert server.process.stdin
        for _ in range(size):
            server.process.stdin.write(b"x" * MIB)
        refused = server.ask(b'"}\n')
        assert "longer than 16 MiB" in refused["error"]["message"], refused
        report.note(f"a line of {size} MiB, refused: seconds", time.perf_counter() - started, 10, "s")
    report.note("  memory more than before", server.megabytes() - before, MOST_FOR_NOISE, "MB")
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open_nodes","arguments":'
    started = time.perf_counter()
    for depth in (900, 1_000, 10_000, 1_000_000):
        answer = server.ask(deep + b"[" * depth + b"]" * depth + b"}}\n")
        assert answer["id"] == 1 and ("error" in answer or answer["result"]["isError"])
    report.note("JSON 900, 1,000, 10,000 and 1,000,000 deep, refused: seconds", time.perf_counter() - started, 5, "s")
    server.end()


def large_import(report: Report, folder: Path, entities: int) -> None:
    source = folder / "large.jsonl"
    chance = random.Random(1)
    with open(source, "w", encoding="utf-8") as file:
        for number in range(entities):
            told = [f"seen at place {chance.randrange(1000)}, number {number}", f"likes {chance.randrange(50)}"]
            file.write(
                json.dumps({"type": "entity", "name": f"n{number}", "entityType": "Thing", "observations": told}) + "\n"
            )
        for number in range(entities // 2):
            ends = {"from": f"n{number}", "to": f"n{chance.randrange(entities)}", "relationType": "knows"}
            file.write(json.dumps({"type": "relation", **ends}) + "\n")
    print(f"{source.stat().st_size / MIB:,.0f} MB of JSONL: {entities:,} entities, {entities // 2:,} relations")
    server = Server(folder / "large.db")
    before = server.megabytes()
    started = time.perf_counter()
    said = server.call("migrate", source_path=str(source))
    took = time.perf_counter() - started
    assert said["structuredContent"]["entities_imported"] == entities, said
    most = MOST_AN_ENTITY * entities / MIB + 64
    report.note("import: seconds", took, 300 * entities / ENTITIES + 5, "s")
    report.note("import: most memory, more than before", server.megabytes() - before, most, "MB")
    started = time.perf_counter()
    assert server.call("open_nodes", names=["n7"])["structuredContent"]["entities"]
    report.note("the call after it: seconds", time.perf_counter() - started, 60, "s")
    report.note("memory in use with all of it", server.megabytes("VmRSS") - before, most, "MB")
    if entities <= SEARCHED:
        patterns(report, server)
    server.end()
    started = time.perf_counter()
    server = Server(folder / "large.db")
    server.call("open_nodes", names=["n7"])
    report.note("a fresh server's first answer: seconds", time.perf_counter() - started, 60, "s")
    server.end()


def patterns(report: Report, server: Server) -> None:
    slowest: dict[str, tuple[float, str]] = {}
    for tool in ("search_nodes", "search_semantic", "history"):
        server.call(tool, query="warm")
        for query in PATTERNS:
            started = time.perf_counter()
            server.call(tool, query=query[:500], limit=10)
            slowest[tool] = max(slowest.get(tool, (0.0, "")), (time.perf_counter() - started, query))
    for tool, (seconds, query) in slowest.items():
        report.note(f"{tool}, the slowest of {len(PATTERNS)} ({query[:12]}…): seconds", seconds, 5, "s")


def main(entities: int) -> int:
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        print("Lines")
        long_lines(report, Path(folder))
        print("Import and queries")
        for size in sorted({min(entities, SEARCHED), entities}):
            (Path(folder) / str(size)).mkdir()
            large_import(report, Path(folder) / str(size), size)
    print("all within bounds" if not report.exceeded else f"{report.exceeded} out of bounds")
    return 1 if report.exceeded else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ENTITIES))
