"""The doctor may come at any time: while others write, and where nothing may be written."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import STORES
from tests.crash.harness import COMMAND, Server
from tests.crash.places import forbidden, obedient


def doctor(path: Path, command: Sequence[str] = COMMAND) -> str:
    asked = [*command, "--memory-file", str(path), "doctor"]
    done = subprocess.run(asked, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def writing(server: Server) -> Iterator[None]:
    """Somebody writes all the time."""
    is_over = threading.Event()

    def write() -> None:
        number = 0
        while not is_over.is_set():
            server.call("create_entities", entities=[{"name": f"thing {number}", "observations": ["seen", "heard"]}])
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        is_over.set()
        writer.join()


@pytest.mark.parametrize("name", STORES)
def test_the_doctor_finds_nothing_wrong_with_a_memory_that_is_written_to(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with Server(path) as server:
        server.call("create_entities", entities=[{"name": "Ada"}])
        with writing(server):
            for _ in range(4):
                assert "as it should be" in doctor(path)
        assert server.close()[0] == 0


@pytest.mark.parametrize("name", STORES)
def test_the_doctor_looks_at_what_may_not_be_written(name: str, tmp_path: Path) -> None:
    path = tmp_path / "memory" / name
    with Server(path) as server:
        server.call("create_entities", entities=[{"name": "Ada"}])
        server.close()
    before = path.read_bytes()
    with forbidden(path, path.parent):
        assert "as it should be" in doctor(path, obedient())

    assert path.read_bytes() == before
