"""Real servers, started as a client starts them, and an exact record of what they acknowledged.

The client, the writes and the record are the ones of `mcp-memory torture`; here they are strict: whatever is
not as it should be fails a test."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import apsw

from mcp_memory.assembly import open_space
from mcp_memory.space import Space
from mcp_memory.stores.filelock import FileLock
from mcp_memory.torture import client, promises
from mcp_memory.torture.client import Gone, Refused
from mcp_memory.torture.deeds import Census, Deed, deeds, entity, observation, relation

__all__ = [
    "COMMAND",
    "Census",
    "Deed",
    "Gone",
    "Promises",
    "Refused",
    "Server",
    "deeds",
    "entity",
    "findings",
    "locked",
    "names_in",
    "observation",
    "relation",
]

PADDING = "x" * 8000
COMMAND = (sys.executable, "-m", "mcp_memory")


class Server(client.Server):
    """One process of ours on this file."""

    hello: ClassVar = {**client.HELLO, "clientInfo": {"name": "crash", "version": "1"}}

    def __init__(self, path: Path, *options: str, command: Sequence[str] = COMMAND) -> None:
        # A client's home may hold settings; a test's does not.
        environment = {**os.environ, "HOME": str(path.parent), "PYTHONPATH": os.pathsep.join(sys.path)}
        super().__init__([*command, "--memory-file", str(path), *options], environment)

    def __enter__(self) -> Server:
        return self

    def send_long(self, tool: str, arguments: dict[str, Any]) -> int:
        """The same in a long line: of a few of them the pipe is full, and a server reads only a few at once."""
        return self._request("tools/call", {"name": tool, "arguments": arguments, "padding": PADDING})

    def ping(self) -> float:
        """Ask whether it is there; how many seconds it took to say so."""
        number = self._request("ping", {})
        self.said(number)
        return self.answered_at[number] - self.asked_at[number]

    def withdraw(self, number: int) -> None:
        """This call is not wanted any more."""
        self._write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})

    def content(self, result: dict[str, Any]) -> Any:
        return result["structuredContent"]

    def refusal(self, result: dict[str, Any]) -> dict[str, Any]:
        assert "structuredContent" not in result
        told = super().refusal(result)
        assert told.keys() >= {"error"}
        return told


class Promises(promises.Promises):
    """What was asked of which server, and which of it was acknowledged."""

    def ask_at_length(self, server: Server, deed: Deed) -> None:
        self._note(server, server.send_long(deed.tool, deed.arguments), deed)

    def are_kept_in(self, path: Path) -> None:
        """A fresh open finds everything that was promised, nothing twice, and nothing wrong."""
        space = open_space(path)
        try:
            verdict = self.verdict(Census.of_graph(space.graph()))
            assert ([one.deed.what for one in verdict.lost], [one.what for one in verdict.twice]) == ([], [])
            assert findings(space) == []
        finally:
            space.close()


@contextmanager
def locked(path: Path, how: str = "exclusive") -> Iterator[None]:
    """Another program keeps every writer out of this file, in the way of its format."""
    if path.suffix == ".db":
        other = apsw.Connection(str(path))
        try:
            other.set_busy_timeout(5000)
            other.execute(f"begin {how}")
            yield
        finally:
            other.close()
        return
    lock = FileLock(f"{path}.lock")
    try:
        assert lock.acquire(5)
        yield
    finally:
        lock.close()


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
