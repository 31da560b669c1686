"""The two tables of the Rust program, row by row: `python bench/graph.py [--entities 40000]`.

Reads: its benchmark graph (40,000 entities, 120,000 relations, one type of relation), each operation
called in process on random names, as there; ours answer encoded JSON where theirs return structs.
Writes: its fixture of 100 entities and 300 relations, a fresh database for every measurement, and the
time includes the commit of the feed. What is brought up behind the reply is printed beside.
The published figures are of an Apple M4 Pro; p50 over batches, the best batch beside it."""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fixtures import entity_name, fill, plain_graph

from mcp_memory.assembly import open_space
from mcp_memory.facts import OFFICIAL_LIMITS
from mcp_memory.space import Space
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
        ("extract_subgraph depth 1 (3 seeds)", "extract_subgraph", 2700, lambda r: ([name(r) for _ in range(3)], 1), 10, 60),
        ("extract_subgraph depth 2 (3 seeds)", "extract_subgraph", 2800, lambda r: ([name(r) for _ in range(3)], 2), 5, 60),
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
    gc.freeze()
    rng = random.Random(13)
    rows = []
    for label, tool, published, arguments, calls, batches in reads(entities):
        function = TOOLS[tool].function
        drawn = [[arguments(rng) for _ in range(calls)] for _ in range(batches + 2)]
        start = time.perf_counter_ns()
        function(graph, *drawn[0][0])
        first = (time.perf_counter_ns() - start) / 1000
        measure(lambda *values, f=function: f(graph, *values), drawn[:2])
        p50, best = measure(lambda *values, f=function: f(graph, *values), drawn[2:])
        rows.append((label, published, p50, best))
        told(label, published, p50, best, f"first {first:,.0f}")
    space.close()
    return rows


def writes() -> list[tuple[str, str, float, Callable[[random.Random], tuple[Any, ...]]]]:
    def fresh(prefix: str) -> list[EntityInput]:
        return [EntityInput(f"{prefix}_{i}", "bench_type", ["obs"]) for i in range(100)]

    def pairs(rng: random.Random, kind: type[Any]) -> list[Any]:
        return [
            kind(entity_name(rng.randrange(100)), entity_name(rng.randrange(100)), "knows") for _ in range(100)
        ]

    def known() -> list[EntityInput]:
        return [EntityInput(entity_name(i), "type_0", ["new_upsert_obs"]) for i in range(100)]

    def ten(rng: random.Random) -> tuple[Any, ...]:
        name = entity_name(rng.randrange(100))
        return ([Addition(name, [f"new_obs_{name}_{i}" for i in range(10)])],)

    return [
        ("delete_observations (absent)", "delete_observations", 17, lambda rng: (entity_name(0), ["nothing"])),
        ("delete_observations (one, really)", "delete_observations", 17, lambda rng: (entity_name(0), ["obs_of_0"])),
        ("add_observations (10 new)", "add_observations", 24, ten),
        ("merge_entities", "merge_entities", 49, lambda rng: (entity_name(0), entity_name(1))),
        ("create_relations (100)", "create_relations", 65, lambda rng: (pairs(rng, RelationInput),)),
        ("delete_relations (100 random)", "delete_relations", 161, lambda rng: (pairs(rng, Triple),)),
        ("delete_entities (100)", "delete_entities", 177, lambda rng: ([entity_name(i) for i in range(100)],)),
        ("create_entities (100 new)", "create_entities", 227, lambda rng: (fresh("new_create"),)),
        ("upsert_entities (100 existing)", "upsert_entities", 570, lambda rng: (known(),)),
        ("upsert_entities (100 new)", "upsert_entities", 740, lambda rng: (fresh("new_upsert"),)),
        ("compact (after 50 deletes)", "compact", 12_700, lambda rng: ()),
    ]


def write_table(rounds: int, folder: Path) -> None:
    print("\nwrites: 100 entities, 300 relations; commit included; `behind` = brought up after the reply")
    for label, tool, published, arguments in writes():
        rng = random.Random(13)
        took, behind = [], []
        for number in range(rounds):
            space = write_fixture(folder / f"{tool}{number}.db", tool)
            values = arguments(rng)
            gc.collect()
            start = time.perf_counter_ns()
            space.call(TOOLS[tool], values, "bench")
            took.append((time.perf_counter_ns() - start) / 1000)
            start = time.perf_counter_ns()
            space.graph()
            behind.append((time.perf_counter_ns() - start) / 1000)
            space.close()
        told(label, published, statistics.median(took), min(took), f"behind {statistics.median(behind):,.0f}")


def write_fixture(path: Path, tool: str) -> Space:
    path.unlink(missing_ok=True)
    space = open_space(path, limits=OFFICIAL_LIMITS)
    fill(space, plain_graph(100, 300))
    rng = random.Random(3)
    # Everything a first call sets up is paid before the clock starts: decoders, statements, imports.
    space.call(TOOLS["add_observations"], (["obs_of_0"], entity_name(0)))
    space.call(TOOLS["create_entities"], ([EntityInput("warm", "t", ["x"])],))
    space.call(TOOLS["create_relations"], ([RelationInput("warm", entity_name(rng.randrange(100)), "warms")],))
    space.call(TOOLS["delete_entities"], (["warm"],))
    if tool == "compact":
        space.call(TOOLS["delete_entities"], ([entity_name(i) for i in range(50)],))
    space.settle()
    space.graph()
    return space


def told(label: str, published: float, p50: float, best: float, note: str = "") -> None:
    print(
        f"{label:36} p50 {p50:10,.2f} us   best {best:10,.2f}   published {published:9,.1f}   "
        f"ratio {published / p50:8.2f}   {note}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=40, help="measurements of each write")
    parser.add_argument("--only", choices=("reads", "writes"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.only != "writes":
            read_table(chosen.entities, Path(folder))
        if chosen.only != "reads":
            write_table(chosen.rounds, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
