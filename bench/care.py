"""What looking after a memory costs: `.venv-dev/bin/python bench/care.py`.

Adding one observation to an entity with 1, 100 and 300 others: until the reply, and until it was compared with all
of them and flagged. The predecessor took 0.08, 3.7 and 9.4 s for it, because it read everything again (its own
figures, from its code run here). Medians; the ratios are what counts on a busy machine."""

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
from mcp_memory.changes import EntityCreated
from mcp_memory.desk import Desk
from mcp_memory.facts import Limits
from mcp_memory.space import Space
from mcp_memory.tools.catalog import catalog

SIZES = (1, 100, 300)
ROUNDS = 15
ENTITIES, LARGE, LARGE_SIZE = 10_000, 50, 40
PATIENCE = 300


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=8))


def caller(space: Space) -> Callable[..., Any]:
    desk = Desk(space, catalog(), Limits(observations=10_000))

    def call(tool: str, **arguments: Any) -> Any:
        answer = desk.call(desk.tools[tool], msgspec.json.encode(arguments))
        assert not answer.is_error, answer.text
        return msgspec.json.decode(answer.structured or b"")

    return call


def milliseconds(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        taken.append(time.perf_counter() - started)
    return median(taken) * 1000


def adding(folder: Path) -> None:
    print("adding one observation to an entity with that many others, ms")
    print(f"{'others':>8} {'until the reply':>18} {'until it is flagged':>22}")
    rng = random.Random(5)
    first: tuple[float, float] | None = None
    for size in SIZES:
        space = open_space(folder / f"adding-{size}.db", flags=True)
        call = caller(space)
        call("create_entities", entities=[{"name": "E", "observations": [sentence(rng) for _ in range(size)]}])
        assert space.caretaker is not None
        caretaker = space.caretaker
        assert caretaker.hurry(PATIENCE)
        replies, flags = [], []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            call("add_observations", name="E", observations=[sentence(rng)])
            replies.append(time.perf_counter() - started)
            assert caretaker.hurry(PATIENCE)
            flags.append(time.perf_counter() - started)
        reply, flag = median(replies) * 1000, median(flags) * 1000
        first = first or (reply, flag)
        print(f"{size:8} {reply:10.3f} ({reply / first[0]:.2f}x) {flag:14.2f} ({flag / first[1]:.2f}x)")
        space.close()


def looking(folder: Path) -> None:
    rng = random.Random(7)
    space = open_space(folder / "looking.db")
    number = iter(range(1, 10**9))

    def changes() -> Any:
        for one in range(ENTITIES):
            size = LARGE_SIZE if one < LARGE else rng.randrange(1, 8)
            first = next(number)
            texts = [sentence(rng) for _ in range(size)]
            for _ in range(size - 1):
                next(number)
            yield EntityCreated(one + 1, f"E{one}", "Thing", first=first, texts=texts)

    fill(space, changes())
    call = caller(space)
    print(f"\n{ENTITIES:,} entities, {LARGE} of them with {LARGE_SIZE} observations, ms")
    space.model = "none"
    print(f"{'consolidation_report, by words':>40} {milliseconds(lambda: call('consolidation_report'), 5):10.1f}")
    few = open_space(folder / "looking.db")
    few.customs = type(few.customs)(split_thresholds={"*": 1000})
    report = caller(few)
    report("consolidation_report")
    print(
        f"{'consolidation_report, nothing large':>40} {milliseconds(lambda: report('consolidation_report'), 5):10.1f}"
    )
    few.close()
    print(f"{'find_split_candidates, by words':>40} {milliseconds(lambda: call('find_split_candidates'), 3):10.1f}")
    space.model = "auto"
    name = "E0"
    for tool in ("analyze_entity_split", "find_duplicate_observations"):
        call(tool, entity_name=name)
        taken = milliseconds(lambda tool=tool: call(tool, entity_name=name), 3)  # type: ignore[misc]
        print(f"{tool + ', 40 unread texts':>40} {taken:10.1f}")
    for _ in range(1000):
        call("add_reflection", target_type="global", content=sentence(rng))
    space.model = "none"
    taken = milliseconds(lambda: call("search_reflections", query=sentence(rng)), 5)
    print(f"{'search_reflections, 1,000, by words':>40} {taken:10.1f}")
    space.close()


def comparing() -> None:
    from mcp_memory.curation.duplicates import matches
    from mcp_memory.curation.topics import topics_of
    from mcp_memory.embedding.numerics import numpy

    np, rng = numpy(), random.Random(9)
    print("\ncomparing and grouping alone, with vectors, ms")
    print(f"{'texts':>8} {'one with all':>14} {'all with all':>14} {'topics':>10}")
    for size in (100, 300, 1000, 3000):
        texts = [sentence(rng) for _ in range(size)]
        vectors = np.random.default_rng(size).normal(size=(size, 512)).astype("f4")
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        one = milliseconds(lambda t=texts, v=vectors: matches(t, v, since=len(t) - 1), 3)  # type: ignore[misc]
        every = milliseconds(lambda t=texts, v=vectors: matches(t, v), 3)  # type: ignore[misc]
        topics = milliseconds(lambda t=texts, v=vectors: topics_of(t, v), 3)  # type: ignore[misc]
        print(f"{size:8} {one:14.1f} {every:14.1f} {topics:10.1f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        adding(Path(place))
        looking(Path(place))
    comparing()
