"""What power cuts, disks and strangers do to a journal: the good part is served and the rest is kept."""

from __future__ import annotations

import errno
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.server import main
from mcp_memory.stores.journal import mcpmem
from mcp_memory.stores.journal.flushed import MARK, note, noted, place
from mcp_memory.stores.journal.reading import SECTOR
from mcp_memory.stores.store import StoreDamaged
from tests.stores.asking import Asked, Refused
from tests.stores.test_journal import ADA, BOB, journal
from tests.stores.test_jsonl_processes import PROCESSES, WRITES, acknowledged, server, writes
from tests.stores.test_mcpmem import EXAMPLE

BEGIN, COMMIT = (mcpmem.BEGIN, b""), (mcpmem.COMMIT, b"")
EVE, LATER = mcpmem.create_entity("Eve", "t", []), mcpmem.create_entity("later", "t", [])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.mcpmem"


def kept(path: Path) -> bytes:
    """The bytes that were kept aside, in the order in which they were found."""
    lines = path.with_name(f"{path.name}.quarantine").read_bytes().splitlines()
    return b"".join(bytes.fromhex(line.rpartition(b": ")[2].decode()) for line in lines)


# ── the end of the file ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", [1, 2])
def test_after_any_cut_the_whole_records_are_served_and_the_next_one_is_found(tmp_path: Path, version: int) -> None:
    """A transaction is cut at every byte: it is there or it is not."""
    merge = [BEGIN, *mcpmem.add_observations("Bob", ["likes tea"]), *EVE, mcpmem.delete_entity("Ada"), COMMIT]
    whole = journal(ADA, BOB, merge, version=version)
    ends = [len(journal(ADA, BOB[:number], version=version)) for number in (0, 1)]
    for size in range(len(whole) + 1):
        path = tmp_path / f"{size}.mcpmem"
        path.write_bytes(whole[:size])
        memory = Asked(path)
        if size == len(whole):
            assert memory.names() == ["Bob", "Eve"]
        else:
            assert memory.names() == ["Ada", "Bob"][: sum(size >= end for end in ends)]
        assert path.read_bytes() == whole[:size]
        before = memory.names()

        memory.create("later")
        good = path.read_bytes().removesuffix(mcpmem.frame(LATER, version if size >= mcpmem.HEAD else 2))
        good = good if size >= mcpmem.HEAD else b""
        assert whole.startswith(good)
        assert good + (kept(path) if len(good) < size else b"") == whole[:size]
        assert Asked(path).names() == [*before, "later"]
        assert memory.is_sound()
        memory.space.close()


def people(count: int) -> list[mcpmem.Record]:
    return [record for n in range(count) for record in mcpmem.create_entity(f"Person {n}", "t", ["likes tea" * 20])]


@pytest.mark.parametrize("records", [people(30), [BEGIN, *people(30), COMMIT]], ids=["calls", "one call"])
def test_where_a_sector_never_reached_the_disk_the_file_ends(records: list[mcpmem.Record], path: Path) -> None:
    """Zeros behind what was flushed: the power failed, and what stands behind them was promised to nobody."""
    whole = journal(ADA, records)
    flushed(path, journal(ADA))
    hole = len(whole) // 2 // SECTOR * SECTOR
    content = whole[:hole] + bytes(SECTOR) + whole[hole + SECTOR :]
    path.write_bytes(content)
    memory = Asked(path)
    names = memory.names()

    assert names == ["Ada", *(f"Person {n}" for n in range(len(names) - 1))]
    assert len(names) == 1 if records[0] == BEGIN else 1 < len(names) < 20
    assert path.read_bytes() == content
    memory.create("later")
    good = path.read_bytes().removesuffix(mcpmem.frame(LATER, 2))
    assert content == good + kept(path)
    assert Asked(path).names() == [*names, "later"]
    assert memory.is_sound()


has_notes = pytest.mark.skipif(sys.platform == "win32", reason="who holds the lock keeps others from writing there")


def flushed(path: Path, content: bytes) -> None:
    """So much of the file is noted to be on the disk."""
    note(f"{path}.lock", place(len(content), content[-MARK:]))


@has_notes
@pytest.mark.parametrize("is_noted", [True, False])
@pytest.mark.parametrize("version", [1, 2])
def test_zeros_in_what_was_flushed_are_damage_and_cost_only_themselves(
    path: Path, version: int, is_noted: bool
) -> None:
    """Also in a file about which nothing is noted: a copy, or one of another program."""
    whole = journal(ADA, people(30), version=version)
    path.write_bytes(whole[: 2 * SECTOR] + bytes(SECTOR) + whole[3 * SECTOR :])
    if is_noted:
        flushed(path, whole)
    names = Asked(path).names()

    assert names[0] == "Ada" and names[-1] == "Person 29"
    assert 20 < len(names) < 31


@has_notes
def test_a_note_is_good_only_for_the_file_it_was_made_about(path: Path) -> None:
    memory = Asked(path)
    memory.create(*(f"Person {number}" for number in range(30)), observations=("likes tea" * 20,))
    memory.space.settle()
    assert noted(f"{path}.lock", path.read_bytes()) == path.stat().st_size
    assert noted(f"{path}.lock", path.read_bytes()[:-1]) is None
    assert noted(f"{path}.lock", path.read_bytes()[:-1] + b"x") is None

    memory.store.compact()
    assert noted(f"{path}.lock", path.read_bytes()) == path.stat().st_size
    compacted = path.read_bytes()
    memory.create("later")
    assert noted(f"{path}.lock", path.read_bytes()) in (len(compacted), path.stat().st_size)
    memory.space.settle()
    assert noted(f"{path}.lock", path.read_bytes()) == path.stat().st_size
    for rubbish in (b"", b"flushed", b"flushed x y\n", b"\xff" * 40):
        path.with_name(f"{path.name}.lock").write_bytes(rubbish)
        assert noted(f"{path}.lock", path.read_bytes()) is None
    assert memory.is_sound()


@has_notes
@pytest.mark.parametrize("durability", ["normal", "sync"])
def test_before_something_is_appended_it_is_noted_what_is_on_the_disk(path: Path, durability: str) -> None:
    path.write_bytes(journal(ADA))
    memory = Asked(path, durability=durability)
    memory.create("Eve")

    content = path.read_bytes()
    upto = noted(f"{path}.lock", content)
    assert upto is not None
    assert upto == len(content) if durability == "sync" else upto >= len(journal(ADA))


def test_zeros_far_from_the_end_are_damage_and_cost_only_themselves(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_memory.stores.journal.reading.LATEST", 1000)
    whole = journal(ADA, people(30))
    flushed(path, b"")
    path.write_bytes(whole[: 2 * SECTOR] + bytes(SECTOR) + whole[3 * SECTOR :])

    names = Asked(path).names()
    assert names[0] == "Ada" and names[-1] == "Person 29"
    assert 20 < len(names) < 31


@pytest.mark.parametrize("size", [100, SECTOR, 3 * SECTOR])
def test_a_new_file_that_never_reached_the_disk_is_a_new_file(size: int, path: Path) -> None:
    path.write_bytes(bytes(size))
    memory = Asked(path)
    assert memory.names() == []
    memory.create("Ada")
    assert Asked(path).names() == ["Ada"]
    assert memory.is_sound()


def test_what_was_cut_off_is_told_once_and_kept_aside(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    torn = mcpmem.frame(BOB, 2)[:-3]
    path.write_bytes(journal(ADA) + torn)
    memory = Asked(path)
    assert memory.names() == ["Ada"]

    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 2
    assert "are not served: the file ends inside a record" in told[0]
    caplog.clear()
    memory.create("Eve")
    assert path.read_bytes() == journal(ADA, EVE)
    assert kept(path) == torn
    assert Asked(path).names() == ["Ada", "Eve"]
    assert caplog.records == []


@pytest.mark.parametrize("command", ["stats", "doctor", "brief", "export"])
def test_who_only_reads_leaves_the_file_as_it_is(path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    content = journal(ADA) + b"rubbish" + mcpmem.frame(EVE, 2) + mcpmem.frame(BOB, 2)[:-3]
    path.write_bytes(content)
    words = [command, str(path.with_name("to.jsonl"))] if command == "export" else [command]
    code = main(["-f", str(path), "--model", "none", *words])

    assert code == (1 if command == "doctor" else 0)
    assert path.read_bytes() == content
    assert not path.with_name(f"{path.name}.quarantine").exists()
    if command == "doctor":
        assert "ends in" in capsys.readouterr().out
        assert main(["-f", str(path), "--model", "none", "doctor", "--repair"]) == 0
        assert path.read_bytes() == journal(ADA, EVE)
        assert kept(path) == mcpmem.frame(BOB, 2)[:-3] + b"rubbish"


def test_what_a_killed_process_left_beside_goes_with_the_next_write(path: Path) -> None:
    path.write_bytes(journal(ADA))
    left = path.with_name(f"{path.name}.mcp-memory.tmp")
    left.write_bytes(b"half of")
    memory = Asked(path)
    assert memory.names() == ["Ada"]
    assert left.exists()
    memory.create("Eve")

    assert not left.exists()
    assert path.read_bytes() == journal(ADA, EVE)
    assert memory.is_sound()


@pytest.mark.parametrize("version", [1, 2])
def test_what_was_cut_off_can_be_brought_back(path: Path, version: int, capsys: pytest.CaptureFixture[str]) -> None:
    """All of a transaction that lost its last byte, and the observations of an entity that is known."""
    more = mcpmem.add_observations("Ada", ["likes tea", "likes cake"])
    link = mcpmem.create_relation("Ada", "Person 3", "knows")
    path.write_bytes(journal(ADA, [BEGIN, *people(30), *more, link, COMMIT], version=version)[:-1])
    memory = Asked(path)
    memory.create("later")
    assert memory.names() == ["Ada", "later"]

    assert main(["-f", str(path), "--model", "none", "import", f"{path}.quarantine"]) == 0
    assert memory.names() == ["Ada", "later", *(f"Person {number}" for number in range(30))]
    assert memory.texts("Ada") == ["likes tea", "likes cake"]
    assert memory("read_graph")["relations"] == [{"from": "Ada", "to": "Person 3", "relationType": "knows"}]
    assert memory.is_sound()
    assert main(["-f", f"{path}.quarantine", "--model", "none", "stats"]) == 1
    assert "not a memory to work with" in capsys.readouterr().err


def test_of_rubbish_nothing_comes_back_and_it_is_counted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept_aside = path.with_name(f"{path.name}.quarantine")
    kept_aside.write_bytes(b"bytes 8 to 12, it is torn: 00ff00ff\nbytes 8 to 12, it is no line: xx\nbytes\n")
    assert main(["-f", str(path), "--model", "none", "import", str(kept_aside)]) == 0

    assert "skipped" in (said := capsys.readouterr().out) and "3" in said
    assert Asked(path).names() == []


def test_a_transaction_that_never_ended_is_dropped_and_the_next_call_is_not_swallowed(path: Path) -> None:
    unfinished = mcpmem.frame([BEGIN, *BOB], 1)
    path.write_bytes(journal(ADA, version=1) + unfinished)
    memory = Asked(path)
    memory.create("Eve")

    assert path.read_bytes() == journal(ADA, EVE, version=1)
    assert kept(path) == unfinished
    assert Asked(path).names() == ["Ada", "Eve"]


def test_a_record_that_somebody_is_still_writing_is_waited_for(path: Path) -> None:
    memory, reader = Asked(path), Asked(path)
    memory.create("Ada", observations=("likes tea",))
    reader.names()
    record = mcpmem.frame(BOB, 2)
    with path.open("ab", buffering=0) as other:  # in two pieces, as a large write may become visible
        other.write(record[:7])
        assert reader.names() == ["Ada"]
        assert path.read_bytes() == journal(ADA) + record[:7]
        other.write(record[7:])
    assert reader.names() == ["Ada", "Bob"]
    assert reader.beside() == set()


def test_a_tail_that_appears_later_is_cut_off_before_the_next_write(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada", observations=("likes tea",))
    with path.open("ab") as dying:
        dying.write(mcpmem.frame([BEGIN, *BOB], 2))
    assert memory.names() == ["Ada"]
    memory.create("Eve")

    assert path.read_bytes() == journal(ADA, EVE)
    assert kept(path) == mcpmem.frame([BEGIN, *BOB], 2)
    assert memory.is_sound()


def test_in_a_read_only_place_the_good_part_is_served_and_nothing_touched(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = journal(ADA) + b"torn"
    path.write_bytes(content)
    memory = Asked(path)
    with monkeypatch.context() as broken:
        broken.setattr("mcp_memory.stores.filelock.os.open", failing(errno.EROFS))
        assert memory.names() == ["Ada"]
        with pytest.raises(Refused, match="store_read_only"):
            memory.create("Bob")
        assert memory.names() == ["Ada"]
    assert path.read_bytes() == content
    assert memory.beside() == set()

    memory.create("Eve")
    assert path.read_bytes() == journal(ADA, EVE)
    assert memory.is_sound()


# ── the middle ───────────────────────────────────────────────────────────────────────────────────


def test_a_damaged_record_is_left_out_and_stays_until_the_file_is_compacted(path: Path) -> None:
    damaged = bytearray(mcpmem.frame(BOB, 2))
    damaged[6] ^= 1
    content = journal(ADA) + bytes(damaged) + mcpmem.frame(EVE, 2)
    path.write_bytes(content)
    memory = Asked(path)
    assert memory.names() == ["Ada", "Eve"]
    assert path.read_bytes() == content
    assert memory.beside() == set()

    found = memory.space.check()
    assert [finding.repaired for finding in found] == [False]
    assert "its checksum is wrong" in found[0].text
    assert [finding.repaired for finding in memory.space.check(repair=True)] == [True]
    assert path.read_bytes() == journal(ADA, EVE)
    assert kept(path) == damaged
    assert memory.is_sound()


def test_damage_that_appears_while_the_file_is_open_is_seen_when_it_is_read(path: Path) -> None:
    memory, other = Asked(path), Asked(path)
    memory.create("Ada", observations=("likes tea",))
    other.names()
    with path.open("ab") as stranger:
        stranger.write(b"\x0a\x00\x00\x00\x63rubbish" + mcpmem.frame(BOB, 2))

    assert other.names() == ["Ada", "Bob"]
    memory.create("Eve")
    assert other.names() == ["Ada", "Bob", "Eve"]
    other.store.compact()
    assert kept(path).endswith(b"rubbish")
    assert path.read_bytes() == journal(ADA, BOB, EVE)
    assert memory.names() == ["Ada", "Bob", "Eve"]


@given(st.integers(0, 400), st.integers(1, 255), st.sampled_from([1, 2]))
@settings(max_examples=120, deadline=None)
def test_one_wrong_byte_costs_one_record_at_most(place: int, change: int, version: int) -> None:
    """In version 2 the checksum tells it; version 1 cannot tell a changed letter, and loses nothing else either."""
    names = [f"entity number {number}" for number in range(8)]
    content = bytearray(journal(*[mcpmem.create_entity(name, "t", ["x"]) for name in names], version=version))
    content[8 + place % (len(content) - 8)] ^= change
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory.mcpmem")
        path.write_bytes(content)
        memory = Asked(path)
        assert len(set(names) - set(memory.names())) <= 1
        memory.create("later")
        assert {*memory.names()} == {*Asked(path).names()}
        memory.space.close()


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_whatever_follows_the_good_part_is_kept_and_nothing_crashes(rubbish: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory.mcpmem")
        path.write_bytes(EXAMPLE + rubbish)
        memory = Asked(path)
        assert "A" in memory.names()
        memory.create("later")
        assert {"A", "later"} <= {*Asked(path).names()}
        left = len(path.read_bytes()) + (len(kept(path)) if memory.beside() else 0)
        assert path.read_bytes().startswith(EXAMPLE)
        assert left >= len(EXAMPLE + rubbish + mcpmem.frame(mcpmem.create_entity("later", "t", []), 1))
        memory.space.close()


# ── the beginning ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "content",
    [b"hello", b"SQLite format 3\0" + bytes(80), b'{"type":"entity"}\n', bytes(99) + b"x", b"MCPMEMV3" + EXAMPLE[8:]],
)
def test_a_file_that_is_something_else_is_never_touched(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    memory = Asked(path)
    with pytest.raises(Refused, match="store_damaged"):
        memory.names()
    with pytest.raises(Refused, match="store_damaged"):
        memory.create("Ada")
    with pytest.raises(StoreDamaged):
        memory.store.compact()

    assert path.read_bytes() == content
    assert memory.beside() == set()


def test_a_file_whose_magic_was_cut_is_begun_again(path: Path) -> None:
    path.write_bytes(b"MCPME")
    memory = Asked(path)
    memory.create("Ada", observations=("likes tea",))

    assert path.read_bytes() == journal(ADA)
    assert kept(path) == b"MCPME"


@pytest.mark.parametrize("version", [1, 2])
def test_records_without_magic_are_served_and_get_their_magic_with_the_next_write(path: Path, version: int) -> None:
    """The Rust server appends to an empty file without writing the magic first, and then sees nothing of it."""
    content = mcpmem.frame([*ADA, *BOB], version)
    path.write_bytes(content)
    memory, reader = Asked(path), Asked(path)
    assert memory.names() == reader.names() == ["Ada", "Bob"]
    assert path.read_bytes() == content

    memory.create("Eve")
    assert path.read_bytes() == journal(ADA, BOB, EVE, version=version)
    assert reader.names() == ["Ada", "Bob", "Eve"]
    memory.create("Dan")
    assert reader.names() == ["Ada", "Bob", "Eve", "Dan"]
    assert memory.is_sound() and reader.is_sound()


# ── disks ────────────────────────────────────────────────────────────────────────────────────────


def failing(number: int) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, "store_full"), (errno.EIO, "Input/output|I/O")])
@pytest.mark.parametrize("system_call", ["write", "fsync"])
def test_a_failing_disk_changes_nothing_and_the_service_resumes(
    path: Path, monkeypatch: pytest.MonkeyPatch, system_call: str, number: int, code: str
) -> None:
    memory = Asked(path, durability="sync")
    memory.create("Ada", observations=("likes tea",))
    with monkeypatch.context() as broken:
        broken.setattr(os, system_call, failing(number))
        with pytest.raises(Refused, match=code):
            memory.create("Bob", "Eve")
        assert memory.names() == ["Ada"]
    assert path.read_bytes() == journal(ADA)

    memory.create("Bob")
    assert Asked(path).names() == memory.names() == ["Ada", "Bob"]
    assert memory.is_sound()


def test_a_disk_that_fills_up_halfway_leaves_no_half_record(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Asked(path)
    memory.create("Ada", observations=("likes tea",))
    write = os.write
    room = 10

    def scarce(file: int, data: memoryview) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(file, data[:room])
        room -= written
        return written

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", scarce)
        with pytest.raises(Refused, match="Free some space"):
            memory.create("Bob")
    assert path.read_bytes() == journal(ADA)
    assert memory.beside() == set()
    memory.create("Eve")
    assert path.read_bytes() == journal(ADA, EVE)


def test_a_compaction_that_fails_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Asked(path)
    memory.create("Ada", "Bob")
    before = path.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", failing(errno.EIO))
        with pytest.raises(Exception, match="Cannot write"):
            memory.store.compact()
    assert path.read_bytes() == before
    assert memory.beside() == set()
    assert memory.is_sound()


def test_a_read_only_file_is_read_and_not_written(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada", observations=("likes tea",))
    path.chmod(0o444)
    with pytest.raises(Refused, match="store_read_only"):
        memory.create("Bob")
    assert memory.names() == ["Ada"]
    assert path.read_bytes() == journal(ADA)

    path.chmod(0o644)
    memory.create("Eve")
    assert memory.names() == ["Ada", "Eve"]
    assert memory.is_sound()


# ── processes ────────────────────────────────────────────────────────────────────────────────────


def test_four_processes_lose_nothing(path: Path) -> None:
    with ExitStack() as stack:
        peers = [stack.enter_context(server(path)) for _ in range(PROCESSES)]
        for peer in peers:
            peer.initialize()
        for who, peer in enumerate(peers):
            peer.send(*writes(who, WRITES))
        answered = [acknowledged(peer, WRITES) for peer in peers]

    memory = Asked(path)
    assert [len(names) for names in answered] == [WRITES] * PROCESSES
    assert sorted(memory.names()) == sorted(name for names in answered for name in names)
    assert memory.beside() == set()
    assert memory.is_sound()


def test_killed_processes_lose_nothing_that_was_answered(path: Path) -> None:
    chance = random.Random(3)
    answered: list[str] = []
    for round_ in range(4):
        with ExitStack() as stack:
            peers = [stack.enter_context(server(path)) for _ in range(2)]
            for peer in peers:
                peer.initialize()
            for who, peer in enumerate(peers):
                peer.send(*writes(round_ * 2 + who, WRITES))
            victim = peers[round_ % 2]
            answered += acknowledged(victim, chance.randrange(1, WRITES - 20))
            victim.process.kill()
            answered += acknowledged(victim, WRITES)
            answered += acknowledged(peers[1 - round_ % 2], WRITES)

    memory = Asked(path)
    names = memory.names()
    assert set(answered) <= set(names)
    assert len(names) == len(set(names))
    assert memory.is_sound()


DIE_WHILE_WRITING = """
import os, signal, sys
from mcp_memory.assembly import open_space
from mcp_memory.changes import EntityCreated, EntityDeleted, ObservationsAdded, Plan

write = os.write
space = open_space(sys.argv[1])

def half(file, data):
    if bytes(data[:8]) == b"flushed ":  # a note beside, and no part of the plan
        return write(file, data)
    write(file, data[: int(sys.argv[2])])
    os.kill(os.getpid(), signal.SIGKILL) if hasattr(signal, "SIGKILL") else os._exit(9)

def merge(graph):
    ada, bob = graph["Ada"], graph["Bob"]
    return Plan([ObservationsAdded(bob.id, graph.next_observation, ["likes tea"]), EntityDeleted(ada.id)])

space.graph()
os.write = half
space.commit(merge)
"""


@pytest.mark.parametrize("size", [1, 12, 33])
def test_death_in_the_middle_of_a_write_leaves_the_plan_undone(path: Path, size: int) -> None:
    path.write_bytes(journal(ADA, BOB))
    ended = subprocess.run([sys.executable, "-c", DIE_WHILE_WRITING, str(path), str(size)], check=False, timeout=60)
    assert ended.returncode in {9, -getattr(signal, "SIGKILL", 9)}
    assert len(path.read_bytes()) == len(journal(ADA, BOB)) + size

    memory = Asked(path)
    assert memory.names() == ["Ada", "Bob"]
    memory.create("Eve")
    assert path.read_bytes() == journal(ADA, BOB, EVE)
    assert len(kept(path)) == size
    assert memory.is_sound()
