"""However a server is asked to end: what it received is answered or never acknowledged, and nothing is left over."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import apsw
import pytest

from tests.conftest import STORES
from tests.crash.harness import Promises, Server, entity

EOF = 0
ENDINGS = [EOF] if sys.platform == "win32" else [EOF, signal.SIGTERM, signal.SIGINT]
# The promise is one second. A busy machine may need it several times over before the process gets its turn.
SECONDS = 5.0


def end(server: Server, how: int) -> float:
    code, seconds = server.close() if how == EOF else server.signal(how)
    assert code == 0
    assert "Traceback" not in server.stderr()
    return seconds


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("how", ENDINGS)
def test_a_server_ends_in_the_middle_of_its_calls(name: str, how: int, tmp_path: Path) -> None:
    path = tmp_path / name
    promises = Promises()
    server = Server(path)
    for number in range(300):
        promises.ask(server, entity(f"thing {number}", "seen", "heard"))
    promises.wait_for(server, 5)
    seconds = end(server, how)
    promises.collect()

    assert seconds < SECONDS
    if how == EOF:
        assert len(promises.acknowledged) == 300
    promises.are_kept_in(path)
    assert {file.name for file in tmp_path.iterdir()} <= {name, f"{name}.lock"}


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("how", ENDINGS)
def test_a_server_ends_while_it_has_nothing_to_do(name: str, how: int, tmp_path: Path) -> None:
    server = Server(tmp_path / name)
    server.call("create_entities", entities=[{"name": "Ada"}])
    seconds = end(server, how)

    assert seconds < SECONDS
    assert {file.name for file in tmp_path.iterdir()} <= {name, f"{name}.lock"}


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


@pytest.mark.parametrize("how", ENDINGS)
def test_a_server_ends_in_time_though_another_program_holds_the_file(how: int, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
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

    assert seconds < SECONDS
    promises.are_kept_in(path)
