"""Damaged files: told about in plain words, left as they are, and served again when the good file is back."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_memory.assembly import open_space
from tests.crash.harness import Promises, Refused, Server, entity, findings, names_in

NAMES = [f"thing {number}" for number in range(300)]
HEADER = 100


def fill(server: Server) -> None:
    for start in range(0, len(NAMES), 50):
        server.call("create_entities", entities=[{"name": name} for name in NAMES[start : start + 50]])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A memory that was closed as it should be."""
    path = tmp_path / "memory.db"
    with Server(path) as server:
        fill(server)
        server.close()
    return path


def overwrite(path: Path) -> None:
    with open(path, "r+b") as file:
        file.write(b"\xa5" * HEADER)


def cut(share: float) -> Callable[[Path], None]:
    def do(path: Path) -> None:
        with open(path, "r+b") as file:
            file.truncate(int(path.stat().st_size * share))

    return do


def everything_in(folder: Path) -> dict[str, bytes]:
    """What stands in the files that hold facts; the -shm is SQLite's own business."""
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.suffix in (".db", ".db-wal") and file.stat().st_size
    }


def assert_refused(server: Server) -> None:
    for tool, arguments in (("read_graph", {}), ("create_entities", {"entities": [{"name": "new"}]})):
        with pytest.raises(Refused) as refused:
            server.call(tool, **arguments)
        assert refused.value.code == "store_damaged"
        assert "left as" in str(refused.value) and "backup" in str(refused.value)


DAMAGES = {"header": overwrite, "cut at a tenth": cut(0.1), "cut in the middle": cut(0.5), "cut at the end": cut(0.99)}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_refused_untouched_and_served_when_a_good_one_is_back(
    damage: Callable[[Path], None], path: Path, tmp_path: Path
) -> None:
    good = tmp_path / "good"
    shutil.copyfile(path, good)
    damage(path)
    before = everything_in(tmp_path)
    with Server(path) as server:
        assert_refused(server)
        assert_refused(server)
        assert everything_in(tmp_path) == before
        good.replace(path)
        server.call("create_entities", entities=[{"name": "new"}])
        assert server.close()[0] == 0

    assert names_in(path) == [*NAMES, "new"]


@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
def test_a_cut_file_keeps_the_changes_that_had_not_yet_reached_it(share: float, path: Path, tmp_path: Path) -> None:
    with Server(path) as server:
        server.call("create_entities", entities=[{"name": "last"}])
        server.kill()
    good = tmp_path / "good"
    shutil.copyfile(path, good)
    cut(share)(path)
    before = everything_in(tmp_path)
    with Server(path) as server:
        assert_refused(server)
        assert_refused(server)
        assert server.close()[0] == 0
    assert everything_in(tmp_path) == before

    shutil.copyfile(good, path)
    assert names_in(path) == [*NAMES, "last"]


@pytest.mark.parametrize("ending", ["killed", "closed"])
def test_a_header_overwritten_under_a_server_takes_no_write_with_it(ending: str, path: Path) -> None:
    promises = Promises()
    with Server(path) as server:
        promises.ask(server, entity("before"))
        promises.collect()
        header = path.read_bytes()[:HEADER]
        overwrite(path)
        for number in range(20):
            promises.ask(server, entity(f"after {number}"))
        promises.collect()
        server.kill() if ending == "killed" else server.close()
    if path.read_bytes()[:HEADER] == b"\xa5" * HEADER:
        with open(path, "r+b") as file:
            file.write(header)

    promises.are_kept_in(path)


def test_a_file_cut_under_a_server_takes_no_write_with_it_when_the_good_one_is_back(path: Path, tmp_path: Path) -> None:
    promises = Promises()
    with Server(path) as server:
        promises.ask(server, entity("before"))
        promises.collect()
        good = path.read_bytes()
        cut(0.3)(path)
        for number in range(20):
            promises.ask(server, entity(f"after {number}"))
        promises.collect()
        server.kill()
    with open(path, "r+b") as file:
        file.write(good)

    promises.are_kept_in(path)


def test_of_a_cut_wal_the_beginning_counts(tmp_path: Path) -> None:
    chance = random.Random(7)
    path = tmp_path / "memory.db"
    promises = Promises()
    with Server(path) as server:
        for name in NAMES:
            promises.ask(server, entity(name, "seen"))
        promises.wait_for(server, len(NAMES))
        server.kill()
    promises.collect()
    wal = path.with_name("memory.db-wal").read_bytes()
    found = []
    for number, size in enumerate([*sorted(chance.sample(range(len(wal)), 12)), len(wal)]):
        place = tmp_path / str(number)
        place.mkdir()
        shutil.copyfile(path, place / "memory.db")
        (place / "memory.db-wal").write_bytes(wal[:size])
        found.append(names_in(place / "memory.db"))

    assert [names == NAMES[: len(names)] for names in found] == [True] * len(found)
    assert [len(names) for names in found] == sorted(len(names) for names in found)
    assert found[-1] == NAMES


def test_of_a_wal_with_a_wrong_byte_the_part_before_it_counts(tmp_path: Path) -> None:
    chance = random.Random(8)
    path = tmp_path / "memory.db"
    with Server(path) as server:
        fill(server)
        server.kill()
    wal = bytearray(path.with_name("memory.db-wal").read_bytes())
    wal[chance.randrange(len(wal) // 2, len(wal))] ^= 0x5A
    path.with_name("memory.db-wal").write_bytes(wal)
    space = open_space(path)
    try:
        names = [one.name for one in space.graph().entities()]
        assert findings(space) == []
    finally:
        space.close()

    assert names == NAMES[: len(names)]
