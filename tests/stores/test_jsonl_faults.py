"""What goes wrong on disks: nothing is changed, the caller is told what to do, and afterwards it goes on."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.stores import wholefile
from mcp_memory.stores.filelock import FileLock
from mcp_memory.stores.jsonl import JsonlStore
from mcp_memory.stores.store import StoreBusy, StoreFault, StoreReadOnly
from tests.stores.asking import Asked, Refused, entity_line

ADA = entity_line("Ada")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.jsonl"
    path.write_bytes(ADA)
    return path


def failing(number: int) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("system_call", "number", "code"),
    [
        ("write", errno.ENOSPC, "store_full"),
        ("write", errno.EFBIG, "store_full"),
        ("write", errno.EIO, "Input/output|I/O"),
        ("replace", errno.ENOSPC, "store_full"),
        ("replace", errno.EACCES, "store_read_only"),
        ("utime", errno.EIO, "Input/output|I/O"),
    ],
)
def test_a_failing_disk_changes_nothing_and_the_service_resumes(
    path: Path, monkeypatch: pytest.MonkeyPatch, system_call: str, number: int, code: str
) -> None:
    memory = Asked(path)
    memory.create("Bob")
    before = memory.version()
    with monkeypatch.context() as broken:
        broken.setattr(os, system_call, failing(number))
        with pytest.raises(Refused, match=code):
            memory.create("Eve")
        assert memory.names() == ["Ada", "Bob"]

    assert memory.version() == before
    assert memory.beside() == set()
    memory.create("Eve")
    assert memory.names() == ["Ada", "Bob", "Eve"]
    assert memory.is_sound()


def test_a_disk_that_fills_up_halfway_leaves_no_half_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Asked(path)
    write = os.write
    room = 10

    def scarce(file: int, data: memoryview) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(file, data[:room])
        room -= written
        return written

    monkeypatch.setattr(os, "write", scarce)
    with pytest.raises(Refused, match="Free some space"):
        memory.create("Bob")
    assert path.read_bytes() == ADA
    assert memory.beside() == set()


def test_a_write_in_many_pieces_is_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    Asked(path).create("Bob")

    assert path.read_bytes() == ADA + b"\n" + entity_line("Bob")


def test_bad_lines_are_not_dropped_while_they_cannot_be_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = ADA + b"\nnonsense"
    path.write_bytes(content)
    with monkeypatch.context() as broken:
        broken.setattr("mcp_memory.stores.quarantine.os.fsync", failing(errno.ENOSPC))
        memory = Asked(path)
        assert memory.names() == ["Ada"]
        path.with_name("memory.jsonl.quarantine").unlink()
        with pytest.raises(Refused, match="store_full"):
            memory.create("Bob")
    assert path.read_bytes() == content

    memory.create("Bob")
    assert memory.quarantine() == [b"nonsense"]
    assert memory.is_sound()


def test_a_read_only_file_is_read_and_not_written(path: Path) -> None:
    memory = Asked(path)
    path.chmod(0o444)
    with pytest.raises(Refused, match="store_read_only"):
        memory.create("Bob")
    assert memory.names() == ["Ada"]
    assert path.read_bytes() == ADA

    path.chmod(0o644)
    memory.create("Bob")
    assert memory.names() == ["Ada", "Bob"]
    assert memory.is_sound()


def test_in_a_read_only_folder_everything_is_served_and_nothing_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(ADA + b"\nnonsense")
    memory = Asked(path)
    with monkeypatch.context() as broken:
        broken.setattr("mcp_memory.stores.filelock.os.open", failing(errno.EROFS))
        assert memory.names() == ["Ada"]
        with pytest.raises(Refused, match="store_read_only"):
            memory.create("Bob")
        assert memory.names() == ["Ada"]
        assert memory.beside() == set()

    memory.create("Bob")
    assert memory.quarantine() == [b"nonsense"]
    assert memory.is_sound()


def test_a_file_that_cannot_be_read_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Asked(path)
    with monkeypatch.context() as broken:
        broken.setattr(wholefile, "open", failing(errno.EACCES), raising=False)
        with pytest.raises(Refused, match=r"Cannot read .*Permission denied"):
            memory.names()

    assert memory.names() == ["Ada"]


def test_a_folder_is_no_memory_file(tmp_path: Path) -> None:
    with pytest.raises(StoreFault, match="not a regular file"):
        JsonlStore(tmp_path).load()


def test_a_lock_kept_by_others_is_waited_for_and_then_told(path: Path) -> None:
    memory = Asked(path, patience=0.05)
    other = FileLock(f"{path}.lock")
    assert other.acquire(0)
    with pytest.raises(Refused, match=r'Repeat the call, .*"code":"store_busy","retryable":true'):
        memory.create("Bob")
    assert memory.names() == ["Ada"]

    other.close()
    memory.create("Bob")
    assert memory.names() == ["Ada", "Bob"]
    assert memory.is_sound()


def test_a_program_that_knows_no_lock_is_not_overwritten(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Asked(path)
    memory.names()
    prepare = wholefile.WholeFile.prepare

    def overtaken(self: wholefile.WholeFile, data: bytes, flush: bool) -> wholefile.Stamp:
        path.write_bytes(entity_line("Eve"))
        return prepare(self, data, flush)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(wholefile.WholeFile, "prepare", overtaken)
        with pytest.raises(Refused, match="store_busy"):
            memory.create("Bob")
    assert memory.beside() == set()

    memory.create("Bob")
    assert memory.names() == ["Eve", "Bob"]
    assert memory.is_sound()


def test_an_exception_after_the_write_leaves_the_file_and_the_next_call_as_they_were(path: Path) -> None:
    memory = Asked(path)
    with pytest.raises(ZeroDivisionError), memory.store.begin():
        graph = memory.space.graph()
        plan = memory.tools["create_entities"]
        values = plan.decode(b'{"entities":[{"name":"Bob","entityType":"t","observations":[]}]}', memory.desk.limits)
        changes = plan.function(graph, *values).changes
        memory.store.write(memory.space._entries(graph, changes, "", ""))
        raise ZeroDivisionError

    assert path.read_bytes() == ADA
    assert memory.names() == ["Ada"]
    memory.create("Eve")
    assert memory.names() == ["Ada", "Eve"]
    assert memory.is_sound()


def test_sync_flushes_file_and_name_before_the_answer_and_normal_in_the_quiet_moment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(wholefile, "flush_to_disk", lambda file: flushed.append("file"))
    monkeypatch.setattr(wholefile.WholeFile, "flush_name", lambda self: flushed.append("name"))
    Asked(path, durability="sync").create("Bob")
    assert flushed == ["file", "name"]

    flushed.clear()
    store = JsonlStore(path)
    store.compact()
    assert flushed == []
    store.settle()
    store.settle()
    assert flushed == ["file", "name"]


def test_read_only_is_told_by_the_store_too(path: Path) -> None:
    path.chmod(0o444)
    store = JsonlStore(path)
    with pytest.raises(StoreReadOnly):
        store.compact()
    path.chmod(0o644)
    store.compact()


def test_busy_can_be_tried_again() -> None:
    assert StoreBusy("").retryable
