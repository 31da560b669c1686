"""The power fails: `sync` loses nothing that was acknowledged, `normal` at most the last moment, in order.

What is left of the files is computed: what was flushed is there, what was not is kept or lost sector by sector."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from mcp_memory.torture.platter import SECTOR, Platter, torn
from tests.crash.power import STORES, memory

SEEDS = range(4)
WINDOW = 1.0  # as docs/durability.md says; a quiet moment comes after 0.05
BUSY = 4.0  # that much later a machine that has no time for us has still flushed


# ── sync ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("store", STORES)
def test_with_sync_a_power_cut_takes_nothing_that_was_acknowledged(store: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    with memory(tmp_path, store, "sync") as tortured:
        for turn in range(2):
            servers = [tortured.start(), tortured.start()]
            for number in range(10):
                for who, server in enumerate(servers):
                    tortured.ask(server, f"{turn} {who} {number}", chance.choice((10, 700, 1900)))
            tortured.promises.wait_for(servers[0], chance.randint(1, 10))
            tortured.cut_the_power(chance)

            assert tortured.promises.acknowledged
            assert tortured.lost() == []


# ── normal ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("store", STORES)
def test_with_normal_what_is_left_after_a_power_cut_is_the_beginning_of_what_was_acknowledged(
    store: str, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    with memory(tmp_path, store, "normal") as tortured:
        server = tortured.start()
        for number in range(30):
            tortured.ask(server, f"thing {number}", chance.choice((10, 700, 1900)))
        tortured.promises.wait_for(server, chance.randint(5, 30))
        if seed % 2:
            time.sleep(0.05)  # the quiet moment is now
        tortured.cut_the_power(chance)
        census = tortured.census()

    there = [deed.count(census) for deed in tortured.made]
    assert there == sorted(there, reverse=True)
    assert set(there) <= {0, 1}


@pytest.mark.parametrize("store", STORES)
def test_with_normal_a_power_cut_takes_nothing_after_a_quiet_moment(store: str, tmp_path: Path) -> None:
    with memory(tmp_path, store, "normal") as tortured:
        server = tortured.start()
        for number in range(20):
            tortured.ask(server, f"thing {number}")
        tortured.promises.wait_for(server, 20)
        time.sleep(WINDOW)
        for turn in range(3):  # the first cut may be a mild one
            tortured.cut_the_power(random.Random(turn))
            assert tortured.lost() == []
        assert len(tortured.promises.acknowledged) == 20


@pytest.mark.parametrize("store", STORES)
def test_with_normal_a_power_cut_takes_nothing_old_though_it_was_never_quiet(store: str, tmp_path: Path) -> None:
    with memory(tmp_path, store, "normal") as tortured:
        server = tortured.start()
        until = time.monotonic() + WINDOW + BUSY
        number = 0
        while time.monotonic() < until:
            number += 1
            tortured.ask(server, f"thing {number} of many")
            time.sleep(0.01)
        at = tortured.cut_the_power(random.Random(1))

        lost = tortured.lost()
        assert [at - one.acknowledged_at for one in lost if at - one.acknowledged_at > BUSY] == []


# ── is the disk of these tests one that loses anything? ──────────────────────────────────────────


def test_a_platter_keeps_what_was_flushed_and_may_lose_the_rest(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    platter = Platter(str(folder), str(tmp_path / "platter"))
    file = folder / "file"
    flushed = os.urandom(3 * SECTOR + 100)
    file.write_bytes(flushed)
    platter.take_all()
    added = os.urandom(4 * SECTOR)
    with open(file, "ab") as end:
        end.write(added)
    found = {platter.after_the_cut(random.Random(seed))["file"] for seed in range(200)}

    assert all(one.startswith(flushed) for one in found)
    assert {flushed, flushed + added} < found
    assert any(0 < one[len(flushed) :].count(0) for one in found if len(one) > len(flushed) + SECTOR)


def test_a_platter_may_lose_a_name_until_its_folder_is_flushed(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "file").write_bytes(b"old")
    platter = Platter(str(folder), str(tmp_path / "platter"))
    platter.take_all()
    (folder / "new").write_bytes(b"new")
    platter.take_content(str(folder / "new"), lambda: b"new")
    os.replace(folder / "new", folder / "file")
    found = {platter.after_the_cut(random.Random(seed))["file"] for seed in range(50)}
    assert found == {b"old", b"new"}

    platter.take_names()
    assert {platter.after_the_cut(random.Random(seed))["file"] for seed in range(50)} == {b"new"}


def test_what_was_cut_off_and_not_flushed_may_be_there_again() -> None:
    assert {torn(b"abc", b"", random.Random(seed)) for seed in range(50)} == {b"abc", b""}
