"""Servers that listen, each in a process of its own, and the rawest clients that can talk to them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from tests.wire.toy import META

PATIENCE = 60.0
SETTINGS = Path(__file__).parent.parent / "peers" / "settings.toml"
# A process on Windows cannot be asked to end, only ended.
SIGNALS = [] if sys.platform == "win32" else [signal.SIGTERM, signal.SIGINT]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


def request(method: str, ident: Any = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode()


def call(ident: Any, tool: str, **arguments: Any) -> bytes:
    return request("tools/call", ident, name=tool, arguments=arguments)


def remember(ident: Any, name: str) -> bytes:
    return call(ident, "remember", name=name)


class Server:
    """A process that listens on a port of its choice, and what it says on stderr, taken in as it comes."""

    is_heard = True

    def __init__(self, *command: str, **environment: str) -> None:
        chosen = () if "--settings" in command else ("--settings", str(SETTINGS))
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("MCP_MEMORY_", "MEMORY_"))}
        self.process = subprocess.Popen(
            [sys.executable, *command, "--bind", "127.0.0.1:0", *chosen],
            stderr=subprocess.PIPE,
            env={**clean, **environment},
        )
        assert self.process.stderr is not None
        said = self.process.stderr.readline().decode()
        found = re.search(r"listening on \w+://127\.0\.0\.1:(\d+)", said)
        assert found, said
        self.port = int(found[1])
        self.secrets: dict[str, str] = {}  # tokens by name, where a test made some
        self._said: list[bytes] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        if self.is_heard:
            self._listener.start()
        self._watchdog = threading.Timer(PATIENCE * 4, self.process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self._said += self.process.stderr

    def resident_mb(self) -> float:
        """Memory in use; 0 where nobody tells."""
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
            return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
        return 0.0

    def end(self, number: int | None = None) -> tuple[int, str]:
        """How it ended when asked to, and what it said meanwhile."""
        if self.process.poll() is None:
            self.process.send_signal(number) if number else self.process.terminate()
        return self.ended()

    def ended(self) -> tuple[int, str]:
        """How it ended, having been asked already."""
        assert self.process.stderr is not None
        code = self.process.wait(PATIENCE)
        self._watchdog.cancel()
        if self.is_heard:
            self._listener.join(PATIENCE)
        else:
            self._listen()
        self.process.stderr.close()
        return code, b"".join(self._said).decode()


class Unheard(Server):
    """One whose stderr is a pipe that is full, and that nobody reads until it has ended."""

    is_heard = False

    def fill_stderr(self) -> None:
        pipe = os.open(f"/proc/{self.process.pid}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(pipe, b".")
        os.close(pipe)


class Toy(Server):
    """The toy server; `names` is what it had kept when it had closed its space."""

    def __init__(self, folder: Path, transport: str, *arguments: str, **environment: str) -> None:
        self.left, self.gate = folder / "left", folder / "gate"
        script = str(Path(__file__).with_name("toy.py"))
        super().__init__(script, str(self.left), "--transport", transport, *arguments, **environment)

    def names(self) -> int:
        count: int = json.loads(self.left.read_text(encoding="utf-8"))
        return count

    def toil(self, ident: Any, name: str = "Toil") -> bytes:
        """A long call that waits at the gate."""
        arguments = {"name": name, "steps": 1, "gate": str(self.gate)}
        return request("tools/call", ident, name="toil", arguments=arguments, _meta={"progressToken": 1})


def real(file: Path, transport: str, *arguments: str) -> Server:
    return Server("-m", "mcp_memory", "-f", str(file), "--transport", transport, *arguments)


S = TypeVar("S", bound=Server)


@contextlib.contextmanager
def running(server: S) -> Iterator[S]:
    try:
        yield server
    finally:
        if server.process.stderr is not None and not server.process.stderr.closed:
            server.end()


# ── clients ──────────────────────────────────────────────────────────────────────────────────────


class Line:
    """A TCP client: lines out, messages in."""

    def __init__(self, server: Server, first: bytes = b"") -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
        self.answers = self.socket.makefile("rb")
        if first:
            self.socket.sendall(first)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, *lines: bytes) -> None:
        self.socket.sendall(b"".join(line + b"\n" for line in lines))

    def receive(self) -> Any:
        line = self.answers.readline()
        assert line, "the server closed the connection"
        return json.loads(line)

    def ask(self, line: bytes) -> Any:
        self.send(line)
        return self.receive()

    def names(self) -> list[str]:
        names: list[str] = self.ask(call("names", "names"))["result"]["structuredContent"]["names"]
        return names

    def rest(self) -> list[Any]:
        """Everything that still comes until the server closes."""
        return [json.loads(line) for line in self.answers]

    def close(self) -> None:
        self.answers.close()
        self.socket.close()


class Answer:
    """An HTTP answer: status, headers, and the messages in its body, whichever way they came."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.response = response
        self.kind = self.headers.get("content-type", "")
        self.is_stream = self.kind.startswith("text/event-stream")
        self.body = b"" if self.is_stream else response.read()

    def event(self) -> Any:
        """The next message of a stream; None when it has ended."""
        while line := self.response.readline():
            if line.startswith(b"data: "):
                return json.loads(line[6:])
        return None

    def messages(self) -> list[Any]:
        return list(iter(self.event, None)) if self.is_stream else [json.loads(self.body)]

    @property
    def message(self) -> Any:
        return json.loads(self.body)


class Web:
    """An HTTP client on one connection that is kept alive."""

    def __init__(self, server: Server, **headers: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.headers |= {name.replace("_", "-"): value for name, value in headers.items()}

    def __enter__(self) -> Web:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def ask(self, method: str, body: bytes | None = None, path: str = "/mcp", /, **headers: str | None) -> Answer:
        """Send a request; a header that is None is left out."""
        merged = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        self.connection.request(method, path, body, {n: v for n, v in merged.items() if v is not None})
        return Answer(self.connection.getresponse())

    def post(self, body: bytes, /, **headers: str | None) -> Answer:
        return self.ask("POST", body, **headers)

    def shake_hands(self, version: str = "2025-11-25") -> str:
        """Begin a session and use it from here on; its id."""
        answer = self.post(request("initialize", "hello", **{**HELLO, "protocolVersion": version}))
        assert answer.status == 200, answer.body
        key = answer.headers["mcp-session-id"]
        agreed = answer.message["result"]["protocolVersion"]
        self.headers |= {"Mcp-Session-Id": key, "MCP-Protocol-Version": agreed}
        assert self.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}').status == 202
        return key

    def modern(self, method: str, ident: Any = 1, /, meta: dict[str, Any] | None = None, **params: Any) -> Answer:
        """A stateless request as a well-behaved client sends it."""
        name = params.get("name") or params.get("uri")
        headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": method, "Mcp_Name": name}
        return self.post(request(method, ident, **params, _meta={**META, **(meta or {})}), **headers)

    def call(self, tool: str, ident: Any = 1, /, **arguments: Any) -> Answer:
        """A tool, called in the session."""
        return self.post(call(ident, tool, **arguments))
