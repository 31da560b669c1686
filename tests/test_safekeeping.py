"""Backups hold everything and were looked at; a restored memory is the one that was backed up."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import apsw
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.facts import MemoryFault
from mcp_memory.safekeeping import Kept, back_up, restore
from mcp_memory.server import main
from mcp_memory.stores.store import StoreBusy
from tests.conftest import STORES, Caller, link, person
from tests.crash.harness import Refused, Server


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A small memory of each kind, closed."""
    path = tmp_path / str(request.param)
    write(path, "Ada", "Bob")
    return path


def write(path: Path, *names: str) -> None:
    space = open_space(path)
    call = Caller(space)
    call("create_entities", entities=[person(name, f"{name} was seen") for name in names])
    if len(names) > 1:
        call("create_relations", relations=[link(names[0], "knows", names[1])])
    space.close()


def files(folder: Path, pattern: str) -> list[str]:
    return sorted(file.name for file in folder.glob(pattern))


# ── the drill ────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_that_was_lost_comes_back_as_it_was(memory: Path) -> None:
    """The drill: back up, lose everything, restore, and compare every fact."""
    before = texts(memory)
    kept, _ = back_up(str(memory))
    assert (kept.entities, kept.relations) == (2, 1)
    memory.unlink()

    restored = restore(kept.path, str(memory))

    assert restored.before is None
    assert texts(memory) == before
    write(memory, "Cy")
    assert len(texts(memory)) == 3


def texts(path: Path) -> list[tuple[str, list[str]]]:
    space = open_space(path)
    try:
        assert [finding.text for finding in space.check()] == []
        return [(one.name, one.texts()) for one in space.graph().entities()]
    finally:
        space.close()


def test_the_memory_that_is_replaced_is_kept_beside_the_restored_one(memory: Path) -> None:
    kept, _ = back_up(str(memory))
    write(memory, "written after the backup")
    later = texts(memory)

    restored = restore(kept.path, str(memory))

    assert [name for name, _ in texts(memory)] == ["Ada", "Bob"]
    assert restored.before is not None
    assert texts(Path(shutil.move(restored.before, memory.with_name(f"later{memory.suffix}")))) == later


@pytest.mark.parametrize("name", STORES)
def test_a_backup_of_a_memory_that_is_written_to_is_one_moment_of_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write(path, "first")
    with Server(path) as server:
        over, wrote = threading.Event(), threading.Event()

        def pairs() -> None:
            number = 0
            while not over.is_set():
                named = [{"name": f"{half} {number}"} for half in ("left", "right")]
                server.call("create_entities", entities=named)
                wrote.set()
                number += 1

        def copied(number: int) -> Kept:
            wrote.clear()
            assert wrote.wait(30)
            return back_up(str(path), str(tmp_path / f"copy {number}{path.suffix}"))[0]

        writer = threading.Thread(target=pairs)
        writer.start()
        try:
            kept = [copied(number) for number in range(3)]
        finally:
            over.set()
            writer.join()
        server.close()

    for one in kept:
        assert one.entities % 2 == 1  # the first, and pairs: no call is half in it
    assert kept[0].entities < kept[2].entities <= len(texts(path))


def test_history_comes_back_with_the_memory(database: Path) -> None:
    write(database, "Ada", "Bob")
    kept, _ = back_up(str(database))
    assert kept.calls == 2
    database.unlink()
    restore(kept.path, str(database))

    space = open_space(database)
    call = Caller(space)
    call("undo")
    assert call("search_relations")["relations"] == []
    space.close()


@pytest.mark.parametrize("loss", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["removed", "emptied"])
def test_what_a_killed_server_left_beside_a_lost_memory_is_kept_aside_and_not_read(
    loss: Callable[[Path], object], database: Path
) -> None:
    """Its -wal belongs to a file that is not there any more; SQLite would lay it over the restored one."""
    write(database, *(f"old {number}" for number in range(40)))
    kept, _ = back_up(str(database))
    before = texts(database)
    space = open_space(database)
    call = Caller(space)
    call("delete_entities", entityNames=[name for name, _ in before])
    call("compact")  # the pages move: laid over another file they are damage
    space.close()
    with Server(database) as server:
        for number in range(20):
            server.call("create_entities", entities=[person(f"new {number}", "y" * 400)])
        server.kill()
    left = database.with_name("memory.db-wal").read_bytes()
    assert left
    loss(database)

    restored = restore(kept.path, str(database))

    assert texts(database) == before
    assert restored.before is not None and restored.before.endswith("-wal")
    assert Path(restored.before).read_bytes() == left


def test_a_memory_behind_a_link_is_restored_where_it_lies(memory: Path) -> None:
    kept, _ = back_up(str(memory))
    link = memory.parent / "elsewhere" / memory.name
    link.parent.mkdir()
    link.symlink_to(memory)
    write(memory, "Cy")

    restore(kept.path, str(link))

    assert link.is_symlink()
    assert [name for name, _ in texts(memory)] == ["Ada", "Bob"]


@pytest.mark.parametrize("name", STORES)
def test_nothing_acknowledged_is_lost_when_a_memory_is_restored_beside_a_server_that_writes(
    name: str, tmp_path: Path
) -> None:
    """It stands in the memory or in a copy of what was replaced."""
    path = tmp_path / name
    write(path, "Ada")
    kept, _ = back_up(str(path))
    acknowledged: list[str] = []
    over = threading.Event()
    with Server(path) as server:

        def writing() -> None:
            for number in count():
                if over.is_set():
                    return
                with suppress(Refused):
                    server.call("create_entities", entities=[{"name": f"one {number}"}])
                    acknowledged.append(f"one {number}")

        writer = threading.Thread(target=writing)
        writer.start()
        try:
            for _ in range(5):
                time.sleep(0.1)
                with suppress(StoreBusy):  # a database in use is left alone
                    restore(kept.path, str(path))
        finally:
            time.sleep(0.1)
            over.set()
            writer.join()
        server.close()

    replaced = sorted(tmp_path.glob("*before-restore*.backup"))
    assert (len(replaced) == 5) == (name != "memory.db")
    held = {entity for entity, _ in texts(path)}
    for number, copy in enumerate(replaced):
        held |= {entity for entity, _ in texts(Path(shutil.move(copy, tmp_path / f"replaced {number}{path.suffix}")))}
    assert [one for one in acknowledged if one not in held] == []


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_that_a_server_uses_is_not_replaced(database: Path) -> None:
    write(database, "Ada")
    kept, _ = back_up(str(database))
    write(database, "Bob")
    with Server(database) as server:
        server.call("create_entities", entities=[{"name": "Cy"}])
        with pytest.raises(StoreBusy, match="in use by a server"):
            restore(kept.path, str(database))
        server.call("create_entities", entities=[{"name": "Dee"}])
        server.close()

    assert [name for name, _ in texts(database)] == ["Ada", "Bob", "Cy", "Dee"]
    assert files(database.parent, "*restore*") == []


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.mcpmem"])
def test_a_plain_file_that_is_being_written_is_not_replaced(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write(path, "Ada")
    kept, _ = back_up(str(path))
    writer = open_space(path)
    with writer.store.begin(), pytest.raises(StoreBusy, match="locked"):
        restore(kept.path, str(path))
    writer.close()

    assert [one for one, _ in texts(path)] == ["Ada"]


def test_a_backup_that_is_not_in_order_is_not_restored(database: Path) -> None:
    write(database, "Ada", "Bob")
    kept, _ = back_up(str(database))
    with closing(apsw.Connection(kept.path)) as connection:
        connection.execute("delete from change where seq = 1")
    before = texts(database)

    with pytest.raises(MemoryFault, match="is not in order: the feed"):
        restore(kept.path, str(database))

    assert texts(database) == before
    assert files(database.parent, "*.partial*") == []


def test_a_memory_that_is_not_in_order_is_not_called_a_backup(database: Path) -> None:
    write(database, "Ada", "Bob")
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("delete from observations")

    with pytest.raises(MemoryFault, match="mcp-memory doctor"):
        back_up(str(database))

    assert files(database.parent, "*.backup") == []


def test_a_damaged_memory_is_kept_and_replaced(database: Path) -> None:
    write(database, "Ada")
    kept, _ = back_up(str(database))
    database.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)

    restored = restore(kept.path, str(database))

    assert [name for name, _ in texts(database)] == ["Ada"]
    assert restored.before is not None and Path(restored.before).read_bytes().endswith(b"\xff" * 5000)


def test_a_backup_of_another_format_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "memory.db", "Ada")
    write(tmp_path / "memory.jsonl", "Bob")

    with pytest.raises(MemoryFault, match="mcp-memory import"):
        restore(str(tmp_path / "memory.jsonl"), str(tmp_path / "memory.db"))


# ── names and rotation ───────────────────────────────────────────────────────────────────────────


def test_only_the_newest_copies_named_by_their_time_are_kept(memory: Path) -> None:
    folder = memory.parent / "copies"
    folder.mkdir()
    mine = folder / f"{memory.name}.precious.backup"
    mine.write_text("mine")

    for _ in range(4):
        kept, removed = back_up(str(memory), str(folder), keep=2)

    assert len(removed) == 1
    found = files(folder, "*")
    assert len(found) == 3 and mine.name in found and os.path.basename(kept.path) in found


def test_a_file_that_exists_is_never_written_over(memory: Path) -> None:
    precious = memory.parent / "precious.db"
    precious.write_text("mine")

    with pytest.raises(MemoryFault, match="exists already"):
        back_up(str(memory), str(precious))

    assert precious.read_text() == "mine"


@pytest.fixture
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.toml").write_text("")
    monkeypatch.setenv("MCP_MEMORY_SETTINGS", str(tmp_path / "settings.toml"))


@pytest.mark.usefixtures("no_settings")
def test_the_commands_say_what_they_did(memory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-f", str(memory), "backup", str(memory.parent / "copy.backup"), "--keep", "3"]) == 0
    said = capsys.readouterr().out
    assert "copy.backup" in said and "in order" in said
    assert main(["-f", str(memory), "restore", str(memory.parent / "copy.backup")]) == 0
    assert "The memory as it was" in capsys.readouterr().out
    assert main(["-f", str(memory), "restore", str(memory.parent / "nothing.backup")]) == 1
    assert "There is no file" in capsys.readouterr().err
    assert main(["-f", str(memory), "backup", "--keep", "0"]) == 2
    assert "a whole number from 1 up" in capsys.readouterr().err
