"""The graphs that figures are measured on, made anew from a seed: nothing is stored, nothing is secret."""

from __future__ import annotations

import random
from collections.abc import Iterator

from mcp_memory.changes import AnyChange, EntityCreated, Plan, RelationCreated
from mcp_memory.space import Space

WORDS = [
    a + b
    for a in "ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo ya".split()
    for b in "lan mer nos pit rad sol tun ver wex zal".split()
]


def entity_name(number: int) -> str:
    return f"entity_{number}"


def plain_graph(entities: int, relations: int, seed: int = 7) -> Iterator[AnyChange]:
    """The Rust program's benchmark graph: 32 types, one observation each, relations of one type at random."""
    rng = random.Random(seed)
    for number in range(entities):
        kind = f"type_{rng.randrange(32)}"
        yield EntityCreated(
            number + 1, entity_name(number), kind, first=number + 1, texts=[f"obs_{rng.randrange(10**6)}"]
        )
    yield from _relations(rng, entities, relations, ["knows"])


def rich_graph(entities: int, relations: int, seed: int = 7) -> Iterator[AnyChange]:
    """A graph as people have them: five observations of six words, ten types of relations."""
    rng = random.Random(seed)
    for number in range(entities):
        texts = [" ".join(rng.choices(WORDS, k=6)) + f" {number}.{i}" for i in range(5)]
        yield EntityCreated(
            number + 1, entity_name(number), f"type_{rng.randrange(32)}", first=number * 5 + 1, texts=texts
        )
    yield from _relations(rng, entities, relations, [f"relation_{i}" for i in range(10)])


def _relations(rng: random.Random, entities: int, relations: int, kinds: list[str]) -> Iterator[AnyChange]:
    seen: set[tuple[int, int, str]] = set()
    for _ in range(relations):
        triple = (rng.randrange(entities) + 1, rng.randrange(entities) + 1, rng.choice(kinds))
        if triple not in seen:
            seen.add(triple)
            yield RelationCreated(len(seen), *triple)


def fill(space: Space, changes: Iterator[AnyChange]) -> None:
    """Commit these to an empty space, and bring its projections up."""
    space.commit(lambda graph: Plan(list(changes)), "bench", "fill")
    space.settle()
