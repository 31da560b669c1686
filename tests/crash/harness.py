"""Real servers, started as a client starts them, and an exact record of what they acknowledged.

The law: an answer that reached us, even from a process that is dead by now, is a promise. What was
promised must be found by a fresh open exactly once; what was not may be there, but not twice."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mcp_memory.assembly import open_space
from mcp_memory.graph import Graph
from mcp_memory.space import Space

PADDING = "x" * 8000
PATIENCE = 60.0  # for an answer that must come; only a test that fails ever waits so long
COMMAND = (sys.executable, "-m", "mcp_memory")
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "crash", "version": "1"}}


class Refused(Exception):
    """A tool answered with an error: the object it told."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told["error"])
        self.code = told.get("code")
        self.retryable = told.get("retryable")


class Gone(Exception):
    """The server ended before it answered this."""


class Server:
    """One server process. Calls are sent without waiting; a thread collects the answers as they come."""

    def __init__(self, path: Path, *options: str, command: Sequence[str] = COMMAND) -> None:
        self._told = tempfile.TemporaryFile()  # noqa: SIM115  (closed in _over)
        self._last_words = ""
        self.process = subprocess.Popen(
            [*command, "--memory-file", str(path), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._told,
            # A client's home may hold settings; a test's does not.
            env={**os.environ, "HOME": str(path.parent), "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._answers: dict[int, dict[str, Any]] = {}
        self._next = 0
        self._news = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._request("initialize", HELLO)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = msgspec.json.decode(line)
            if "id" in answer:
                with self._news:
                    self._answers[answer["id"]] = answer
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _request(self, method: str, params: Any) -> int:
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        assert self.process.stdin is not None
        with suppress(OSError):  # it is dead: then this will not be answered, which is what a client sees
            self.process.stdin.write(msgspec.json.encode(message) + b"\n")
            self.process.stdin.flush()
        return self._next

    # ── calls ────────────────────────────────────────────────────────────────────────────────────

    def send(self, tool: str, /, **arguments: Any) -> int:
        """Ask, and go on at once; the number is for `outcome` and `was_acknowledged`."""
        return self._request("tools/call", {"name": tool, "arguments": arguments})

    def send_long(self, tool: str, arguments: dict[str, Any]) -> int:
        """The same in a long line: of a few of them the pipe is full, and a server reads only a few at once."""
        return self._request("tools/call", {"name": tool, "arguments": arguments, "padding": PADDING})

    def outcome(self, ident: int) -> Any:
        """What the tool answered; Refused when it could not, Gone when the server ended first."""
        with self._news:
            if not self._news.wait_for(lambda: ident in self._answers or self._ended, PATIENCE):
                raise TimeoutError(f"no answer within {PATIENCE:g} s; stderr: {self.stderr()}")
            answer = self._answers.get(ident)
        if answer is None:
            raise Gone(self.stderr())
        result = answer["result"]
        if result.get("isError"):
            assert "structuredContent" not in result
            raise Refused(msgspec.json.decode(result["content"][0]["text"]))
        return result["structuredContent"]

    def call(self, tool: str, /, **arguments: Any) -> Any:
        return self.outcome(self.send(tool, **arguments))

    def was_acknowledged(self, ident: int) -> bool:
        """Did it say that this was done? Waits for the answer, or for the end of the process."""
        try:
            self.outcome(ident)
        except (Refused, Gone):
            return False
        return True

    def stderr(self) -> str:
        """What it has said to the person who started it."""
        if not self._told.closed:
            self._told.seek(0)
            self._last_words = self._told.read().decode(errors="replace")
        return self._last_words

    # ── endings ──────────────────────────────────────────────────────────────────────────────────

    def kill(self) -> None:
        """As the system does it, without a word. What it had said before still counts."""
        self.process.kill()
        self._over()

    def signal(self, number: int) -> tuple[int, float]:
        """Ask it to end: its exit code, and how many seconds it took."""
        return self._ending(lambda: self.process.send_signal(number))

    def close(self) -> tuple[int, float]:
        """The client hangs up: the exit code, and how many seconds it took."""
        assert self.process.stdin is not None
        return self._ending(self.process.stdin.close)

    def _ending(self, end: Callable[[], None]) -> tuple[int, float]:
        began = time.monotonic()
        end()
        code = self.process.wait(PATIENCE)
        seconds = time.monotonic() - began
        self._over()
        return code, seconds

    def _over(self) -> None:
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self.stderr()
        assert self.process.stdin and self.process.stdout
        self._told.close()
        self.process.stdout.close()
        with suppress(OSError):  # something may be left that a dead process did not read
            self.process.stdin.close()


# ── what was asked, and whether it is there ──────────────────────────────────────────────────────


class Deed(NamedTuple):
    """One write of one fact: the call, and how often a graph holds the fact."""

    tool: str
    arguments: dict[str, Any]
    count: Callable[[Census], int]


class Census:
    """Every fact of a graph, counted by what it says."""

    def __init__(self, graph: Graph) -> None:
        self.names = Counter(entity.name for entity in graph.entities())
        self.texts = Counter((entity.name, text) for entity in graph.entities() for text in entity.texts())
        self.links = Counter(
            (graph.name_of(one.source), one.relation_type, graph.name_of(one.target))
            for one in graph.active_relations()
        )


def entity(name: str, *observations: str) -> Deed:
    """Create an entity. It is there once, with each of its observations."""

    def count(census: Census) -> int:
        counts = {census.names[name], *(census.texts[name, text] for text in observations)}
        assert len(counts) == 1, f"{name} is there in part"
        return counts.pop()

    arguments = {"entities": [{"name": name, "entityType": "Thing", "observations": list(observations)}]}
    return Deed("create_entities", arguments, count)


def observation(name: str, text: str) -> Deed:
    arguments = {"observations": [{"entityName": name, "contents": [text]}]}
    return Deed("add_observations", arguments, lambda census: census.texts[name, text])


def relation(source: str, relation_type: str, target: str) -> Deed:
    arguments = {"relations": [{"from": source, "to": target, "relationType": relation_type}]}
    return Deed("create_relations", arguments, lambda census: census.links[source, relation_type, target])


class Promises:
    """What was asked of which server, and which of it was acknowledged."""

    def __init__(self) -> None:
        self._asked: list[tuple[Server, int, Deed]] = []
        self.acknowledged: list[Deed] = []
        self.unanswered: list[Deed] = []

    def ask(self, server: Server, deed: Deed) -> None:
        self._asked.append((server, server.send(deed.tool, **deed.arguments), deed))

    def ask_at_length(self, server: Server, deed: Deed) -> None:
        self._asked.append((server, server.send_long(deed.tool, deed.arguments), deed))

    def wait_for(self, server: Server, count: int) -> None:
        """Until this server has answered so many of the calls that were not collected yet."""
        idents = [ident for asked, ident, _ in self._asked if asked is server]
        server.was_acknowledged(idents[count - 1])

    def collect(self) -> None:
        """Wait for every answer that can still come."""
        for server, ident, deed in self._asked:
            (self.acknowledged if server.was_acknowledged(ident) else self.unanswered).append(deed)
        self._asked.clear()

    def are_kept_in(self, path: Path) -> None:
        """A fresh open finds everything that was promised, nothing twice, and nothing wrong."""
        assert not self._asked, "collect first"
        space = open_space(path)
        try:
            census = Census(space.graph())
            assert [deed for deed in self.acknowledged if deed.count(census) != 1] == []
            assert [deed for deed in self.unanswered if deed.count(census) > 1] == []
            assert findings(space) == []
        finally:
            space.close()


def findings(space: Space) -> list[str]:
    return [finding.text for finding in space.check()]


def names_in(path: Path) -> list[str]:
    """The entities that a fresh open finds, after a check-up without findings."""
    space = open_space(path)
    try:
        assert findings(space) == []
        return [one.name for one in space.graph().entities()]
    finally:
        space.close()
