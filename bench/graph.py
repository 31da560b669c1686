"""The two tables of the Rust program, row by row: `.venv-dev/bin/python bench/graph.py [--entities 40000]`.

Reads: its benchmark graph (40,000 entities, 120,000 relations, one type of relation), each operation
called in process on random names, as there; ours answer encoded JSON where theirs return structs.
Writes: on sets of 100 entities and 300 relations as in its fixture, in a process that is running; the
time includes the commit of the feed. What is brought up behind the reply is printed beside.
Then the same operations as round trips over stdio, and the reads at three sizes with the exponent of
their growth. The published figures are of an Apple M4 Pro. A figure is the median over the batches of
a round, in the quietest of several rounds; beside it stands the best batch. Rows without a goal are ours.
`--page docs/speed.md` writes the tables there. Ends with 1 where a goal was missed on a quiet machine."""

from __future__ import annotations

import argparse
import gc
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import signature
from itertools import starmap
from pathlib import Path
from typing import Any

import figures
from figures import Figure
from fixtures import entity_name, fill, plain_graph
from large import make
from stdio import ECHO, HELLO, Server, request, until_idle

from mcp_memory.assembly import open_space
from mcp_memory.facts import OFFICIAL_LIMITS
from mcp_memory.graph import Graph
from mcp_memory.tools.catalog import catalog
from mcp_memory.tools.exchange import forget_drawings
from mcp_memory.tools.inputs import Addition, EntityInput, RelationInput, Triple

TOOLS = catalog()
Arguments = Callable[[random.Random], tuple[Any, ...]]
Row = tuple[str, str, float | None, Arguments, int, int]
# Rows whose answer is made from the packed graph each time: nothing is kept ready for them.
ANEW = " (made anew)"


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
        ("search_relations (to)", "search_relations", 40, lambda rng: ("", name(rng)), 50, 60),
        ("search_relations (type, 10 far away)", "search_relations", 40, same("", "", "knows", entities, 10), 50, 30),
        ("search_relations (any, 10 far away)", "search_relations", 40, same("", "", "", entities, 10), 50, 30),
        ("read_graph page (10 far away)", "read_graph", None, same("", entities // 2, 10), 50, 30),
        ("neighbors depth 16 (page of 10)", "get_neighbors", None, one("both", "", 16, 0, 10), 1, 10),
        ("neighbors depth 16 (last page)", "get_neighbors", None, one("both", "", 16, entities * 9 // 10, 10), 1, 10),
        ("neighbors depth 16, out (page of 10)", "get_neighbors", None, one("out", "", 16, 0, 10), 1, 5),
        ("search_nodes punctuation", "search_nodes", None, same("-", "", 50, 0), 1, 10),
        ("read_graph (everything)" + ANEW, "read_graph", None, same(), 1, 5),
        ("export dot" + ANEW, "export_graph", None, same("dot"), 1, 5),
        ("export mermaid" + ANEW, "export_graph", None, same("mermaid"), 1, 5),
    ]


def measure(
    call: Callable[..., Any], drawn: list[list[tuple[Any, ...]]], before: Callable[[], object] = lambda: None
) -> tuple[float, float]:
    """Median and minimum over the batches, in microseconds a call. `before` each the clock is not running."""
    took = []
    for batch in drawn:
        before()
        start = time.perf_counter_ns()
        # All calls of a batch from one place: a loop of Python around 0.1 us would be half of what is measured.
        deque(starmap(call, batch), 0)
        took.append((time.perf_counter_ns() - start) / len(batch) / 1000)
    return statistics.median(took), min(took)


@contextmanager
def graph_of(entities: int, folder: Path) -> Iterator[Graph]:
    """The graph of a fresh process on the benchmark graph of this size, standing on its snapshot."""
    path = folder / f"{entities}.db"
    if not path.exists():
        make(str(path), entities, 3 * entities)
        space = open_space(path, limits=OFFICIAL_LIMITS)
        space.settle()
        space.close()
    space = open_space(path, limits=OFFICIAL_LIMITS)
    try:
        yield space.graph()
    finally:
        space.close()


def read_table(entities: int, rounds: int, folder: Path) -> list[Figure]:
    with graph_of(entities, folder) as graph:
        print(f"{entities:,} entities, {graph.relation_count:,} relations")
        for number in range(entities):  # a server that has run for a while: each entity was asked for once
            TOOLS["get_entity"].function(graph, entity_name(number))
        gc.freeze()
        rng = random.Random(13)
        rows = reads(entities)
        taken: dict[str, list[tuple[float, float]]] = {row[0]: [] for row in rows}
        first = {}
        for _ in range(rounds):
            for label, tool, _, arguments, calls, batches in rows:
                call = partial(TOOLS[tool].function, graph)
                drawn = [[arguments(rng) for _ in range(calls)] for _ in range(batches + 2)]
                if label not in first:
                    start = time.perf_counter_ns()
                    call(*drawn[0][0])
                    first[label] = (time.perf_counter_ns() - start) / 1000
                before = partial(forget, graph) if label.endswith(ANEW) else lambda: None
                measure(call, drawn[:2], before)
                taken[label].append(measure(call, drawn[2:], before))
        return [
            told(label, published, taken[label], f"the first took {first[label]:,.0f}")
            for label, _, published, *_ in rows
        ]


# ── growth ───────────────────────────────────────────────────────────────────────────────────────────

SIZES = (4_000, 40_000, 400_000)
# Rows whose answer, or the set of entities that match, is the whole graph or a type of it: there k grows too.
WHOLE = ("read_graph (everything)", "search_nodes", "export", "read_graph filtered", "neighbors depth 16")


def growth_table(rounds: int, folder: Path) -> str:
    """The reading rows at three sizes, nothing kept ready: every answer is made from the packed graph. Markdown."""
    taken: dict[str, list[float]] = {}
    for entities in SIZES:
        with graph_of(entities, folder) as graph:
            gc.freeze()
            rng = random.Random(13)
            for label, tool, _, arguments, calls, _ in reads(entities):
                if label.endswith(ANEW):
                    continue  # as all are here
                call = partial(TOOLS[tool].function, graph)
                is_whole = label.startswith(WHOLE)
                batches = 3 if is_whole else 12
                calls = 1 if is_whole else min(calls, 50)
                medians = []
                for _ in range(rounds):
                    took = []
                    for _ in range(batches):
                        drawn = [arguments(rng) for _ in range(calls)]
                        forget(graph)
                        took.append(measure(call, [drawn])[0])
                    medians.append(statistics.median(took))
                taken.setdefault(label, []).append(min(medians))
            gc.unfreeze()
    sizes = "".join(f"{size:>12,}" for size in SIZES)
    print(f"\nGrowth, p50 in us, nothing kept ready\n{'entities':40}{sizes}   exponent")
    page = [f"| call, p50 µs | {' | '.join(f'{size:,}' for size in SIZES)} | exponent | |", "|---|--:|--:|--:|--:|---|"]
    for label, medians in taken.items():
        shown = "".join(f"{median:12,.1f}" for median in medians)
        note = "the answer, or what matches, grows with the graph" if label.startswith(WHOLE) else ""
        print(f"{label:40}{shown}   {exponent(medians):8.2f}   {note}")
        cells = " | ".join(f"{median:,.1f}" for median in medians)
        page.append(f"| {label} | {cells} | {exponent(medians):.2f} | {note} |")
    return "\n".join(page)


def forget(graph: Graph) -> None:
    """Drop every answer kept ready, so that the next one is made."""
    graph.fragments.clear()
    graph.entity_pages.clear()
    graph.relation_pages.clear()
    forget_drawings(graph)


def exponent(figures: list[float]) -> float:
    """The slope of the line through the logarithms: time grows as the size to this power."""
    xs, ys = [math.log(size) for size in SIZES], [math.log(figure) for figure in figures]
    return statistics.linear_regression(xs, ys).slope


# ── writes ───────────────────────────────────────────────────────────────────────────────────────────


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


def write_table(times: int, rounds: int, folder: Path) -> list[Figure]:
    found = []
    print("\nwrites: on 100 entities with 300 relations, the commit included; `behind` = brought up after the reply")
    for label, tool, published, arguments in WRITES:
        taken, behind = [], []
        for each in range(rounds):
            fixture = Fixture(folder / f"{label} {each}.db")
            took = []
            for number in range(times + 5):
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
            taken.append((statistics.median(took), min(took)))
        found.append(told(label, published, taken, f"behind {statistics.median(behind):,.0f}"))
    return [*found, compaction(times, folder)]


def compaction(times: int, folder: Path) -> Figure:
    """`compact` after 50 of 100 entities were deleted, a new file each time."""
    took = []
    for number in range(max(times // 4, 3)):
        fixture = Fixture(folder / f"compact {number}.db")
        fixture.call("delete_entities", [entity_name(i) for i in range(50)])
        start = time.perf_counter_ns()
        fixture.call("compact")
        took.append((time.perf_counter_ns() - start) / 1000)
        fixture.space.close()
    return told("compact (after 50 deletes)", 12_700, [(statistics.median(took), min(took))], "fsync included")


# ── end to end ───────────────────────────────────────────────────────────────────────────────────────


# What a round trip may take on a quiet machine, in microseconds.
GOALS = {
    "get_entity": 20,
    "neighbors depth 1": 40,
    "find_path": 250,
    "create_entities (1 new)": 50,
    "read_graph (everything)": 15_000,
}
# No model: it would be at work on the texts of 40,000 entities all the while.
MOST = ["--max-entities", "1000", "--max-results", "100000000", "--model", "none"]


def wire_table(entities: int, rounds: int, folder: Path) -> list[Figure]:
    """The same operations as round trips through pipes to a real server, the answer's bytes beside."""
    path = folder / "wire.db"
    make(str(path), entities, 3 * entities)
    space = open_space(path, limits=OFFICIAL_LIMITS)
    space.settle()
    space.close()
    print(f"\nround trips over stdio, {entities:,} entities")
    rng = random.Random(13)
    environment = dict(os.environ)
    echo = Server([sys.executable, "-c", ECHO], environment)
    server = Server([sys.executable, "-m", "mcp_memory", "--memory-file", str(path), *MOST], environment)
    server.ask(request("initialize", HELLO))
    called(server, "graph_stats", {})
    until_idle(server.process.pid)
    lines: dict[str, tuple[Server, Callable[[], bytes], int]] = {"null echo": (echo, lambda: request("ping", {}), 1000)}
    for label, tool, _, arguments, calls, _ in reads(entities):
        if label.endswith(ANEW):
            continue  # only in process can it be forgotten
        lines[label] = server, partial(line_of, tool, arguments, rng), max(calls, 10) if calls < 20 else 400
    writing = OnTheWire(rng, entities)
    for label, tool, make_values, count in writing.rows():
        lines[label] = server, partial(written_line, tool, make_values), count
    taken: dict[str, list[tuple[float, float]]] = {}
    size = {}
    for _ in range(rounds):
        for label, (asked, line, count) in lines.items():
            p50, best, size[label] = trip(asked, line, count)
            taken.setdefault(label, []).append((p50, best))
    found = [told(label, GOALS.get(label), taken[label], f"answer {size[label]:,} bytes") for label in taken]
    print(f"resident memory {server.resident_mb():.0f} MB")
    echo.end()
    server.end()
    return found


class OnTheWire:
    """Writes whose arguments are never the same twice."""

    def __init__(self, rng: random.Random, entities: int) -> None:
        self.rng = rng
        self.entities = entities
        self.number = 0
        self.made: list[str] = []

    def rows(self) -> list[tuple[str, str, Callable[[], dict[str, Any]], int]]:
        return [
            ("create_entities (1 new)", "create_entities", lambda: {"entities": self.new(1)}, 300),
            ("create_entities (100 new)", "create_entities", lambda: {"entities": self.new(100)}, 20),
            ("create_relations (100)", "create_relations", lambda: {"relations": self.triples()}, 20),
            ("add_observations (10 new)", "add_observations", self.added, 200),
            ("upsert_entities (100 new)", "upsert_entities", lambda: {"entities": self.new(100)}, 20),
            ("delete_relations (100 random)", "delete_relations", lambda: {"relations": self.triples()}, 20),
            ("merge_entities", "merge_entities", lambda: {"source": self.made.pop(), "target": self.made[0]}, 50),
            ("delete_entities (100)", "delete_entities", lambda: {"entityNames": self.some()}, 10),
        ]

    def new(self, count: int) -> list[dict[str, Any]]:
        names = [f"new_{self.number}_{i}" for i in range(count)]
        self.number += 1
        self.made += names
        return [{"name": name, "entityType": "bench_type", "observations": ["obs"]} for name in names]

    def any_name(self) -> str:
        return entity_name(self.rng.randrange(self.entities))

    def triples(self) -> list[dict[str, Any]]:
        return [{"from": self.any_name(), "to": self.any_name(), "relationType": "knows"} for _ in range(100)]

    def added(self) -> dict[str, Any]:
        self.number += 1
        return {"name": self.any_name(), "observations": [f"new {self.number} {i}" for i in range(10)]}

    def some(self) -> list[str]:
        taken, self.made = self.made[1:101], self.made[:1] + self.made[101:]
        return taken


def line_of(tool: str, arguments: Arguments, rng: random.Random) -> bytes:
    """The request of a reading row, its arguments under their names."""
    names = [parameter.name for parameter in signature(TOOLS[tool].function).parameters.values()][1:]
    return call_line(tool, dict(zip(map(on_the_wire, names), arguments(rng), strict=False)))


def on_the_wire(name: str) -> str:
    first, *rest = name.strip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def written_line(tool: str, arguments: Callable[[], dict[str, Any]]) -> bytes:
    return call_line(tool, arguments())


def call_line(tool: str, arguments: dict[str, Any]) -> bytes:
    return request("tools/call", {"name": tool, "arguments": arguments})


def called(server: Server, tool: str, arguments: dict[str, Any]) -> bytes:
    return server.ask(call_line(tool, arguments))


def trip(server: Server, line: Callable[[], bytes], count: int) -> tuple[float, float, int]:
    """Median and best round trip of one kind of call, and the bytes of its last answer."""
    took = []
    for number in range(count + 3):
        made = line()
        start = time.perf_counter_ns()
        answer = server.ask(made)
        if number >= 3:
            took.append((time.perf_counter_ns() - start) / 1000)
        assert b'"isError":true' not in answer[:400] and b'"error":{' not in answer[:60], answer[:400]
    return statistics.median(took), min(took), len(answer)


def told(label: str, goal: float | None, taken: list[tuple[float, float]], note: str = "") -> Figure:
    figure = Figure(label, min(p50 for p50, _ in taken), min(best for _, best in taken), goal, note)
    print(figure)
    return figure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=40_000)
    parser.add_argument("--times", type=int, default=40, help="measurements of each write in a round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the quietest is told")
    parser.add_argument("--only", choices=("reads", "writes", "stdio", "growth"))
    parser.add_argument("--page", type=Path, help="write the tables into this page too")
    chosen = parser.parse_args()
    has_failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], list[Figure] | str]] = {
            "reads": lambda: read_table(chosen.entities, chosen.rounds, folder),
            "writes": lambda: write_table(chosen.times, chosen.rounds, folder),
            "stdio": lambda: wire_table(chosen.entities, chosen.rounds, folder),
            "growth": lambda: growth_table(chosen.rounds, folder),
        }
        for part, run in parts.items():
            if chosen.only in (None, part):
                has_failed |= not measured(part, run, chosen.page)
    return int(has_failed)


def measured(part: str, run: Callable[[], list[Figure] | str], page: Path | None) -> bool:
    """One table, on the page too where there is one; were its goals met, as far as that can be said?"""
    before = figures.floor()
    found = run()
    ground = figures.worse(before, figures.floor())
    print(f"{part}: {ground}")
    if page is not None:
        table = found if isinstance(found, str) else figures.table(found)
        figures.write(page, part, f"{table}\n\n{figures.provenance(f'bench/graph.py --only {part}', ground)}")
    return isinstance(found, str) or not ground.is_quiet or not any(figure.is_missed for figure in found)


if __name__ == "__main__":
    sys.exit(main())
