"""Adoption happens once and whole, or not at all: on a full disk, under kill -9, and among several processes."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.stores.sqlite.connection import connect, load_vectors
from mcp_memory.stores.sqlite.schema import prepare
from mcp_memory.stores.store import StoreDamaged, StoreFault, StoreFull, StoreReadOnly
from tests.stores.faulty_disk import counted, full_after, read_only
from tests.stores.predecessor import LAST, ROWS, SHAPES, build, fill, lay
from tests.stores.schema_reading import rows, statements
from tests.stores.test_adoption import adopted, told

CHECKOUT = Path(__file__).parent.parent.parent
KILLED_AT = 16  # writes, spread over the whole adoption
RANDOM_KILLS = 5

ADOPT_AND_DIE = """
import sys
from mcp_memory.assembly import open_space
from tests.stores.faulty_disk import die_at

path, number = sys.argv[1:]
if number != "never":
    die_at(int(number))
print("ready", flush=True)
space = open_space(path)
space.graph()
space.close()
"""


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.*.backup"))


def beside(path: Path) -> set[str]:
    return {file.name for file in path.parent.iterdir()} - {path.name}


def is_as_it_was(path: Path, shape: str = LAST) -> bool:
    """Is this a database of the predecessor, with everything in it?"""
    names = [name for name in ROWS["observations"][0] if name in statements(path)["observations"]]
    expected = [tuple(row[name] for name in names) for row in ROWS["observations"]]
    return "change" not in statements(path) and rows(path, "observations", *names) == expected


def holds_everything(path: Path) -> bool:
    """Is it, or does it become, a sound space with every fact?"""
    with adopted(path) as space:
        graph, expected = space.graph(), told(ROWS)
        return (
            list(graph.by_id.values()) == list(expected.by_id.values())
            and list(graph.relations.values()) == list(expected.relations.values())
            and graph.reflections == expected.reflections
        )


# ── the backup ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", SHAPES)
def test_the_backup_is_the_database_as_it_was(shape: str, database: Path) -> None:
    build(database, shape)
    before = statements(database)
    with adopted(database):
        pass

    (backup,) = backups(database)
    assert re.fullmatch(r"memory\.db\.before-mcp-memory-\d{8}T\d{6}Z\.backup", backup.name)
    assert statements(backup) == before
    assert is_as_it_was(backup, shape)


def test_the_backup_is_one_plain_file(database: Path) -> None:
    build(database)
    with adopted(database):
        pass

    (backup,) = backups(database)
    with closing(apsw.Connection(str(backup))) as connection:
        assert connection.execute("pragma journal_mode").get == "delete"
    assert beside(database) <= {backup.name, "memory.db-wal", "memory.db-shm"}


def test_the_log_tells_what_was_done_and_where_the_backup_is(database: Path, caplog: pytest.LogCaptureFixture) -> None:
    build(database)
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("update relations set to_entity = 77 where id = 1")

    with caplog.at_level(logging.WARNING, "mcp_memory"):
        open_space(database).graph()

    taken, left = [record.getMessage() for record in caplog.records]
    assert "4 entities, 3 relations, 4 reflections" in taken
    assert str(backups(database)[0]) in taken
    assert left.startswith("1 rows") and "adoption_leftovers" in left


def test_a_backup_taken_in_the_same_second_gets_another_name(database: Path, tmp_path: Path) -> None:
    build(database)
    first = shutil.copy(database, tmp_path / "first.db")
    for _ in range(2):
        shutil.copy(first, database)
        with adopted(database):
            pass

    assert len(backups(database)) == 2
    assert all(map(is_as_it_was, backups(database)))


def test_what_only_the_write_ahead_log_holds_is_adopted_and_backed_up(database: Path, tmp_path: Path) -> None:
    """A killed predecessor leaves its last writes beside the file."""
    living = tmp_path / "living.db"
    with closing(lay(living)) as connection:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        fill(connection)
        shutil.copy(living, database)
        shutil.copy(f"{living}-wal", f"{database}-wal")
    assert os.path.getsize(f"{database}-wal") > 0

    assert holds_everything(database)
    assert is_as_it_was(backups(database)[0])


def test_what_a_killed_process_copied_half_is_removed(database: Path) -> None:
    build(database)
    half = database.with_name("memory.db.before-mcp-memory-20260101T000000Z.backup.partial")
    others = database.with_name("other.db.before-mcp-memory-20260101T000000Z.backup.partial")
    for file in (half, Path(f"{half}-journal"), others):
        file.write_bytes(b"half of a copy")
    with adopted(database):
        pass

    assert [file.name for file in database.parent.glob("*partial*")] == [others.name]


def test_the_connection_that_adopted_keeps_every_rule_afterwards(database: Path) -> None:
    build(database)
    with closing(connect(str(database), "normal")) as connection:
        prepare(connection, str(database), load_vectors(connection))

        assert connection.execute("pragma foreign_keys").get == 1
        assert connection.execute("pragma legacy_alter_table").get == 0


# ── what prevents an adoption ────────────────────────────────────────────────────────────────────


def test_on_a_full_disk_nothing_changes_however_far_it_came(database: Path, tmp_path: Path) -> None:
    build(database)
    trial = Path(shutil.copy(database, tmp_path / "trial.db"))
    with counted() as sizes:
        space = open_space(trial)
        space.graph()
        needed = sum(sizes)
        space.close()
    before = database.read_bytes()

    for part in range(10):
        with full_after(needed * part // 10):
            space = open_space(database)
            with pytest.raises(StoreFull, match=r"too full.*Nothing was changed; free about \d+ MB"):
                space.graph()
            space.close()
        assert database.read_bytes() == before
        assert backups(database) == []
    assert holds_everything(database)


def test_a_file_that_may_only_be_read_is_left_alone(database: Path) -> None:
    build(database)
    before = database.read_bytes()

    with read_only():
        space = open_space(database)
        with pytest.raises(StoreReadOnly, match="may not be written"):
            space.graph()
        space.close()

    assert database.read_bytes() == before
    assert backups(database) == []


def test_a_damaged_file_is_told_and_left_alone(database: Path) -> None:
    build(database)
    with closing(apsw.Connection(str(database))) as connection:
        page = connection.execute("select rootpage from sqlite_master where name = 'co_occurrences'").get
        size = connection.execute("pragma page_size").get
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    content = bytearray(database.read_bytes())
    content[(page - 1) * size : (page - 1) * size + 100] = b"\xff" * 100
    database.write_bytes(content)

    space = open_space(database)
    with pytest.raises(StoreDamaged, match="damaged"):
        space.graph()
    space.close()
    assert database.read_bytes() == content
    assert backups(database) == []


def test_a_failure_in_the_middle_is_told_and_the_next_try_succeeds(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp_memory.stores.sqlite import adoption

    build(database)
    before = database.read_bytes()
    space = open_space(database)
    with monkeypatch.context() as patched:
        patched.setattr(adoption, "encode_changes", lambda changes: b"\xc1")
        with pytest.raises(StoreFault, match=r"could not be brought.*Nothing was changed"):
            space.graph()
    assert (database.read_bytes(), backups(database)) == (before, [])

    assert space.graph()["Ada"].id == 1
    space.close()


def test_a_reader_in_the_middle_of_something_is_not_disturbed(database: Path) -> None:
    build(database)
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("begin")
        before = connection.execute("select * from observations").fetchall()
        with adopted(database):
            assert connection.execute("select * from observations").fetchall() == before
        connection.execute("commit")
        assert connection.execute("select count(*) from change").get == 1


# ── processes ────────────────────────────────────────────────────────────────────────────────────


def start(path: Path, number: int | str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ADOPT_AND_DIE, str(path), str(number)]
    return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def test_a_process_that_dies_at_any_write_leaves_the_old_file_or_the_new(database: Path, tmp_path: Path) -> None:
    build(database)
    trial = Path(shutil.copy(database, tmp_path / "trial.db"))
    with counted() as sizes:
        space = open_space(trial)
        space.graph()
        space.close()
    needed = len(sizes)

    found = set()
    for part in range(KILLED_AT):
        path = Path(shutil.copy(database, tmp_path / f"{part}.db"))
        process = start(path, needed * part // KILLED_AT)
        process.communicate()
        assert process.returncode != 0

        is_old = is_as_it_was(path)
        found.add(is_old)
        assert is_old or "change" in statements(path)
        assert holds_everything(path)
        assert not list(tmp_path.glob("*.partial*"))
        assert all(map(is_as_it_was, backups(path)))
    assert found == {True, False}


def test_a_process_killed_at_a_random_moment_leaves_the_old_file_or_the_new(database: Path, tmp_path: Path) -> None:
    build(database)
    for number in range(RANDOM_KILLS):
        path = Path(shutil.copy(database, tmp_path / f"{number}.db"))
        process = start(path, "never")
        assert process.stdout is not None and process.stdout.readline().strip() == b"ready"
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        process.communicate()

        assert is_as_it_was(path) or "change" in statements(path)
        assert holds_everything(path)


def _open_at_once(path: str, barrier: Any, answers: Any) -> None:
    logging.disable()
    space = open_space(path)
    barrier.wait()
    graph = space.graph()
    answers.put((graph.entity_count, graph.relation_count, graph.seq, [finding.text for finding in space.check()]))
    space.close()


def test_of_several_processes_that_open_the_file_at_once_one_adopts_it(database: Path) -> None:
    build(database)
    spawning = multiprocessing.get_context("spawn")
    barrier, answers = spawning.Barrier(3), spawning.Queue()
    processes = [spawning.Process(target=_open_at_once, args=(str(database), barrier, answers)) for _ in range(3)]
    for process in processes:
        process.start()
    told_by_each = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()

    assert told_by_each == [(4, 3, 1, [])] * 3
    assert len(backups(database)) == 1
    assert holds_everything(database)
