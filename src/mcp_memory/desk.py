"""Where calls arrive: finds the tool, decodes its arguments, asks the space, encodes the answer.

Bytes in, bytes out, and no idea of a wire. Whatever goes wrong becomes an answer a caller can act on;
a stack trace is for the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import Any

import msgspec

from mcp_memory.errand import Errand
from mcp_memory.facts import BadInput, Interruption, Limits, MemoryFault, NotNow
from mcp_memory.space import Space
from mcp_memory.tools.registry import Tool

log = logging.getLogger("mcp_memory")
encode = msgspec.json.encode
Watch = Callable[[Tool, str, float, bool], None]
LARGE = 256 * 1024  # bytes of an answer: 0.1 ms


UNREADABLE = (
    "The arguments are not well-formed JSON: {fault}. A lone half of a surrogate pair is not text, and what is nested "
    "without end is not read."
)


class Answer(msgspec.Struct):
    """What a tool said: the object, and the text where it is not simply the object's JSON."""

    body: list[bytes] | None = None  # the object's JSON, in pieces: of 20 MB, each copy less is 2 ms
    text: str | None = None
    escaped: list[bytes] | None = None  # the text as it stands in a JSON string, where that is at hand
    blocks: bytes | None = None  # content that is no text, as JSON
    is_error: bool = False
    changed: bool = False  # did the call write (and succeed)?

    @property
    def structured(self) -> bytes | None:
        """The object's JSON in one piece."""
        return None if self.body is None else b"".join(self.body)


class Said(msgspec.Struct):
    """A tool's answer whose text is not the JSON of its object."""

    text: str
    structured: Any


class Blocks(msgspec.Struct):
    """A tool's answer as content blocks of the protocol: images, sounds, resources."""

    blocks: list[dict[str, Any]]
    is_error: bool = False


class Pieces(msgspec.Struct):
    """A very large answer as the tool keeps it ready: its JSON, and its text as it stands inside a JSON string."""

    plain: list[bytes]
    escaped: list[bytes]

    @property
    def size(self) -> int:
        return sum(map(len, self.plain)) + sum(map(len, self.escaped))


class Desk:
    """One space and the tools a client is offered on it."""

    def __init__(self, space: Space, tools: dict[str, Tool], limits: Limits, *, plain_errors: bool = False) -> None:
        """`plain_errors`: a failure is told as bare text, as the official server does, not as an object."""
        self.space = space
        self.tools = tools
        self.limits = limits
        self.refusal = plain_refusal if plain_errors else refusal
        self.watch: Watch | None = None  # told of every call: tool, origin, seconds, did it fail

    def call(
        self,
        tool: Tool,
        arguments: bytes | msgspec.Raw,
        origin: str = "",
        errand: Errand | None = None,
        at_once: bool = False,
        most_lost: float = inf,
    ) -> Answer:
        """Do it. Never raises what a caller could have caused; an Interruption means that it was not done yet.

        `at_once`: do it without waiting, or raise NotNow. `most_lost`: see `Space.call`."""
        if self.watch is None:
            return self._call(tool, arguments, origin, errand, at_once, most_lost)
        started = perf_counter()
        answer = self._call(tool, arguments, origin, errand, at_once, most_lost)
        self.watch(tool, origin, perf_counter() - started, answer.is_error)
        return answer

    def _call(
        self,
        tool: Tool,
        arguments: bytes | msgspec.Raw,
        origin: str,
        errand: Errand | None,
        at_once: bool,
        most_lost: float,
    ) -> Answer:
        try:
            if tool.name not in NAMING:
                _refuse_nul(arguments)
            values = tool.decode(arguments, self.limits)
            said = self.space.call(tool, values, origin, errand, at_once, most_lost)
            if at_once and isinstance(said, Pieces) and said.size > LARGE:
                raise NotNow  # to write it down takes longer than others should wait
        except Interruption:
            raise
        except MemoryFault as fault:
            return self.refusal(fault)
        except (msgspec.DecodeError, RecursionError) as fault:
            return self.refusal(BadInput(UNREADABLE.format(fault=fault)))
        except Exception:
            log.exception("%s failed", tool.name)
            return self.refusal(
                MemoryFault(f"{tool.name} failed inside the server; nothing was changed. The log on stderr says why.")
            )
        self.space.noting.saw(tool, values, origin)
        return _answer(said, tool.writes)


def _answer(said: Any, changed: bool) -> Answer:
    """What a tool returned, encoded as far as it is not."""
    if isinstance(said, bytes):
        return Answer([said], changed=changed)
    if isinstance(said, Pieces):
        return Answer(said.plain, escaped=said.escaped)
    if isinstance(said, Said):
        return Answer([encode(said.structured)], said.text, changed=changed)
    if isinstance(said, Blocks):
        return Answer(blocks=encode(said.blocks), is_error=said.is_error)
    return Answer([encode(said)], changed=changed)


def refusal(fault: MemoryFault) -> Answer:
    """A failure as the contract words it: `{"error": …}` in the text, no structured content."""
    from mcp_memory.quoting import visible

    told: dict[str, Any] = {"error": visible(str(fault))}
    if fault.code is not None:
        told |= {"code": fault.code, "retryable": fault.retryable}
    if fault.message:
        told["message"] = fault.message
    return Answer(text=encode(told).decode(), is_error=True)


def plain_refusal(fault: MemoryFault) -> Answer:
    """A failure in the official profile: its text as it is."""
    return Answer(text=str(fault), is_error=True)


# Tools whose texts name what is there, and put nothing there: a file of another program may hold a NUL, and what is
# shown with one must be found by it, and can be deleted.
NAMING = {
    "get_entity",
    "batch_get_entities",
    "open_nodes",
    "describe_entity",
    "get_neighbors",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "merge_entities",
}


def _refuse_nul(arguments: bytes | msgspec.Raw) -> None:
    # A NUL can only come as this escape, so one search spares a look at every string of every call.
    if b"\\u0000" in bytes(arguments) and _holds_nul(msgspec.json.decode(arguments)):
        raise BadInput("The arguments hold a NUL character, which no text may contain. Leave it out.")


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_holds_nul(item) for pair in value.items() for item in pair)
    return isinstance(value, list) and any(map(_holds_nul, value))


Progress = Callable[[int, int | None, str], None]
