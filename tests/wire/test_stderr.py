"""What a server says of itself keeps nobody waiting, not even where stderr is a pipe that nobody reads."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.stores.journal import mcpmem
from mcp_memory.wire.stderr import Patient
from tests.wire.network import HELLO, PATIENCE, Line, Unheard, Web, call, request, running

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a pipe cannot be asked for room there")

RUBBISH = b"\xaa" * 40


def worth_a_warning(name: str) -> bytes:
    """What a journal is served without, and says so, and an entity behind it."""
    return RUBBISH + mcpmem.frame(mcpmem.create_entity(name, "Person", []), 2)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the pipe of another process cannot be filled")
@pytest.mark.parametrize("transport", ["tcp", "http"])
def test_a_server_that_nobody_hears_answers_and_ends(tmp_path: Path, transport: str) -> None:
    file = tmp_path / "memory.mcpmem"
    command = ["-m", "mcp_memory", "-f", str(file), "--transport", transport, "--audit", "calls"]
    with running(Unheard(*command)) as server:
        server.fill_stderr()
        for number in range(3):
            file.write_bytes(mcpmem.MAGIC[2] + b"".join(worth_a_warning(f"Person {each}") for each in range(number)))
            answer = ask(server, transport, call(number, "open_nodes", names=[f"Person {number - 1}"]))
            assert len(answer["result"]["structuredContent"]["entities"]) == (number > 0)
        started = time.monotonic()

        code, said = server.end()

    assert code == 0
    assert time.monotonic() - started < PATIENCE / 4  # two seconds on a machine that has time
    assert set(said) == {"."}


def ask(server: Unheard, transport: str, message: bytes) -> Any:
    if transport == "tcp":
        with Line(server) as line:
            return line.ask(message)
    with Web(server) as web:
        web.shake_hands()
        return web.post(message).message


def test_a_client_that_never_reads_stderr_is_answered(tmp_path: Path) -> None:
    file = tmp_path / "memory.mcpmem"
    file.write_bytes(mcpmem.MAGIC[2] + worth_a_warning("Ada"))
    reading, writing = full_pipe()
    command = [sys.executable, "-m", "mcp_memory", "-f", str(file)]
    lines = [request("initialize", 0, **HELLO), call(1, "open_nodes", names=["Ada"]), b""]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writing) as process:
        said, _ = process.communicate(b"\n".join(lines), timeout=PATIENCE)
    os.close(writing)
    os.close(reading)

    assert process.returncode == 0
    answers = [json.loads(line) for line in said.splitlines()]
    assert answers[1]["result"]["structuredContent"]["entities"][0]["name"] == "Ada"


def full_pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writing, b".")
    os.set_blocking(writing, True)
    return reading, writing


def test_what_was_left_out_is_counted_for_who_reads_later() -> None:
    reading, writing = full_pipe()
    patient = Patient(writing)
    for number in range(3):
        patient.write(f"line {number}\n".encode())
    while select.select([reading], [], [], 0)[0]:
        os.read(reading, 1 << 20)
    patient.write(b"line 3\n")
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert pipe.read() == b"\nmcp-memory: 3 lines are left out here, which nobody read\nline 3\n"


def test_a_long_text_arrives_whole_where_somebody_reads() -> None:
    reading, writing = os.pipe()
    text = b"".join(b"line %d\n" % number for number in range(100_000))
    said: list[bytes] = []
    with open(reading, "rb") as pipe:
        listener = threading.Thread(target=lambda: said.append(pipe.read()))
        listener.start()
        assert Patient(writing).write(text) == len(text)
        os.close(writing)
        listener.join(PATIENCE)

    assert said == [text]
