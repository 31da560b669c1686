"""`mcp-memory torture`, as a person runs it: ours come through, and those that lose something are found out."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.torture.report import ROWS
from mcp_memory.torture.siege import Plan, Siege
from mcp_memory.torture.targets import Ours, Peer, Place
from mcp_memory.torture.weather import Weather
from tests.crash.harness import COMMAND
from tests.crash.power import STORES
from tests.peers import node, npm_folder

LOSSY = Path(__file__).with_name("lossy.py")
SECONDS = 240
WRONG = (
    "lost writes",
    "written twice or in part",
    "unreadable files",
    "doctor findings",
    "stuck when all was well again",
)
ALL_FAULTS = ("kill", "full", "failing", "slow", "clock", "power")


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command, with its temporary files where we can look at them."""
    return subprocess.run(
        [*COMMAND, "torture", *options],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=SECONDS,
        env={**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "MCP_MEMORY_SETTINGS": os.devnull},
    )


def tortured(folder: Path, *options: str) -> list[dict[str, Any]]:
    """The scores of those who were tortured; they need not be good."""
    done = run(folder, "--json", *options)
    assert done.stdout, done.stderr
    scores: list[dict[str, Any]] = json.loads(done.stdout)["targets"]
    assert done.returncode == (0 if all(is_faultless(score) for score in scores) else 1)
    return scores


def is_faultless(score: dict[str, Any]) -> bool:
    return not any(score[what] for what in ("lost", "doubled", "unreadable", "findings", "stuck"))


@pytest.mark.parametrize("store", STORES)
def test_ours_lose_nothing_under_all_of_it_and_nothing_is_left_over(store: str, tmp_path: Path) -> None:
    (score,) = tortured(tmp_path, "--stores", store, "--rounds", "6")

    assert is_faultless(score), score
    assert score["rounds"] == 6
    assert score["acknowledged"] > 0 and score["kills"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", ALL_FAULTS)
def test_each_fault_alone_comes_and_costs_nothing(fault: str, tmp_path: Path) -> None:
    rounds = "3" if fault in ("kill", "power") else "6"  # a fault of the disk is not drawn every time
    options = ("--rounds", rounds, "--seed", "1", "--processes", "2", "--calls", "8", "--faults", fault)
    (score,) = tortured(tmp_path, "--stores", "jsonl" if fault == "slow" else "sqlite", *options)

    assert is_faultless(score), score
    came = {"kill": score["kills"], "power": score["cuts"], **score["struck"]}
    assert {one for one, count in came.items() if count} - {"kill"} == {fault} - {"kill"}
    assert bool(score["kills"]) == (fault == "kill" or bool(score["cuts"]))


def test_with_sync_a_power_cut_takes_nothing_back(tmp_path: Path) -> None:
    options = ("--durability", "sync", "--faults", "power,kill", "--rounds", "4", "--processes", "2", "--seed", "5")
    scores = tortured(tmp_path, *options)

    assert [score["target"] for score in scores] == ["sqlite, sync", "journal, sync", "jsonl, sync"]
    assert all(is_faultless(score) and score["taken_back"] == 0 for score in scores), scores
    assert sum(score["cuts"] for score in scores) > 0


# ── those that lose something ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sin", "is_told_as"),
    [("forgets", "lost"), ("repeats", "doubled"), ("breaks", "unreadable"), ("races", "lost"), ("dies", "stuck")],
)
def test_a_server_that_loses_something_is_found_out(sin: str, is_told_as: str, tmp_path: Path) -> None:
    command = f'"{sys.executable}" "{LOSSY}" {sin} {{file}}'
    processes = "2" if sin == "races" else "1"
    # No kill: it may come before the first sin.
    options = ("--rounds", "2", "--calls", "9", "--faults", "slow", "--processes", processes)
    (score,) = tortured(tmp_path, "--stores", "none", "--server", command, *options)

    assert score["target"] == "lossy"
    assert score[is_told_as] > 0
    assert score["examples"]
    evidence = Path(score["evidence"][0])
    assert "memory.json" in {file.name for file in (evidence / "memory").iterdir()}
    assert score["examples"][0] in (evidence / "what.txt").read_text(encoding="utf-8")


class Unflushed(Ours):
    module = "tests.crash.unflushed"


@pytest.mark.parametrize("store", ["sqlite", "jsonl"])
def test_a_server_that_never_brings_anything_to_the_disk_is_found_out(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it acknowledged is gone after a power cut, and older than the window."""
    monkeypatch.setattr("mcp_memory.torture.siege.LONG_STORMS", 1.0)
    plan = Plan(rounds=20, processes=1, calls=6, faults=("power",))
    siege = Siege(Unflushed(store, "normal"), plan, str(tmp_path), random.Random(3))

    score = siege.run(lambda: siege.score.lost > 0, lambda _: None)

    assert score.cuts > 0
    assert score.lost > 0
    assert score.examples[0].startswith("lost: ")


def test_an_honest_server_alone_on_its_file_is_not_accused(tmp_path: Path) -> None:
    command = f'"{sys.executable}" "{LOSSY}" nothing {{file}}'
    options = ("--rounds", "3", "--calls", "6", "--faults", "slow", "--processes", "1")
    (score,) = tortured(tmp_path, "--stores", "none", "--server", command, *options)

    assert is_faultless(score), score
    assert score["acknowledged"] > 10


def test_the_official_server_stands_beside_ours_in_one_table(tmp_path: Path) -> None:
    script = npm_folder() / "node_modules/@modelcontextprotocol/server-memory/dist/index.js"
    server = (
        "--server",
        f'"{node()}" "{script}"',
        "--file-variable",
        "MEMORY_FILE_PATH",
        "--file-name",
        "memory.jsonl",
    )
    done = run(tmp_path, "--rounds", "2", "--stores", "jsonl", "--faults", "kill", *server)
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[0] == "|"]

    assert lines[0][1] == "jsonl"
    assert lines[0][2].startswith("memory-server ")
    assert [line[0] for line in lines[2:-1]] == [name for name, _ in ROWS]
    rows = {line[0]: line[1:] for line in lines}
    assert rows["rounds"] == ["2", "2"]
    assert rows["lost writes"][0] == "0"
    assert all(int(count.replace(",", "")) > 0 for count in rows["acknowledged writes"])
    assert done.returncode == (1 if any(count not in {"0", "-"} for name in WRONG for count in rows[name]) else 0)


# ── what can be asked for ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--stores", "postgres"], "There is no store 'postgres'; --stores knows sqlite, journal, jsonl, or none."),
        (["--faults", "rain"], "--faults knows kill, full, failing, slow, clock, power"),
        (["--stores", "none"], "somebody must be tortured: --stores or --server"),
        (["--server", "node index.js"], "--file-variable NAME, or {file} in --server"),
        (["--server", "x {file}", "--file-name", "a/b"], "--file-name is the name of a file"),
        (["--stores", "none", "--server", "no-such-program {file}"], "The other server cannot be started"),
        (["--rounds", "0"], "--rounds cannot be '0': it must be a whole number from 1 up."),
    ],
)
def test_what_cannot_be_done_is_said(options: list[str], complaint: str, tmp_path: Path) -> None:
    done = run(tmp_path, *options)

    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_it_stops_when_its_time_is_over(tmp_path: Path) -> None:
    done = run(tmp_path, "--rounds", "100000", "--minutes", "0.05", "--stores", "journal", "--json")

    (score,) = json.loads(done.stdout)["targets"]
    assert score["rounds"] < 100000
    assert "stopped after" in done.stderr
    assert done.returncode == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no asking a process to end there")
def test_asked_to_end_it_leaves_nothing_behind(tmp_path: Path) -> None:
    asked = [*COMMAND, "torture", "--stores", "journal"]
    surroundings = {**os.environ, "TMPDIR": str(tmp_path), "MCP_MEMORY_SETTINGS": os.devnull}
    with subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=surroundings) as process:
        deadline = time.monotonic() + SECONDS
        while not list(tmp_path.glob("*/*/*/memory/memory.mcpmem")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.terminate()
        assert process.wait(SECONDS) == 130

    assert list(tmp_path.iterdir()) == []


def test_a_server_that_nobody_tortures_knows_nothing_of_it() -> None:
    """Faults come in by the wrapper only: the server itself imports none of it."""
    look = "import sys, mcp_memory.server, mcp_memory.cli, mcp_memory.assembly; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", look], capture_output=True, encoding="utf-8", check=True).stdout

    assert "mcp_memory.cli" in loaded.split()
    assert not [name for name in loaded.split() if name.startswith("mcp_memory.torture")]


@pytest.mark.skipif(sys.platform != "linux", reason="the system limits the files of any process only there")
@pytest.mark.parametrize("sizes", [(), (10, 300, 20)])
def test_the_disk_of_any_server_is_full_whatever_stands_in_its_folder(sizes: tuple[int, ...], tmp_path: Path) -> None:
    import resource

    place = Place(str(tmp_path / "place"), "memory.json")
    for number, size in enumerate(sizes):
        (Path(place.memory) / str(number)).write_bytes(bytes(size))
    target = Peer(f'"{sys.executable}" "{LOSSY}" nothing {{file}}', "", "memory.json")
    with target.start(place, 0) as server:
        target.set_weather(place, [server], Weather(full=True))
        assert resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)[0] == max(sizes, default=0)
        target.set_weather(place, [server], Weather())
        assert resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
