"""What meaning costs: `.venv-dev/bin/python bench/meaning.py [nearest] [bulk] [first] [search] [--rows N ...]`.

    nearest   the ten nearest of 10,000, 100,000 and 1,000,000 vectors, beside sqlite-vec's vec0 on the same ones;
              recall against an exact float32 search. Vectors are clustered, as texts are by their topics.
              Goals: 0.5, 3 and 12 ms (p50), recall at least 0.998
    bulk      texts a second that a server embeds behind an import, beside the model alone in batches. Goal: 90 %
    first     from starting a server on a memory of 10,000 and 40,000 texts to its first answer by meaning. Goal: 1.5 s
    search    search_semantic over stdio at 2,000 and 40,000 entities, less what it costs to encode the question.
              Goal: 2 ms (p50)

The first column is time as it passes. Where other work shares the machine, look at processor time beside it."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from fixtures import WORDS
from stdio import HELLO, Contender, Server, request, until_idle

from mcp_memory.search.matrix import Matrix

DIMENSION = 512
ROWS = (10_000, 100_000, 1_000_000)
QUERIES, MOST = 60, 10
# vec0 takes a tenth of a second and more for each.
PEER_QUERIES = 10
PEER_ROWS = 100_000
NEAREST_GOALS = {10_000: 0.5, 100_000: 3.0, 1_000_000: 12.0}
TEXTS, TURNS = 4000, 5
SEARCHES = 60
FIRST_TEXTS = (10_000, 40_000)
SEARCHED = (2000, 40_000)
# Texts that one call may bring.
ENTITIES_A_CALL, TEXTS_AN_ENTITY = 50, 5
PATIENCE = 600


# ── the ten nearest ──────────────────────────────────────────────────────────────────────────────


def clustered(count: int, seed: int) -> Any:
    """Topics, and texts around them; a fifth belongs nowhere."""
    import numpy as np

    dice = np.random.default_rng(seed)
    topics = np.random.default_rng(0).normal(size=(2000, DIMENSION)).astype(np.float32)
    rows = np.empty((count, DIMENSION), np.float32)
    for start in range(0, count, 50_000):
        size = min(50_000, count - start)
        part = dice.normal(size=(size, DIMENSION)).astype(np.float32)
        part += topics[dice.integers(0, len(topics), size)] * (dice.random(size) > 0.2)[:, None]
        rows[start : start + size] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return rows


def nearest(sizes: Sequence[int]) -> None:
    print(f"{'rows':>12} {'p50':>9} {'processor':>10} {'goal':>7} {'recall@10':>10}   {'vec0 p50':>9} {'recall':>7}")
    for size in sizes:
        print(among(size, Matrix(DIMENSION)), flush=True)


def among(size: int, matrix: Matrix) -> str:
    rows, queries = clustered(size, 1), clustered(QUERIES, 2)
    for start in range(0, size, 50_000):
        part = rows[start : start + 50_000]
        matrix.put(range(start + 1, start + len(part) + 1), part)
    matrix.nearest(queries[0], MOST)
    exact = exactly(rows, queries)
    found, wall, cpu = timed(lambda query: [ident for ident, _ in matrix.nearest(query, MOST)], queries)
    peer = vec0(rows, queries[:PEER_QUERIES], exact) if size <= PEER_ROWS else " " * 12 + "not measured"
    goal = f"{NEAREST_GOALS[size]:.1f} ms" if size in NEAREST_GOALS else ""
    return f"{size:>12,} {wall:>6.2f} ms {cpu:>7.2f} ms {goal:>7} {recall(found, exact):>10.4f}   {peer}"


def exactly(rows: Any, queries: Any) -> list[set[int]]:
    import numpy as np

    scores = np.concatenate([queries @ rows[start : start + 50_000].T for start in range(0, len(rows), 50_000)], axis=1)
    best = np.argpartition(-scores, MOST, axis=1)[:, :MOST] + 1
    return [set(row) for row in best.tolist()]


def timed(find: Callable[[Any], list[int]], queries: Any) -> tuple[list[list[int]], float, float]:
    """What it finds, and the median time and processor time of one question, in milliseconds."""
    found, walls, cpus = [], [], []
    for query in queries:
        wall, cpu = time.perf_counter(), time.thread_time()
        found.append(find(query))
        walls.append(time.perf_counter() - wall)
        cpus.append(time.thread_time() - cpu)
    return found, median(walls) * 1000, median(cpus) * 1000


def recall(found: list[list[int]], exact: list[set[int]]) -> float:
    shares = [len(right & set(one)) / MOST for one, right in zip(found, exact, strict=False)]
    return sum(shares) / len(shares)


def vec0(rows: Any, queries: Any, exact: list[set[int]]) -> str:
    import apsw

    from mcp_memory.stores.sqlite.connection import load_vectors

    connection = apsw.Connection(":memory:")
    load_vectors(connection)
    connection.execute(f"create virtual table peer using vec0(embedding float[{DIMENSION}] distance_metric=cosine)")
    with connection:
        connection.executemany(
            "insert into peer (rowid, embedding) values (?, ?)",
            ((number, row.tobytes()) for number, row in enumerate(rows, 1)),
        )
    ask = f"select rowid from peer where embedding match ? and k = {MOST} order by distance"
    found, wall, _ = timed(lambda query: [row for (row,) in connection.execute(ask, (query.tobytes(),))], queries)
    connection.close()
    return f"{wall:>6.1f} ms {recall(found, exact):>7.4f}"


# ── behind an import ─────────────────────────────────────────────────────────────────────────────


def sentences(count: int, seed: int = 3) -> Iterator[str]:
    dice = random.Random(seed)
    return (" ".join(dice.choices(WORDS, k=dice.randrange(4, 20))) for _ in range(count))


def call(server: Server, tool: str, arguments: Any) -> Any:
    answer = json.loads(server.ask(request("tools/call", {"name": tool, "arguments": arguments})))
    assert not answer["result"].get("isError"), answer
    return answer["result"]["structuredContent"]


def filled(server: Server, entities: int, texts: Sequence[str], name: str = "entity") -> None:
    each = len(texts) // entities
    made = [
        {"name": f"{name} {n}", "entityType": "Note", "observations": list(texts[n * each : (n + 1) * each])}
        for n in range(entities)
    ]
    for start in range(0, entities, ENTITIES_A_CALL):
        call(server, "create_entities", {"entities": made[start : start + ENTITIES_A_CALL]})


def ours(file: str) -> Contender:
    return Contender("ours", [sys.executable, "-m", "mcp_memory"], file, {})


def kept(file: str) -> int:
    """How many texts have a vector in this database."""
    import apsw

    connection = apsw.Connection(file, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found: int = connection.execute("select count(*) from text_vectors").get
    except apsw.SQLError:
        return 0
    finally:
        connection.close()
    return found


def until_kept(file: str, count: int) -> None:
    end = time.monotonic() + PATIENCE
    while kept(file) < count:
        if time.monotonic() > end:
            raise SystemExit("the server does not embed what it was given")
        time.sleep(0.02)


def bulk(folder: str) -> None:
    from mcp_memory.embedding import engine

    texts = list(dict.fromkeys(sentences(TEXTS)))
    found = engine()
    assert found is not None
    found.encode(texts[:64])
    size = len(texts) // TURNS // TEXTS_AN_ENTITY * TEXTS_AN_ENTITY
    through, alone = [], []
    file = os.path.join(folder, "bulk.db")
    with ours(file).running() as server:
        server.ask(request("initialize", HELLO))
        call(
            server, "create_entities", {"entities": [{"name": "first", "entityType": "Note", "observations": ["one"]}]}
        )
        call(server, "search_semantic", {"query": "anything"})  # from here on it embeds as things are written
        # Turn by turn on the same machine: what else goes on there slows both.
        for turn in range(TURNS):
            some = texts[turn * size : (turn + 1) * size]
            before, began = kept(file), time.perf_counter()
            filled(server, size // TEXTS_AN_ENTITY, some, f"turn {turn}")
            until_kept(file, before + size)
            through.append((kept(file) - before) / (time.perf_counter() - began))
            until_kept(file, before + size + size // TEXTS_AN_ENTITY)  # the texts of entities
            began = time.perf_counter()
            found.encode(some)
            alone.append(size / (time.perf_counter() - began))
    ratio = median(one / other for one, other in zip(through, alone, strict=True))
    print(
        f"model alone {median(alone):,.0f} texts/s, through the server {median(through):,.0f}: {ratio:.0%} (goal 90 %)"
    )


# ── the first answer ─────────────────────────────────────────────────────────────────────────────


def first(folder: str) -> None:
    for size in FIRST_TEXTS:
        file = os.path.join(folder, f"first-{size}.db")
        texts = list(sentences(size, 4))
        with ours(file).running() as server:
            server.ask(request("initialize", HELLO))
            filled(server, size // TEXTS_AN_ENTITY, texts)
            until_embedded(server, file, texts)
        seconds, used = [], []
        for number in range(5):
            began, before = time.perf_counter(), processor_time()
            with ours(file).running() as server:
                server.ask(request("initialize", HELLO))
                call(server, "search_semantic", {"query": f"{WORDS[number]} and {WORDS[-number]}"})
                seconds.append(time.perf_counter() - began)
            used.append(processor_time() - before)
        took = f"{median(seconds):.2f} s, best {min(seconds):.2f} (goal 1.5), processor time {median(used):.2f} s"
        print(f"first answer after a cold start, {size:,} texts: {took}", flush=True)


def processor_time() -> float:
    """Of the servers that have ended."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def until_embedded(server: Server, file: str, texts: Sequence[str]) -> None:
    call(server, "search_semantic", {"query": "anything"})
    until_kept(file, len(set(texts)))
    until_idle(server.process.pid)  # what is left are the texts of entities, and comparing


# ── a search ─────────────────────────────────────────────────────────────────────────────────────


def search(folder: str) -> None:
    from mcp_memory.embedding import engine

    found = engine()
    assert found is not None
    found.encode(["the first"], "query")
    for entities in SEARCHED:
        file = os.path.join(folder, f"search-{entities}.db")
        texts = list(sentences(entities, 5))
        asked = list(sentences(SEARCHES, 6))
        with ours(file).running() as server:
            server.ask(request("initialize", HELLO))
            filled(server, entities, texts)
            until_embedded(server, file, texts)
            for _ in range(3):
                call(server, "search_semantic", {"query": "warm up"})
            took, encoding, before = [], [], used_by(server)
            for text in asked:  # turn by turn, each question once
                line = request("tools/call", {"name": "search_semantic", "arguments": {"query": text}})
                began = time.perf_counter()
                answer = server.ask(line)
                took.append(time.perf_counter() - began)
                assert b'"results"' in answer
                began = time.perf_counter()
                found.encode([text])
                encoding.append(time.perf_counter() - began)
            used = (used_by(server) - before) / len(asked) * 1000
        whole, part = median(took) * 1000, median(encoding) * 1000
        print(f"{entities:>7,} entities: {whole:.2f} ms, of which the question's vector {part:.2f} ms: ", end="")
        print(f"search {whole - part:.2f} ms (goal 2); the server's processor time for both {used:.2f} ms", flush=True)


def used_by(server: Server) -> float:
    """Seconds of processor time, where /proc tells them."""
    try:
        told = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    options = argparse.ArgumentParser(description="What meaning costs.")
    options.add_argument("parts", nargs="*", choices=["nearest", "bulk", "first", "search", []], default=[])
    options.add_argument("--rows", type=int, nargs="*", default=ROWS)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        parts: dict[str, Callable[[], None]] = {
            "nearest": lambda: nearest(given.rows),
            "bulk": lambda: bulk(folder),
            "first": lambda: first(folder),
            "search": lambda: search(folder),
        }
        for name, part in parts.items():
            if not given.parts or name in given.parts:
                part()


if __name__ == "__main__":
    main()
