"""What is offered beside the tools, on a large memory: `.venv-dev/bin/python bench/offered.py`.

Completing a name, a type and a relation type, reading the resources, and the lists, over 40,000 entities: one
request as a client's bytes until the bytes of its answer, in process. The names of cities and people are made up.
Medians and the slowest of a hundred; completions shall take less than a millisecond."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from fixtures import WORDS, fill

from mcp_memory.assembly import open_space
from mcp_memory.changes import EntityCreated, RelationCreated
from mcp_memory.desk import Desk
from mcp_memory.facts import Limits
from mcp_memory.tools.catalog import catalog
from mcp_memory.wire import Offer, Session

ENTITIES, RELATIONS = 40_000, 120_000
TYPES, RELATION_TYPES = 200, 100
ROUNDS = 100
MILLISECOND = 1.0


def changes(rng: random.Random) -> Any:
    for one in range(1, ENTITIES + 1):
        name = f"{rng.choice(WORDS).capitalize()} {rng.choice(WORDS)} {one}"
        texts = [" ".join(rng.choices(WORDS, k=8))]
        yield EntityCreated(one, name, f"Type{rng.randrange(TYPES)}", first=one, texts=texts)
    seen: set[tuple[int, int, int]] = set()
    while len(seen) < RELATIONS:
        triple = (rng.randrange(ENTITIES) + 1, rng.randrange(ENTITIES) + 1, rng.randrange(RELATION_TYPES))
        if triple not in seen:
            seen.add(triple)
            source, target, kind = triple
            yield RelationCreated(len(seen), source, target, f"relates_{kind}")


def requests(rng: random.Random) -> dict[str, Callable[[], tuple[str, dict[str, Any]]]]:
    """What is asked, by its name: each time with other letters."""

    def completing(uri: str, variable: str, value: Callable[[], str]) -> Callable[[], tuple[str, dict[str, Any]]]:
        reference = {"type": "ref/resource", "uri": uri}
        return lambda: (
            "completion/complete",
            {"ref": reference, "argument": {"name": variable, "value": value()}},
        )

    def reading(uri: str) -> Callable[[], tuple[str, dict[str, Any]]]:
        return lambda: ("resources/read", {"uri": uri})

    def letters(most: int) -> str:
        return rng.choice(WORDS)[: rng.randrange(most + 1)]

    return {
        "complete a name": completing("memory://entity/{name}", "name", lambda: letters(4)),
        "complete a type": completing("memory://type/{entityType}", "entityType", lambda: f"type{letters(0)}1"),
        "complete a relation type": completing(
            "memory://relation/{relationType}", "relationType", lambda: f"relates_{rng.randrange(10)}"
        ),
        "read the graph, as a map": reading("memory://knowledge-graph"),
        "read what is recent": reading("memory://recent"),
        "read the statistics": reading("memory://stats"),
        "list the tools": lambda: ("tools/list", {}),
        "list the prompts": lambda: ("prompts/list", {}),
    }


def main() -> None:
    rng = random.Random(6)
    with tempfile.TemporaryDirectory() as folder:
        space = open_space(Path(folder) / "memory.db")
        fill(space, changes(rng))
        session = Session(Offer(Desk(space, catalog(), Limits()), {"name": "memory", "version": "0"}))
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
        ask(session, "initialize", hello)
        print(f"{ENTITIES:,} entities, {RELATIONS:,} relations, ms")
        print(f"{'':>28} {'first':>9} {'median':>9} {'slowest':>9}")
        slow = []
        for what, made in requests(rng).items():
            first = ask(session, *made())
            taken = [ask(session, *made()) for _ in range(ROUNDS)]
            print(f"{what:>28} {first:9.3f} {median(taken):9.3f} {max(taken):9.3f}")
            if what.startswith("complete") and median(taken) >= MILLISECOND:
                slow.append(what)
        space.close()
    print("completions take " + (f"too long: {', '.join(slow)}" if slow else "less than a millisecond"))


def ask(session: Session, method: str, params: dict[str, Any]) -> float:
    line = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    started = time.perf_counter()
    said = session.receive(line)
    taken = (time.perf_counter() - started) * 1000
    assert b'"result"' in said[-1][:60] or b'"result"' in said[-1], said[-1][:300]
    return taken


if __name__ == "__main__":
    main()
