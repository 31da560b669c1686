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


class Grown:
    """A memory with one entity of so many observations, and what adding one more took."""

    def __init__(self, folder: Path, size: int) -> None:
        self.size = size
        self.rng = random.Random(size)
        self.space = open_space(folder / f"adding-{size}.db", flags=True)
        self.call = caller(self.space)
        texts = [sentence(self.rng) for _ in range(size)]
        self.call("create_entities", entities=[{"name": "E", "observations": texts}])
        self.replies: list[float] = []
        self.flags: list[float] = []
        self.work: list[float] = []
        self.add()
        del self.replies[:], self.flags[:], self.work[:]

    def add(self) -> None:
        caretaker = self.space.caretaker
        assert caretaker is not None
        started, worked = time.perf_counter(), time.process_time()
        self.call("add_observations", name="E", observations=[sentence(self.rng)])
        self.replies.append(time.perf_counter() - started)
        assert caretaker.hurry(PATIENCE)
        self.flags.append(time.perf_counter() - started)
        self.work.append(time.process_time() - worked)


def adding(folder: Path) -> None:
    print("adding one observation to an entity with that many others, ms")
    print(f"{'others':>8} {'until the reply':>18} {'until it is flagged':>22} {'processor time':>18}")
    grown = [Grown(folder, size) for size in SIZES]
    # In turns: what else the machine does meanwhile happens to all three.
    for _ in range(ROUNDS):
        for one in grown:
            one.add()
    first = [median(each) for each in (grown[0].replies, grown[0].flags, grown[0].work)]
    for one in grown:
        taken = [median(each) for each in (one.replies, one.flags, one.work)]
        told = [f"{each * 1000:10.2f} ({each / base:.2f}x)" for each, base in zip(taken, first, strict=True)]
        print(f"{one.size:8} " + "  ".join(told))
        one.space.close()


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
    print(
        f"{'consolidation_report, by words, first':>40} {milliseconds(lambda: call('consolidation_report'), 1):10.1f}"
    )
    print(f"{'and again':>40} {milliseconds(lambda: call('consolidation_report'), 5):10.1f}")
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
    call("analyze_entity_split", entity_name=f"E{LARGE - 1}")  # loads the model
    for which, tool in enumerate(("analyze_entity_split", "find_duplicate_observations")):
        for again in ("40 unread texts", "and again"):
            taken = milliseconds(lambda: call(tool, entity_name=f"E{which}"), 1)  # noqa: B023
            print(f"{f'{tool}, {again}':>40} {taken:10.1f}")
    for _ in range(1000):
        call("add_reflection", target_type="global", content=sentence(rng))
    space.model = "none"
    taken = milliseconds(lambda: call("search_reflections", query=sentence(rng)), 5)
    print(f"{'search_reflections, 1,000, by words':>40} {taken:10.1f}")
    space.close()
    with_a_backlog(folder / "looking.db")


def with_a_backlog(file: Path) -> None:
    """As a server is after an import: the model is loaded, and nothing has been compared yet."""
    space = open_space(file, flags=True)
    call = caller(space)
    for when in ("first", "and again", "and again"):
        took = milliseconds(lambda: call("consolidation_report"), 1)
        pending = call("consolidation_report")["summary"].get("flags_pending", 0)
        print(f"{f'consolidation_report, {pending:,} to flag, {when}':>55} {took:10.1f}")
    space.close()


def comparing() -> None:
    from mcp_memory.curation.duplicates import compare
    from mcp_memory.curation.topics import topics_of
    from mcp_memory.embedding.numerics import numpy

    np, rng = numpy(), random.Random(9)
    print("\ncomparing and grouping alone, with vectors, ms")
    print(f"{'texts':>8} {'one with all':>14} {'all with all':>14} {'topics':>10}")
    for size in (100, 300, 1000, 3000):
        texts = [sentence(rng) for _ in range(size)]
        vectors = np.random.default_rng(size).normal(size=(size, 512)).astype("f4")
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        one = milliseconds(lambda t=texts, v=vectors: compare(t, v, since=len(t) - 1), 3)  # type: ignore[misc]
        every = milliseconds(lambda t=texts, v=vectors: compare(t, v), 3)  # type: ignore[misc]
        topics = milliseconds(lambda t=texts, v=vectors: topics_of(t, v), 3)  # type: ignore[misc]
        print(f"{size:8} {one:14.1f} {every:14.1f} {topics:10.1f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        adding(Path(place))
        looking(Path(place))
    comparing()
