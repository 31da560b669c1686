"""What history costs: keeping what was before, undo, as-of, and the index by entity.

`python bench/history.py [--entities 40000]`: the graph of bench/graph.py with a feed of single calls behind it.
Each row is a median; writes are compared with the same writes by a store that is told to keep no images."""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fixtures import entity_name, fill, plain_graph

from mcp_memory.assembly import open_space
from mcp_memory.facts import OFFICIAL_LIMITS
from mcp_memory.space import Space
from mcp_memory.tools.catalog import catalog
from mcp_memory.tools.inputs import Addition, EntityInput

TOOLS = catalog()


def clocked(call: Callable[[], object]) -> float:
    """Milliseconds."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def told(label: str, took: list[float], more: str = "") -> None:
    print(f"{label:<58}{statistics.median(took):>10.3f} ms  best {min(took):>9.3f}  {more}")


def some_calls(space: Space, count: int, entities: int, rng: random.Random) -> None:
    """A history of single calls: observations added, entities made and deleted, two merged."""
    for number in range(count):
        name = entity_name(rng.randrange(entities))
        match number % 4:
            case 0 | 1:
                call(space, "add_observations", [Addition(name, [f"seen {number}"])])
            case 2:
                call(space, "create_entities", [EntityInput(f"new {number}", "type_0", ["a", "b"])])
            case _:
                call(space, "delete_entities", [f"new {number - 1}"])


def call(space: Space, tool: str, *values: object) -> object:
    named = TOOLS[tool]
    defaults = [default for _, _, default in named.parameters][len(values) :]
    return space.call(named, (*values, *defaults), "bench")


def writes(space: Space, entities: int, rng: random.Random) -> list[float]:
    def one() -> object:
        return call(space, "add_observations", [Addition(entity_name(rng.randrange(entities)), ["told"])])

    took = []
    for _ in range(200):
        took.append(clocked(one))
        space.catch_up()
        call(space, "undo")
        space.catch_up()
    return took


def imported(space: Space, folder: Path, entities: int) -> None:
    """An import taken back, and brought back."""
    source = folder / "import.jsonl"
    with source.open("w") as file:
        for number in range(entities):
            name = f"imported {number}"
            file.write(f'{{"type":"entity","name":"{name}","entityType":"t","observations":["a {name}","b {name}"]}}\n')
        for number in range(entities):
            ends = f'"from":"imported {number}","to":"imported {number // 2}"'
            file.write(f'{{"type":"relation",{ends},"relationType":"follows"}}\n')
    call(space, "migrate", str(source))
    space.settle()
    for label in ("undo of an import", "undo of that undo"):
        told(f"{label} of {entities:,} entities", [clocked(lambda: call(space, "undo"))])
        told("  until all tables followed", [clocked(space.settle)])
    told("  history of everything, 20 calls", [clocked(lambda: call(space, "history")) for _ in range(5)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, default=40_000)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--imported", type=int, default=60_000)
    given = parser.parse_args()
    rng = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        space = open_space(path, limits=OFFICIAL_LIMITS, roots=(folder,))
        filling = clocked(lambda: fill(space, plain_graph(given.entities, 3 * given.entities)))
        history = space.history
        print(f"{given.entities:,} entities and {3 * given.entities:,} relations filled and settled: {filling:,.0f} ms")
        lived = clocked(lambda: some_calls(space, given.calls, given.entities, rng))
        settled = clocked(space.settle)
        print(f"{given.calls:,} calls: {lived:,.0f} ms, and {settled:,.0f} ms until all tables followed")
        last = space.graph().seq
        told("undo of the last call", [clocked(lambda: call(space, "undo")) for _ in range(20)])
        call(space, "delete_entities", [entity_name(0)])
        told("undo of a deletion, and of that", [clocked(lambda: call(space, "undo")) for _ in range(20)])
        told("undo of the last 100 calls", [clocked(lambda: call(space, "undo", None, 100)) for _ in range(2)])
        for back in (1, 100, given.calls):
            space._past_graphs = None
            took = [clocked(lambda back=back: space.graph_at(str(last - back + 1)))]  # type: ignore[misc]
            again = [clocked(lambda back=back: space.graph_at(str(last - back + 1))) for _ in range(20)]  # type: ignore[misc]
            told(f"the graph as it was {back} calls ago, first", took, f"again {statistics.median(again):.3f} ms")
        for label, name in (("history of an entity", entity_name(1)), ("history of everything", "")):
            told(f"{label}, 20 calls", [clocked(lambda name=name: call(space, "history", name)) for _ in range(20)])  # type: ignore[misc]
        with_images = writes(space, given.entities, rng)
        space.history = None
        named = TOOLS["add_observations"]
        without = []
        for number in range(200):
            values = ([Addition(entity_name(rng.randrange(given.entities)), [f"t {number}"])], None, "generic", None)
            without.append(clocked(lambda values=values: space.call(named, values, "bench")))  # type: ignore[misc]
            space.catch_up()
        space.history = history
        told("add_observations, keeping what was", with_images)
        told("add_observations, keeping nothing", without)
        imported(space, Path(folder), given.imported)
        print(f"file: {path.stat().st_size / 1e6:.1f} MB")
        space.close()


if __name__ == "__main__":
    main()
