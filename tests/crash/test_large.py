"""A memory large enough to be answered from its tables at first and from a snapshot the next time."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.stores.sqlite.snapshot import LARGE
from tests.crash.harness import Promises, Refused, Server, entity, findings

SNAPSHOT = "memory.db-graph"
PATIENCE = 30.0


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a large memory and its snapshot, left by servers that were killed."""
    folder = tmp_path_factory.mktemp("large")
    path = folder / "memory.db"
    lines = ({"type": "entity", "name": f"thing {number}", "entityType": "Thing"} for number in range(LARGE + 100))
    source = folder / "source.jsonl"
    source.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    with Server(path, "--roots", str(folder)) as server:
        server.call("migrate", source_path=str(source))
        server.close()
    source.unlink()
    with Server(path) as server:
        server.call("create_entities", entities=[{"name": "last"}])
        deadline = time.monotonic() + PATIENCE
        while not (folder / SNAPSHOT).exists():
            assert time.monotonic() < deadline, server.stderr()
            time.sleep(0.01)
        server.call("create_entities", entities=[{"name": "after the snapshot"}])
        server.kill()
    return folder


@pytest.fixture
def path(filled: Path, tmp_path: Path) -> Path:
    shutil.copytree(filled, tmp_path / "copy")
    (tmp_path / "copy" / "memory.db-shm").unlink()
    return tmp_path / "copy" / "memory.db"


def cut(path: Path, chance: random.Random) -> None:
    with open(path, "r+b") as file:
        file.truncate(chance.randrange(path.stat().st_size))


def flip(path: Path, chance: random.Random) -> None:
    """A bit of its beginning, which says what follows."""
    place = chance.randrange(100)
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ (1 << chance.randrange(8))]))


@pytest.mark.parametrize("damage", [cut, flip])
def test_a_damaged_snapshot_is_not_believed(damage: Callable[[Path, random.Random], None], path: Path) -> None:
    chance = random.Random(11)
    snapshot = path.with_name(SNAPSHOT)
    good = snapshot.read_bytes()
    for _ in range(5):
        snapshot.write_bytes(good)
        damage(snapshot, chance)
        space = open_space(path)
        graph = space.graph()
        assert graph.entity_count == LARGE + 102
        assert graph["thing 7"].name == "thing 7" and "after the snapshot" in graph
        space.close()
    space = open_space(path)
    assert findings(space) == []
    space.close()


def test_a_snapshot_of_another_history_is_not_believed(path: Path, tmp_path: Path) -> None:
    with Server(tmp_path / "other.db") as server:
        server.call("create_entities", entities=[{"name": "other"}])
        server.close()
    path.with_name("memory.db-wal").unlink()
    shutil.copyfile(tmp_path / "other.db", path)
    space = open_space(path)
    assert [one.name for one in space.graph().entities()] == ["other"]
    assert findings(space) == []
    space.close()


def test_servers_that_are_killed_over_a_snapshot_lose_nothing(path: Path) -> None:
    promises = Promises()
    for number in range(4):
        path.with_name(SNAPSHOT).unlink(missing_ok=True)
        with Server(path) as one, Server(path) as other:
            for server in (one, other):
                server.send("open_nodes", names=["thing 1"])
                promises.ask(server, entity(f"{number} of {id(server)}", "seen"))
            promises.collect()
            time.sleep(0.05 * number)
            one.kill()
            other.kill()

    assert len(promises.acknowledged) == 8
    promises.are_kept_in(path)


def test_tables_that_are_damaged_are_told_about_while_the_graph_loads(path: Path) -> None:
    path.with_name(SNAPSHOT).unlink()
    space = open_space(path)
    space.settle()
    space.close()
    path.with_name(SNAPSHOT).unlink(missing_ok=True)
    with open(path, "r+b") as file:
        file.seek(8192)
        file.write(b"\xa5" * (path.stat().st_size - 16384))
    with Server(path) as server:
        idents = [server.send("open_nodes", names=[f"thing {number}"]) for number in range(20)]
        for ident in idents:
            with pytest.raises(Refused) as refused:
                server.outcome(ident)
            assert refused.value.code == "store_damaged"
