"""A long life in a short time: mixed calls on one server over stdio, and what it holds meanwhile.

The memory that is worked on stays about as large as it is, so whatever grows is ours. Used by a short test and
by `bench/soak.py`, which runs 200,000 calls."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import apsw
import msgspec

from mcp_memory.assembly import open_space

NAMES = [f"entity {number}" for number in range(400)]
TEXTS = [f"fact {number} about tea, chess and the road to Rome" for number in range(60)]
KINDS = ("knows", "contiene", "visits", "writes to")
MOST_RELATIONS = 600
HISTORY_CALLS = 2_000
COMPACT_EVERY = 5_000
PIPELINED = 16
# What is bounded, and by how much: memory in use per 100,000 calls (and what an allocator moves by itself), the
# WAL (checkpoints reset it, they do not cut it), and the feed between two compactions.
MOST_SLOPE_MB, NOISE_MB = 8.0, 6.0
MOST_WAL_MB = 64.0
MOST_FEED = 2 * HISTORY_CALLS + COMPACT_EVERY
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}

Arguments = dict[str, Any]


class Sample(NamedTuple):
    """What the server held after so many calls."""

    calls: int
    resident_mb: float
    handles: int
    threads: int
    wal_mb: float
    file_mb: float
    feed: int  # entries


class Life:
    """Draws calls that a client might make; knows enough of what it said to say something sensible next."""

    def __init__(self, seed: int, keeps_history: bool) -> None:
        self.random = random.Random(seed)
        self.linked: list[tuple[str, str, str]] = []
        self.weights = Counter(COMMON | (ONLY_WITH_HISTORY if keeps_history else {}))

    def calls(self, count: int) -> Iterator[tuple[str, Arguments]]:
        tools = list(self.weights)
        chances = [self.weights[tool] for tool in tools]
        for tool in self.random.choices(tools, chances, k=count):
            yield tool.split("/")[0], CALLS[tool](self)

    def name(self) -> str:
        return self.random.choice(NAMES)

    def names(self, most: int) -> list[str]:
        return self.random.sample(NAMES, self.random.randint(1, most))

    def texts(self, most: int) -> list[str]:
        return self.random.sample(TEXTS, self.random.randint(1, most))

    def query(self) -> str:
        return self.random.choice(["tea", "road to Rome", f"fact {self.random.randrange(60)}", "zebra", self.name()])

    def entities(self) -> Arguments:
        told = [{"name": name, "entityType": "Thing", "observations": self.texts(4)} for name in self.names(3)]
        return {"entities": told}

    def relate(self) -> Arguments:
        links = [(self.name(), self.random.choice(KINDS), self.name()) for _ in range(2)]
        self.linked += links
        return {"relations": [_link(*one) for one in links]}

    def unrelate(self) -> Arguments:
        surplus = max(2, len(self.linked) - MOST_RELATIONS)
        gone, self.linked = self.linked[:surplus], self.linked[surplus:]
        return {"relations": [_link(*one) for one in gone or [("a", "knows", "b")]]}

    def supersede(self) -> Arguments:
        old, new = self.random.sample(TEXTS, 2)
        return {"name": self.name(), "observations": [new], "supersedes": old}


def _link(source: str, kind: str, target: str) -> dict[str, str]:
    return {"from": source, "to": target, "relationType": kind}


CALLS: dict[str, Any] = {
    "create_entities": Life.entities,
    "upsert_entities": Life.entities,
    "add_observations": lambda life: {"observations": [{"entityName": life.name(), "contents": life.texts(3)}]},
    "create_relations": Life.relate,
    "delete_relations": Life.unrelate,
    "delete_observations": lambda life: {"name": life.name(), "observations": life.texts(6)},
    "delete_entities": lambda life: {"entityNames": life.names(3)},
    "merge_entities": lambda life: {"source": life.name(), "target": life.name()},
    "search_nodes": lambda life: {"query": life.query(), "limit": 10},
    "search_semantic": lambda life: {"query": life.query(), "limit": 10},
    "open_nodes": lambda life: {"names": life.names(4)},
    "describe_entity": lambda life: {"name": life.name()},
    "read_graph": lambda life: {"limit": 20},
    "find_path": lambda life: {"from": life.name(), "to": life.name()},
    "get_neighbors": lambda life: {"name": life.name()},
    "extract_subgraph": lambda life: {"names": life.names(2)},
    "graph_stats": lambda life: {},
    "find_duplicate_observations": lambda life: {"entity_name": life.name()},
    "export_graph": lambda life: {"format": life.random.choice(["json", "mermaid", "dot"])},
    "add_observations/supersedes": Life.supersede,
    "end_relation": lambda life: {"relation_id": life.random.randrange(1, 5000)},
    "history": lambda life: {"name": life.name(), "limit": 5} if life.random.random() < 0.5 else {"limit": 5},
    "undo": lambda life: {},
    "read_graph/past": lambda life: {"limit": 5, "asOf": time.strftime("%Y-%m-%d %H:%M")},
    "add_reflection": lambda life: {"target_type": "global", "content": "so it goes"},
}
COMMON = {
    "create_entities": 60,
    "upsert_entities": 60,
    "add_observations": 120,
    "create_relations": 80,
    "delete_relations": 60,
    "delete_observations": 110,
    "delete_entities": 20,
    "merge_entities": 6,
    "search_nodes": 120,
    "search_semantic": 8,
    "open_nodes": 120,
    "describe_entity": 60,
    "read_graph": 30,
    "find_path": 40,
    "get_neighbors": 40,
    "extract_subgraph": 20,
    "graph_stats": 10,
    "find_duplicate_observations": 2,
    "export_graph": 2,
}
ONLY_WITH_HISTORY = {
    "add_observations/supersedes": 30,
    "end_relation": 10,
    "history": 20,
    "undo": 10,
    "read_graph/past": 1,
    "add_reflection": 1,
}


class Soak:
    """One server, from its first call to its last."""

    def __init__(self, path: Path, *, seed: int = 7, model: str = "none") -> None:
        self.path = path
        self.is_database = path.suffix == ".db"
        self.life = Life(seed, keeps_history=self.is_database)
        self.samples: list[Sample] = []
        self.alone: list[float] = []  # seconds of calls that nothing was sent before
        self.outcomes: Counter[str] = Counter()
        self.done = 0
        self._told = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `kill`)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mcp_memory", "-f", str(path), "--model", model]
            + (["--history-calls", str(HISTORY_CALLS)] if self.is_database else []),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._told,
            env={**os.environ, "HOME": str(path.parent), "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._ident = 0
        self._ask([("initialize", HELLO)])

    def _ask(self, requests: list[tuple[str, Arguments]]) -> list[Any]:
        """The results of some requests that are sent all at once."""
        assert self.process.stdin and self.process.stdout
        lines, wanted = [], set()
        for method, params in requests:
            self._ident += 1
            wanted.add(self._ident)
            lines.append(
                msgspec.json.encode({"jsonrpc": "2.0", "id": self._ident, "method": method, "params": params}) + b"\n"
            )
        self.process.stdin.write(b"".join(lines))
        self.process.stdin.flush()
        found: dict[int, Any] = {}
        while wanted:
            line = self.process.stdout.readline()
            assert line, "the server ended"
            answer = msgspec.json.decode(line)
            if answer.get("id") in wanted:
                wanted.discard(answer["id"])
                found[answer["id"]] = answer
        return [found[ident]["result"] for ident in sorted(found)]

    def _call(self, calls: list[tuple[str, Arguments]]) -> None:
        results = self._ask([("tools/call", {"name": tool, "arguments": given}) for tool, given in calls])
        for (tool, _), result in zip(calls, results, strict=True):
            text = result["content"][0]["text"]
            is_refused = result.get("isError", False)
            assert not is_refused or "failed inside the server" not in text, f"{tool}: {text}"
            self.outcomes["refused" if is_refused else "done"] += 1
        self.done += len(calls)

    def run(self, calls: int, samples: int = 50, seconds: float = float("inf")) -> None:
        """So many calls, or as many as these seconds allow."""
        until = time.monotonic() + seconds
        batch: list[tuple[str, Arguments]] = []
        every = max(calls // samples, 1)
        next_sample, next_compact = self.done + every, self.done + COMPACT_EVERY
        for call in self.life.calls(calls):
            batch.append(call)
            if len(batch) < PIPELINED:
                continue
            self._call(batch[1:])
            started = time.perf_counter()
            self._call(batch[:1])
            self.alone.append(time.perf_counter() - started)
            batch = []
            if self.done >= next_compact:
                self._call([("compact", {})])
                next_compact += COMPACT_EVERY
            if self.done >= next_sample:
                self.samples.append(self.look())
                next_sample += every
            if time.monotonic() > until:
                break
        self._call([*batch, ("compact", {})])
        self.samples.append(self.look())

    def look(self) -> Sample:
        """What the process holds and what lies on the disk now. Without /proc only the latter is told."""
        proc = Path(f"/proc/{self.process.pid}")
        resident = threads = handles = 0.0
        if proc.exists():
            status = dict(line.partition(":")[::2] for line in (proc / "status").read_text().splitlines())
            resident, threads = int(status["VmRSS"].split()[0]) / 1024, int(status["Threads"])
            handles = len(list((proc / "fd").iterdir()))
        wal = Path(f"{self.path}-wal")
        return Sample(
            self.done,
            resident,
            int(handles),
            int(threads),
            wal.stat().st_size / 2**20 if wal.exists() else 0.0,
            self.path.stat().st_size / 2**20 if self.path.exists() else 0.0,
            self._feed(),
        )

    def _feed(self) -> int:
        if not self.is_database:
            return 0
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(5000)
            return int(connection.execute("select count(*) from change").get)
        finally:
            connection.close()

    def end(self) -> list[str]:
        """Hang up; what the doctor then finds."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()
        space = open_space(self.path)
        try:
            return [finding.text for finding in space.check()]
        finally:
            space.close()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self._told):
            if pipe is not None:
                pipe.close()

    def trouble(self) -> list[str]:
        """What grows though the memory does not, in words; [] is the only good answer."""
        told, samples = self.told(), self.samples
        early, late = samples[1 : len(samples) // 2], samples[len(samples) // 2 :]
        found = []
        if told["MB for 100,000 calls more"] > MOST_SLOPE_MB and late[-1].resident_mb - late[0].resident_mb > NOISE_MB:
            found.append(f"memory grows by {told['MB for 100,000 calls more']} MB in 100,000 calls")
        for what in ("handles", "threads"):
            before, after = (min(getattr(sample, what) for sample in some) for some in (early or late, late))
            if after > before:
                found.append(f"{what} grew from {before} to {after}")
        if told["largest WAL MB"] > MOST_WAL_MB:
            found.append(f"the WAL grew to {told['largest WAL MB']} MB")
        if told["most feed entries"] > MOST_FEED:
            found.append(f"the feed grew to {told['most feed entries']} entries")
        complaints = self.complaints()
        if complaints:
            found.append(f"{len(complaints)} lines on stderr, the first: {complaints[0]}")
        return found

    def complaints(self) -> list[str]:
        """What the server said to whoever started it; of a healthy one that is nothing."""
        self._told.seek(0)
        return self._told.read().decode(errors="replace").splitlines()

    # ── what it comes to ─────────────────────────────────────────────────────────────────────────

    def slope(self) -> float:
        """MB of memory in use for 100,000 calls more, by least squares over the second half."""
        half = self.samples[len(self.samples) // 2 :]
        if len(half) < 2:
            return 0.0
        x = [sample.calls / 100_000 for sample in half]
        y = [sample.resident_mb for sample in half]
        middle, level = sum(x) / len(x), sum(y) / len(y)
        spread = sum((one - middle) ** 2 for one in x)
        return sum((one - middle) * (other - level) for one, other in zip(x, y, strict=True)) / spread

    def told(self) -> dict[str, Any]:
        last, halfway = self.samples[-1], self.samples[len(self.samples) // 2]
        alone = sorted(self.alone)
        return {
            "file": self.path.name,
            "calls": self.done,
            **self.outcomes,
            "resident MB halfway": round(halfway.resident_mb, 1),
            "resident MB at the end": round(last.resident_mb, 1),
            "MB for 100,000 calls more": round(self.slope(), 2),
            "handles": sorted({sample.handles for sample in self.samples[1:]}),
            "threads": sorted({sample.threads for sample in self.samples[1:]}),
            "largest WAL MB": round(max(sample.wal_mb for sample in self.samples), 1),
            "file MB halfway": round(halfway.file_mb, 2),
            "file MB at the end": round(last.file_mb, 2),
            "most feed entries": max(sample.feed for sample in self.samples),
            "feed entries at the end": last.feed,
            "p50 ms": round(median(alone) * 1e3, 2),
            "p99 ms": round(alone[int(len(alone) * 0.99)] * 1e3, 2),
            "slowest ms": round(alone[-1] * 1e3, 1),
        }

    def print(self) -> None:
        print(json.dumps(self.told(), indent=1), flush=True)
