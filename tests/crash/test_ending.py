"""However a server is asked to end: what it received is answered, it is over within a second, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.conftest import STORES
from tests.crash.harness import COMMAND, Promises, Server, entity, locked, names_in

EOF = 0
SIGNALS = [] if sys.platform == "win32" else [signal.SIGTERM, signal.SIGINT]
ENDINGS = [EOF, *SIGNALS]
# The promise. A busy machine may give the time to others: then it must be kept by one of a few tries.
SECOND, TRIES = 1.0, 4
CALLS = 300
LONG = [{"name": f"{number}", "observations": ["x" * 1990]} for number in range(50)]


def end(server: Server, how: int) -> float:
    code, seconds = server.close() if how == EOF else server.signal(how)
    assert code == 0
    assert "Traceback" not in server.stderr()
    return seconds


def takes_less_than_a_second(ending: Callable[[Path], float], folder: Path) -> bool:
    """Does it, one time or another? What else it shows must be so every time."""
    for number in range(TRIES):
        place = folder / str(number)
        place.mkdir()
        if ending(place) < SECOND:
            return True
    return False


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("how", ENDINGS)
def test_a_server_ends_in_the_middle_of_its_calls(name: str, how: int, tmp_path: Path) -> None:
    def ending(folder: Path) -> float:
        promises = Promises()
        server = Server(folder / name)
        for number in range(CALLS):
            promises.ask(server, entity(f"thing {number}", "seen", "heard"))
        promises.wait_for(server, 5)
        seconds = end(server, how)
        promises.collect()
        assert promises.counts["gone"] == 0
        if how == EOF:
            assert len(promises.acknowledged) == CALLS
        promises.are_kept_in(folder / name)
        # Calls that take seconds are embedded meanwhile.
        assert {file.name for file in folder.iterdir()} <= {name, f"{name}.lock", f"{name}-vectors"}
        return seconds

    if how == EOF and name.endswith(".jsonl"):
        # Nobody waits for one who hangs up, and each of these writes waits for the disk: they take what they take.
        ending(tmp_path)
    else:
        assert takes_less_than_a_second(ending, tmp_path)


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("how", ENDINGS)
def test_a_server_ends_while_it_has_nothing_to_do(name: str, how: int, tmp_path: Path) -> None:
    def ending(folder: Path) -> float:
        server = Server(folder / name)
        server.call("create_entities", entities=[{"name": "Ada"}])
        seconds = end(server, how)
        assert {file.name for file in folder.iterdir()} <= {name, f"{name}.lock"}
        return seconds

    assert takes_less_than_a_second(ending, tmp_path)


@pytest.mark.parametrize("how", ENDINGS)
def test_an_end_takes_nothing_from_the_other_processes(how: int, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    promises = Promises()
    with Server(path) as other:
        promises.ask(other, entity("before"))
        server = Server(path)
        promises.ask(server, entity("at the end"))
        promises.collect()
        end(server, how)
        promises.ask(other, entity("after"))
        promises.collect()
        other.kill()

    assert len(promises.acknowledged) == 3
    promises.are_kept_in(path)


# ── another program holds the file ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ENDINGS)
def test_a_server_ends_in_time_though_its_projections_wait_for_another_program(how: int, tmp_path: Path) -> None:
    def ending(folder: Path) -> float:
        path = folder / "memory.db"
        promises = Promises()
        server = Server(path)
        promises.ask(server, entity("Ada"))
        promises.collect()
        other = apsw.Connection(str(path))
        other.set_busy_timeout(5000)
        other.execute("begin immediate")
        time.sleep(0.1)  # the projections are now waiting for the lock, or are done
        seconds = end(server, how)
        other.close()
        promises.are_kept_in(path)
        return seconds

    assert takes_less_than_a_second(ending, tmp_path)


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("how", ENDINGS)
def test_a_server_ends_in_time_though_a_write_waits_for_another_program(name: str, how: int, tmp_path: Path) -> None:
    def ending(folder: Path) -> float:
        path = folder / name
        promises = Promises()
        server = Server(path)
        promises.ask(server, entity("Ada"))
        promises.collect()
        with locked(path):
            for number in range(20):
                promises.ask(server, entity(f"in vain {number}"))
            server.ping()
            seconds = end(server, how)
        promises.collect()
        assert promises.counts == {"refused": 20, "gone": 0, "silent": 0}
        assert "nothing was changed" in server.last_refusal.lower()
        assert names_in(path) == ["Ada"]
        return seconds

    assert takes_less_than_a_second(ending, tmp_path)


# ── nobody reads any more ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", SIGNALS)
@pytest.mark.parametrize("tool", ["read_graph", "export_graph"])
def test_a_server_ends_in_time_though_nobody_reads_its_answers(tool: str, how: int, tmp_path: Path) -> None:
    """`export_graph` answers from a thread of its own, which no signal wakes."""

    def ending(folder: Path) -> float:
        path = folder / "memory.db"
        with Server(path) as server:
            server.call("create_entities", entities=LONG)
            server.close()
        process = subprocess.Popen(
            [*COMMAND, "--memory-file", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "HOME": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert process.stdin is not None and process.stdout is not None
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        process.stdin.write(b"".join(json.dumps(call | {"id": n}).encode() + b"\n" for n in range(30)))
        process.stdin.flush()
        assert process.stdout.read(1) == b"{"
        time.sleep(0.3)  # the pipe is full
        began = time.monotonic()
        process.send_signal(how)
        assert process.wait(60) == 0
        seconds = time.monotonic() - began
        process.stdin.close()
        process.stdout.close()
        assert len(names_in(path)) == len(LONG)
        assert {file.name for file in folder.iterdir()} == {"memory.db"}
        return seconds

    assert takes_less_than_a_second(ending, tmp_path)


@pytest.mark.skipif(not SIGNALS, reason="a process on Windows cannot be asked to end")
def test_a_client_that_reads_slowly_gets_its_answers_after_a_signal(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Server(path) as server:
        server.call("create_entities", entities=LONG)
        asked = [server.send("read_graph") for _ in range(100)]
        server.outcome(asked[0])
        server.signal(signal.SIGTERM)
        said = [server.outcome(one)["entities"] for one in asked]

    assert [len(entities) for entities in said] == [len(LONG)] * 100
