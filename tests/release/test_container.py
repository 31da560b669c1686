"""The container, as far as it can be judged without an engine: its recipe read as instructions, and its health check
run against servers that run. Where there is an engine, the image is built and asked too."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path
from uuid import uuid4

import mcp_memory
from mcp_memory.settings import FIELDS
from tests.conftest import FIGURES, Recorder
from tests.peers import ROOT
from tests.wire.network import PATIENCE, SETTINGS, real, running

STAGE = "FROM"


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the recipe and what follows it, lines joined and comments left out."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def last_stage() -> list[tuple[str, str]]:
    made = instructions()
    start = max(place for place, (word, _) in enumerate(made) if word == STAGE)
    return made[start:]


def only(word: str) -> str:
    (found,) = [rest for name, rest in last_stage() if name == word]
    return found


def test_the_recipe_has_two_stages_of_one_pinned_image() -> None:
    made = instructions()
    (image,) = [rest.partition("=")[2] for word, rest in made if word == "ARG"]

    assert [rest for word, rest in made if word == STAGE] == ["${PYTHON} AS build", "${PYTHON}"]
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", image)
    assert tuple(map(int, re.findall(r"\d+", image)[:2])) >= (3, 11)


def test_nobody_in_the_container_is_root_and_only_data_can_be_written() -> None:
    user = only("USER")
    words = [word for word, _ in last_stage()]

    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
    assert json.loads(only("ENTRYPOINT")) == ["mcp-memory"]
    assert only("VOLUME") == only("WORKDIR") == "/data"
    assert words.index("RUN") < words.index("USER") < words.index("ENTRYPOINT")
    assert not [rest for word, rest in last_stage() if word in ("COPY", "ADD") and "--chown" in rest]


def test_what_is_installed_is_locked_compiled_and_fetched_by_nobody_else() -> None:
    steps = [rest for word, rest in instructions() if word == "RUN"]

    assert any("--require-hashes -r requirements/run.txt" in step for step in steps)
    assert any("compileall" in step for step in steps)
    assert not [step for step in steps if re.search(r"curl|wget|\| *(ba)?sh|https?:|--trusted-host", step)]
    assert not [rest for word, rest in instructions() if word == "ADD"]


def test_everything_that_is_copied_exists_and_reaches_the_engine() -> None:
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    shown = [line[1:] for line in allowed if line.startswith("!")]
    copied = [
        source
        for word, rest in instructions()
        if word == "COPY" and "--from=" not in rest
        for source in rest.split()[:-1]
    ]

    assert "*" in allowed and {"src", "pyproject.toml"} <= set(copied)
    for source in copied:
        assert (ROOT / source).exists(), source
        assert any(fnmatch(source, pattern) for pattern in shown), source


def test_the_variables_that_it_sets_are_settings() -> None:
    known = {field.env for field in FIELDS.values()}
    set_here = re.findall(r"(\w+)=\S+", only("ENV"))

    assert {name for name in set_here if name.startswith(("MCP_", "MEMORY_"))} <= known
    assert "MEMORY_FILE_PATH" in set_here


# ── the health check ─────────────────────────────────────────────────────────────────────────────


def check() -> list[str]:
    """The health check's command, with the program of this environment for the container's."""
    found = re.search(r"CMD (\[.*\])$", only("HEALTHCHECK"))
    assert found
    program, *words = json.loads(found[1])
    assert program == "mcp-memory"
    return [sys.executable, "-m", "mcp_memory", *words]


def asked(port: int, **environment: str) -> subprocess.CompletedProcess[str]:
    """The check, in an environment as the container's would be."""
    chosen = {"MCP_MEMORY_BIND": f"0.0.0.0:{port}", "MCP_MEMORY_SETTINGS": str(SETTINGS), **environment}
    return subprocess.run(check(), env=chosen, capture_output=True, encoding="utf-8", timeout=60, check=False)


def test_the_health_check_tells_a_server_that_is_ready_from_one_that_is_not(tmp_path: Path) -> None:
    with running(real(tmp_path / "memory.db", "http", "--auth-token", "a-token-of-some-length")) as server:
        until = time.monotonic() + PATIENCE
        while (ready := asked(server.port, MCP_MEMORY_TRANSPORT="http")).returncode and time.monotonic() < until:
            assert "not ready" in ready.stderr
        assert (ready.returncode, ready.stdout.strip()) == (0, "ready")
        server.end()
        gone = asked(server.port, MCP_MEMORY_TRANSPORT="http")
        assert gone.returncode == 1 and "nobody answers" in gone.stderr
    with running(real(tmp_path / "memory.db", "tcp")) as server:
        assert asked(server.port, MCP_MEMORY_TRANSPORT="tcp").returncode == 0


def test_the_health_check_is_not_fooled_by_somebody_else_at_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        process = subprocess.Popen(
            check(),
            env={
                "MCP_MEMORY_TRANSPORT": "http",
                "MCP_MEMORY_BIND": f"127.0.0.1:{other.getsockname()[1]}",
                "MCP_MEMORY_SETTINGS": str(SETTINGS),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        connection, _ = other.accept()
        connection.sendall(b"SSH-2.0-something\r\n")
        connection.close()
        assert process.wait(60) == 1


def test_a_container_on_standard_streams_is_as_healthy_as_its_client_sees() -> None:
    assert asked(1, MCP_MEMORY_TRANSPORT="stdio").returncode == 0


# ── with an engine ───────────────────────────────────────────────────────────────────────────────


def engine() -> str:
    """A container engine that answers; nothing where there is none."""
    for name in ("docker", "podman"):
        program = shutil.which(name)
        if program and not subprocess.run([program, "info"], capture_output=True, timeout=60, check=False).returncode:
            return program
    return ""


MOST_MB = 500  # of which an installation is 139 and the model 33 (scripts/footprint.py); the rest is Python's own image
SERVED = ("-e", "MCP_MEMORY_TRANSPORT=http", "-e", "MCP_MEMORY_BIND=0.0.0.0:8080")
ASKS = """
import http.client, json, sys
web = http.client.HTTPConnection("127.0.0.1", 8080, timeout=30)
meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
params = {"name": sys.argv[1], "arguments": json.loads(sys.argv[2]), "_meta": meta}
headers = {"Content-Type": "application/json", "Authorization": "Bearer a-token-of-some-length",
           "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": sys.argv[1]}
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
web.request("POST", "/mcp", body, headers)
print(web.getresponse().read().decode())
"""


def told(program: str, *words: str) -> str:
    done = subprocess.run([program, *words], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=600, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout.strip()


def served(program: str, image: str, volume: str) -> str:
    """A container that serves over HTTP and is healthy, with nothing but its volume to write to."""
    locked = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "-v", f"{volume}:/data")
    token = ("-e", "MCP_MEMORY_AUTH_TOKEN=a-token-of-some-length")
    made = told(program, "run", "-d", *locked, *SERVED, *token, image)
    until = time.monotonic() + PATIENCE
    command = [program, "exec", made, "mcp-memory", "health"]
    while subprocess.run(command, capture_output=True, timeout=60, check=False).returncode:
        assert time.monotonic() < until, told(program, "logs", made)
        time.sleep(0.2)
    return made


def test_where_there_is_an_engine_the_image_is_small_and_keeps_facts_in_its_volume(record_property: Recorder) -> None:
    program = engine()
    if not program:
        record_property(FIGURES, "No container engine here: the image was not built.\n")
        return
    image = told(program, "build", "-q", ".")
    megabytes = int(told(program, "image", "inspect", "--format", "{{.Size}}", image)) / 1e6
    record_property(FIGURES, f"The image takes {megabytes:.0f} MB.\n")
    version = told(program, "run", "--rm", "--read-only", "--network=none", image, "--version")
    assert version == f"mcp-memory {mcp_memory.__version__}"
    assert megabytes < MOST_MB

    volume = f"mcp-memory-test-{uuid4().hex}"
    made: list[str] = []
    try:
        for tool, arguments, expected in (
            ("create_entities", {"entities": [{"name": "Ada", "observations": ["likes tea"]}]}, "Ada"),
            ("open_nodes", {"names": ["Ada"]}, "likes tea"),  # by another container on the same volume
        ):
            made.append(served(program, image, volume))
            assert told(program, "exec", made[-1], "id", "-u") == "10001"
            assert expected in told(program, "exec", made[-1], "python", "-c", ASKS, tool, json.dumps(arguments))
            written = told(program, "exec", made[-1], "stat", "-c", "%u %a", "/data", "/data/memory.db").split()
            assert written[:2] == ["10001", "700"] and written[2] == "10001"
            told(program, "stop", made[-1])
    finally:
        subprocess.run([program, "rm", "-f", *made], capture_output=True, timeout=60, check=False)
        subprocess.run([program, "volume", "rm", "-f", volume], capture_output=True, timeout=60, check=False)
