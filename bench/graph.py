"""The two tables of the Rust program, row by row: `python bench/graph.py [--entities 40000]`.

Reads: its benchmark graph (40,000 entities, 120,000 relations, one type of relation), each operation
called in process on random names, as there; ours answer encoded JSON where theirs return structs.
Writes: on sets of 100 entities and 300 relations as in its fixture, in a process that is running; the
time includes the commit of the feed. What is brought up behind the reply is printed beside.
The published figures are of an Apple M4 Pro; p50 over batches, the best batch beside it."""

from __future__ import annotations

import argparse
import gc
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fixtures import entity_name, fill, plain_graph
from stdio import ECHO, HELLO, Server, request

from mcp_memory.assembly import open_space
from mcp_memory.facts import OFFICIAL_LIMITS
from mcp_memory.tools.catalog import catalog
from mcp_memory.tools.inputs import Addition, EntityInput, RelationInput, Triple

TOOLS = catalog()
Arguments = Callable[[random.Random], tuple[Any, ...]]
Row = tuple[str, str, float, Arguments, int, int]


def reads(entities: int) -> list[Row]:
    """Label, tool, published microseconds, arguments, calls a batch, batches."""

    def name(rng: random.Random) -> str:
        return entity_name(rng.randrange(entities))

    def several(count: int) -> Arguments:
        return lambda rng: ([name(rng) for _ in range(count)],)

    def one(*more: Any) -> Arguments:
        return lambda rng: (name(rng), *more)

    def two(*more: Any) -> Arguments:
        return lambda rng: (name(rng), name(rng), *more)

    def same(*values: Any) -> Arguments:
        return lambda rng: values

    return [
        ("get_entity", "get_entity", 0.2, one(), 1000, 60),
        ("batch_get_entities (10 names)", "batch_get_entities", 2.1, several(10), 200, 60),
        ("graph_stats", "graph_stats", 37, same(), 100, 30),
        ("describe_entity", "describe_entity", 60, one(), 50, 60),
        ("entity_type_counts", "list_entity_types", 89, same(), 100, 30),
        ("search_relations (from)", "search_relations", 40, one(), 50, 60),
        ("relation_type_counts", "list_relation_types", 257, same(), 100, 30),
        ("neighbors depth 1", "get_neighbors", 392, one(), 20, 60),
        ("read_graph filtered (type, 1000)", "read_graph", 479, same("type_0", 0, 1000), 2, 30),
        ("open_nodes (10 names)", "open_nodes", 676, several(10), 10, 60),
        ("search_nodes filtered (type, 20)", "search_nodes", 1250, same("entity_", "type_0", 20, 0), 2, 30),
        ("find_all_paths (depth 4, 10 paths)", "find_all_paths", 1680, two(4, 10), 20, 60),
        ("find_path", "find_path", 2500, two(), 20, 60),
        (
            "extract_subgraph depth 1 (3 seeds)",
            "extract_subgraph",
            2700,
            lambda r: ([name(r) for _ in range(3)], 1),
            10,
            60,
        ),
        (
            "extract_subgraph depth 2 (3 seeds)",
            "extract_subgraph",
            2800,
            lambda r: ([name(r) for _ in range(3)], 2),
            5,
            60,
        ),
        ("neighbors depth 2", "get_neighbors", 4800, one("both", "", 2), 10, 60),
        ("read_graph (everything)", "read_graph", 10_600, same(), 1, 30),
        ("search_nodes (all hits)", "search_nodes", 12_200, same("entity_", "", 10**6, 0), 1, 20),
        ("export json", "export_graph", 20_300, same("json"), 1, 20),
        ("export dot", "export_graph", 20_000, same("dot"), 1, 20),
        ("export mermaid", "export_graph", 22_300, same("mermaid"), 1, 20),
    ]


def measure(call: Callable[..., Any], drawn: list[list[tuple[Any, ...]]]) -> tuple[float, float]:
    """Median and minimum over the batches, in microseconds a call."""
    took = []
    for batch in drawn:
        start = time.perf_counter_ns()
        for arguments in batch:
            call(*arguments)
        took.append((time.perf_counter_ns() - start) / len(batch) / 1000)
    return statistics.median(took), min(took)


def read_table(entities: int, folder: Path) -> list[tuple[str, float, float, float]]:
    space = open_space(folder / "graph.db", limits=OFFICIAL_LIMITS)
    fill(space, plain_graph(entities, 3 * entities))
    space.close()
    space = open_space(folder / "graph.db", limits=OFFICIAL_LIMITS)
    graph = space.graph()
    print(f"{entities:,} entities, {graph.relation_count:,} relations")
    for number in range(entities):  # a server that has run for a while: each entity was asked for once
        TOOLS["get_entity"].function(graph, entity_name(number))
    gc.freeze()
    rng = random.Random(13)
    rows = []
    for label, tool, published, arguments, calls, batches in reads(entities):
        function = TOOLS[tool].function
        drawn = [[arguments(rng) for _ in range(calls)] for _ in range(batches + 2)]
        start = time.perf_counter_ns()
        function(graph, *drawn[0][0])
        first = (time.perf_counter_ns() - start) / 1000
        measure(partial(function, graph), drawn[:2])
        p50, best = measure(partial(function, graph), drawn[2:])
        rows.append((label, published, p50, best))
        told(label, published, p50, best, f"first {first:,.0f}")
    space.close()
    return rows


class Fixture:
    """One space in which everything is written. Before each measurement a set of 100 entities with 300
    relations of its own is made, and brought up as behind a reply; then the clock starts."""

    def __init__(self, path: Path) -> None:
        self.space = open_space(path, limits=OFFICIAL_LIMITS)
        fill(self.space, plain_graph(100, 300))
        self.rng = random.Random(13)
        self.sets = 0

    def name(self, number: int) -> str:
        return f"set_{self.sets}_{number}"

    def any_name(self) -> str:
        return self.name(self.rng.randrange(100))

    def pairs(self, kind: type[Any], count: int = 100) -> list[Any]:
        return [kind(self.any_name(), self.any_name(), "knows") for _ in range(count)]

    def call(self, tool: str, *values: Any) -> None:
        self.space.call(TOOLS[tool], values, "bench")

    def next_set(self) -> None:
        self.sets += 1
        entities = [EntityInput(self.name(i), f"type_{i % 8}", [f"obs_{i}"]) for i in range(100)]
        self.call("create_entities", entities)
        self.call("create_relations", self.pairs(RelationInput, 300))
        self.space.catch_up()

    def new(self, observation: str) -> list[EntityInput]:
        return [EntityInput(f"new_{self.sets}_{i}", "bench_type", [observation]) for i in range(100)]

    def known(self) -> list[EntityInput]:
        return [EntityInput(self.name(i), "bench_type", ["new_upsert_obs"]) for i in range(100)]


Write = tuple[str, str, float, Callable[[Fixture], tuple[Any, ...]]]
WRITES: list[Write] = [
    ("delete_observations (absent)", "delete_observations", 17, lambda f: (f.name(0), ["nothing"])),
    ("delete_observations (one, really)", "delete_observations", 17, lambda f: (f.name(0), ["obs_0"])),
    (
        "add_observations (10 new)",
        "add_observations",
        24,
        lambda f: ([Addition(f.any_name(), [f"new_obs_{i}" for i in range(10)])],),
    ),
    ("merge_entities", "merge_entities", 49, lambda f: (f.name(0), f.name(1))),
    ("create_relations (100)", "create_relations", 65, lambda f: (f.pairs(RelationInput),)),
    ("delete_relations (100 random)", "delete_relations", 161, lambda f: (f.pairs(Triple),)),
    ("delete_entities (100)", "delete_entities", 177, lambda f: ([f.name(i) for i in range(100)],)),
    ("create_entities (100 new)", "create_entities", 227, lambda f: (f.new("obs"),)),
    ("upsert_entities (100 existing)", "upsert_entities", 570, lambda f: (f.known(),)),
    ("upsert_entities (100 new)", "upsert_entities", 740, lambda f: (f.new("obs"),)),
]


def write_table(rounds: int, folder: Path) -> None:
    print("\nwrites: on 100 entities with 300 relations, the commit included; `behind` = brought up after the reply")
    for label, tool, published, arguments in WRITES:
        fixture = Fixture(folder / f"{label}.db")
        took, behind = [], []
        for number in range(rounds + 5):
            fixture.next_set()
            values = arguments(fixture)
            start = time.perf_counter_ns()
            fixture.call(tool, *values)
            replied = time.perf_counter_ns()
            fixture.space.catch_up()
            if number >= 5:
                took.append((replied - start) / 1000)
                behind.append((time.perf_counter_ns() - replied) / 1000)
        fixture.space.close()
        told(label, published, statistics.median(took), min(took), f"behind {statistics.median(behind):,.0f}")
    compaction(rounds, folder)


def compaction(rounds: int, folder: Path) -> None:
    """`compact` after 50 of 100 entities were deleted, a new file each time."""
    took = []
    for number in range(max(rounds // 4, 3)):
        fixture = Fixture(folder / f"compact {number}.db")
        fixture.call("delete_entities", [entity_name(i) for i in range(50)])
        start = time.perf_counter_ns()
        fixture.call("compact")
        took.append((time.perf_counter_ns() - start) / 1000)
        fixture.space.close()
    told("compact (after 50 deletes)", 12_700, statistics.median(took), min(took), "fsync included")


# ── end to end ───────────────────────────────────────────────────────────────────────────────────────


def wire_table(entities: int, folder: Path) -> None:
    """Round trips through pipes to a real server on the same graph, the answer's bytes beside."""
    path = folder / "wire.db"
    space = open_space(path, limits=OFFICIAL_LIMITS)
    fill(space, plain_graph(entities, 3 * entities))
    space.close()
    print(f"\nround trips over stdio, {entities:,} entities")
    rng = random.Random(13)

    def name() -> str:
        return entity_name(rng.randrange(entities))

    echo = Server([sys.executable, "-c", ECHO], dict(os.environ))
    trip(echo, "null echo", None, lambda: request("ping", {}), 2000)
    echo.end()
    server = Server([sys.executable, "-m", "mcp_memory", "--memory-file", str(path)], dict(os.environ))
    server.ask(request("initialize", HELLO))
    called(server, "graph_stats", {})
    calls: list[tuple[str, float | None, Callable[[], dict[str, Any]], int]] = [
        ("get_entity", 20, lambda: {"name": name()}, 2000),
        ("batch_get_entities", None, lambda: {"names": [name() for _ in range(10)]}, 1000),
        ("describe_entity", None, lambda: {"name": name()}, 1000),
        ("get_neighbors", 40, lambda: {"name": name()}, 1000),
        ("find_path", 250, lambda: {"from": name(), "to": name()}, 1000),
        ("create_entities", 50, lambda: {"entities": [{"name": f"new {rng.random()}", "observations": ["x"]}]}, 500),
        ("add_observations", None, lambda: {"name": name(), "observations": [str(rng.random())]}, 500),
        ("read_graph", 15_000, dict, 20),
    ]
    for tool, goal, arguments, count in calls:
        trip(server, tool, goal, lines(tool, arguments), count)
    print(f"resident memory {server.resident_mb():.0f} MB")
    server.end()


def call_line(tool: str, arguments: dict[str, Any]) -> bytes:
    return request("tools/call", {"name": tool, "arguments": arguments})


def called(server: Server, tool: str, arguments: dict[str, Any]) -> bytes:
    return server.ask(call_line(tool, arguments))


def lines(tool: str, arguments: Callable[[], dict[str, Any]]) -> Callable[[], bytes]:
    """The request line of one call after the other, each with arguments of its own."""
    return lambda: call_line(tool, arguments())


def trip(server: Server, label: str, goal: float | None, line: Callable[[], bytes], count: int) -> None:
    """Median and best round trip of one kind of call."""
    for _ in range(min(count, 50)):
        answer = server.ask(line())
    took = []
    for made in [line() for _ in range(count)]:
        start = time.perf_counter_ns()
        answer = server.ask(made)
        took.append((time.perf_counter_ns() - start) / 1000)
        assert b'"isError":true' not in answer[:400], answer[:400]
    p50 = statistics.median(took)
    against = "" if goal is None else f"goal {goal:9,.0f}   {'met' if p50 <= goal else 'MISSED'}"
    print(f"{label:36} p50 {p50:10,.1f} us   best {min(took):10,.1f}   answer {len(answer):11,} bytes   {against}")


def told(label: str, published: float, p50: float, best: float, note: str = "") -> None:
    print(
        f"{label:36} p50 {p50:10,.2f} us   best {best:10,.2f}   published {published:9,.1f}   "
        f"ratio {published / p50:8.2f}   {note}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=40, help="measurements of each write")
    parser.add_argument("--only", choices=("reads", "writes", "stdio"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.only in {None, "reads"}:
            read_table(chosen.entities, Path(folder))
        if chosen.only in {None, "writes"}:
            write_table(chosen.rounds, Path(folder))
        if chosen.only in {None, "stdio"}:
            wire_table(chosen.entities, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
