"""The official server and ours, side by side: both are told the same, and what they say is compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.peers import LATEST, Message, Peer, official_server, our_server

Step = Message | bytes
# A line of bytes with this in it is a request that both servers answer.
AWAITED = b'"id":"raw"'


def call(tool: str, /, **arguments: Any) -> Message:
    """The request that calls a tool."""
    return {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def request(method: str, params: Any = None) -> Message:
    return {"method": method} if params is None else {"method": method, "params": params}


def handshake(version: str = LATEST) -> list[Step]:
    client = {"name": "pair", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return [request("initialize", params), request("notifications/initialized")]


class Everywhere(NamedTuple):
    """A difference that we want wherever it shows: what is left of a message without it."""

    name: str
    reason: str
    without: Callable[[Any], Any]
    shown_by: Step


def _without_server_info(message: Any) -> Any:
    if "serverInfo" not in message.get("result", ()):
        return message
    result = {key: value for key, value in message["result"].items() if key != "serverInfo"}
    return {**message, "result": result}


def _without_descriptions(message: Any) -> Any:
    if not {"tools", "resources"} & set(message.get("result", ())):
        return message
    return _pruned(message)


def _pruned(node: Any) -> Any:
    if isinstance(node, list):
        return [_pruned(item) for item in node]
    if not isinstance(node, dict):
        return node
    # A description is text; a property of that name would be a schema.
    return {key: _pruned(value) for key, value in node.items() if not (key == "description" and isinstance(value, str))}


EVERYWHERE = (
    Everywhere(
        "serverInfo",
        "we say who we are",
        _without_server_info,
        handshake()[0],
    ),
    Everywhere(
        "descriptions of tools and arguments",
        "their sentences are not ours to copy, and fewer words cost a client less",
        _without_descriptions,
        request("tools/list"),
    ),
    Everywhere(
        "description of the resource",
        "their sentences are not ours to copy",
        _without_descriptions,
        request("resources/list"),
    ),
)


def alike(messages: Iterable[Message]) -> list[Message]:
    """These messages without what differs everywhere."""
    plain = list(messages)
    for difference in EVERYWHERE:
        plain = [difference.without(message) for message in plain]
    return plain


class Said(NamedTuple):
    """What the two said to one step."""

    theirs: list[Message]
    ours: list[Message]


class Pair:
    """Both servers, each on a file of its own, with the same things in it."""

    def __init__(self, folder: Path, content: bytes | None = None) -> None:
        self.their_file = folder / "theirs" / "memory.jsonl"
        self.our_file = folder / "ours" / "memory.jsonl"
        for file in (self.their_file, self.our_file):
            file.parent.mkdir(parents=True)
            if content is not None:
                file.write_bytes(content)
        self.theirs = official_server(self.their_file)
        self.ours = our_server("--profile", "official", "--memory-file", str(self.our_file))
        self._last_id = 0

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        self.theirs.close()
        self.ours.close()

    def tell(self, step: Step) -> Said:
        """Tell both; everything each said until its answer, or until it was clear that none would come."""
        return Said(*self._told((self.theirs, self.ours), step))

    def same(self, steps: Iterable[Step]) -> None:
        """Tell both each of these; they must say the same, and their files must be the same after it."""
        for step in steps:
            said = self.tell(step)
            assert alike(said.ours) == alike(said.theirs), f"to {step!r}"
            assert self.our_content() == self.their_content(), f"after {step!r}"

    def together(self, steps: Iterable[Message]) -> Said:
        """Send all of these before reading any answer; what each said, in order of the requests."""
        requests = [{"jsonrpc": "2.0", "id": self._next_id(), **step} for step in steps]
        told = []
        for peer in (self.theirs, self.ours):
            peer.send(*requests)
            told.append(sorted((peer.receive() for _ in requests), key=lambda message: int(message["id"])))
        return Said(*told)

    def their_content(self) -> bytes:
        return _content(self.their_file)

    def our_content(self) -> bytes:
        return _content(self.our_file)

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _told(self, peers: tuple[Peer, ...], step: Step) -> list[list[Message]]:
        """What each said. Not every line is answered for sure: then a ping after it ends the wait."""
        last: int | str = self._next_id()
        if isinstance(step, bytes):
            sure = AWAITED in step
            last = "raw" if sure else last
            lines: list[Step] = [step]
        else:
            sure = not step["method"].startswith("notifications/")
            lines = [{"jsonrpc": "2.0", **step, **({"id": last} if sure else {})}]
        if not sure:
            lines.append({"jsonrpc": "2.0", "id": last, "method": "ping"})
        return [_until(peer, lines, last, sure) for peer in peers]


def _until(peer: Peer, lines: list[Step], last: int | str, included: bool) -> list[Message]:
    peer.send(*lines)
    said = [peer.receive()]
    while said[-1].get("id") != last:
        said.append(peer.receive())
    return said if included else said[:-1]


def _content(file: Path) -> bytes:
    """What stands in a file. None at all is as good as an empty one: both servers begin with nothing."""
    return file.read_bytes() if file.exists() else b""


def text(said: list[Message]) -> str:
    """What one server said, as one line of JSON in which texts can be looked for."""
    return json.dumps(said, ensure_ascii=False)
