"""A large memory: how soon it answers, how soon it is resident, what it takes and what calls then cost.

`.venv-dev/bin/python bench/large.py [--entities 1000000] [--file FILE]`: the Rust program's benchmark graph
in any size, written as entries of the feed and projected as it goes (a FILE that exists is taken as it is).
Each line is a server of its own, asked over pipes; times are medians."""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from fixtures import entity_name, plain_graph
from stdio import HELLO, Server, request

from mcp_memory.changes import Entry
from mcp_memory.space import CHANGES_PER_ENTRY, utc_now
from mcp_memory.stores.sqlite import SqliteStore

# Entries written before they are projected: what stands in the -wal stays small.
ENTRIES_AT_ONCE = 20
STARTS = 7
CALLS = 200


def make(path: str, entities: int, relations: int) -> None:
    """An empty file becomes a space of so many facts."""
    store = SqliteStore(path)
    changes = plain_graph(entities, relations)
    seq = 0
    while True:
        entries: list[Entry] = []
        while len(entries) < ENTRIES_AT_ONCE and (some := list(islice(changes, CHANGES_PER_ENTRY))):
            seq += 1
            entries.append(Entry(seq, utc_now(), some, "bench", "fill"))
        if not entries:
            break
        with store.begin():
            store.write(entries)
        store.settle()
    store.close()


class Memory:
    """One file, and servers on it."""

    def __init__(self, path: Path, entities: int) -> None:
        self.path = path
        self.entities = entities
        self.rng = random.Random(5)

    def name(self) -> str:
        return entity_name(self.rng.randrange(self.entities))

    def start(self) -> Server:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MCP_MEMORY_")}
        server = Server([sys.executable, "-m", "mcp_memory", "--memory-file", str(self.path)], environment)
        server.ask(request("initialize", HELLO))
        return server

    def settle(self) -> None:
        """Leave a snapshot behind."""
        store = SqliteStore(str(self.path))
        store.load()
        store.settle()
        store.close()

    def forget(self) -> None:
        self.path.with_name(self.path.name + "-graph").unlink(missing_ok=True)


def called(server: Server, tool: str, **arguments: Any) -> tuple[float, bytes]:
    """Milliseconds, and the answer."""
    line = request("tools/call", {"name": tool, "arguments": arguments})
    start = time.perf_counter()
    answer = server.ask(line)
    took = (time.perf_counter() - start) * 1000
    assert b'"isError":true' not in answer[:300], answer[:300]
    return took, answer


def opening(memory: Memory, label: str, starts: int, before: Callable[[], None]) -> None:
    """The first answer of a fresh process, and how long after it the graph is resident."""
    first, resident, taken = [], [], []
    for _ in range(starts):
        before()
        begun = time.perf_counter()
        server = memory.start()
        called(server, "get_entity", name=memory.name())
        first.append((time.perf_counter() - begun) * 1000)
        taken.append(server.resident_mb() or 0.0)
        server.end()
        before()
        server = memory.start()
        resident.append(called(server, "graph_stats")[0])
        taken.append(server.resident_mb() or 0.0)
        server.end()
    print(
        f"{label:22} spawn to first answer {statistics.median(first):7.0f} ms   "
        f"first call that wants the graph {statistics.median(resident):8.0f} ms   resident {max(taken):5.0f} MB"
    )


def calls(memory: Memory) -> None:
    server = memory.start()
    called(server, "graph_stats")
    number = iter(range(10**9))
    asked: list[tuple[str, Callable[[], dict[str, Any]], int]] = [
        ("get_entity", lambda: {"name": memory.name()}, CALLS),
        ("describe_entity", lambda: {"name": memory.name()}, CALLS),
        ("get_neighbors", lambda: {"name": memory.name()}, CALLS),
        ("extract_subgraph", lambda: {"names": [memory.name() for _ in range(3)], "depth": 2}, CALLS),
        ("find_path", lambda: {"from": memory.name(), "to": memory.name()}, CALLS),
        ("search_nodes", lambda: {"query": memory.name()}, CALLS),
        ("read_graph", lambda: {"entityType": "type_3", "limit": 1000}, 5),
        ("create_entities", lambda: {"entities": [{"name": f"{time.time()} {next(number)}"}]}, CALLS),
        ("add_observations", lambda: {"name": memory.name(), "observations": [f"{time.time()}"]}, CALLS),
        ("delete_entities", lambda: {"entityNames": [memory.name()]}, 20),
    ]
    for tool, arguments, count in asked:
        first, _ = called(server, tool, **arguments())
        times = []
        for _ in range(count):
            try:
                took, answer = called(server, tool, **arguments())
            except AssertionError:  # one that was deleted before
                continue
            times.append(took)
        print(
            f"{tool:22} first {first:9.2f} ms   p50 {statistics.median(times):9.3f} ms   "
            f"answer {len(answer):9,} bytes   resident {server.resident_mb() or 0:5.0f} MB"
        )
    server.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--entities", type=int, default=40_000)
    parser.add_argument("--starts", type=int, default=STARTS)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.file or Path(folder, "large.db")
        if not path.exists():
            start = time.perf_counter()
            make(str(path), chosen.entities, 3 * chosen.entities)
            print(f"made in {time.perf_counter() - start:.0f} s")
        memory = Memory(path, chosen.entities)
        print(f"{chosen.entities:,} entities, {3 * chosen.entities:,} relations, {path.stat().st_size >> 20} MB")
        memory.settle()
        opening(memory, "with a snapshot", chosen.starts, lambda: None)
        calls(memory)
        opening(memory, "without a snapshot", chosen.starts, memory.forget)
    return 0


if __name__ == "__main__":
    sys.exit(main())
