"""How a function becomes a tool: its signature is the contract, its docstring what an agent reads.

The first parameter says what the tool may touch, the rest are its arguments, `-> Plan` makes it a
writer. From that come the JSON schema, the typed decoder and the annotations. Nothing is compiled at
import: a decoder is built at the first call of its tool, schemas when somebody asks for the list."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any

import msgspec

from mcp_memory.changes import Plan
from mcp_memory.facts import SCOPES, BadInput, Limits
from mcp_memory.history.moment import AS_OF, AsOf
from mcp_memory.tools.complaints import explain
from mcp_memory.tools.schemas import input_schema

Check = Callable[[Limits, Any], None]

# How callers spell the moment they ask about, whatever the other arguments of a tool look like.
MOMENT_NAMES = (AS_OF, "asOf")
NAMES_A_MOMENT = re.compile("|".join(f'"{name}"' for name in MOMENT_NAMES).encode()).search
CANNOT_LOOK_BACK = (
    "{name} knows the memory only as it is now. Leave as_of out, or ask search_nodes, open_nodes or read_graph, which "
    "look back."
)
TELLS_ALL = (
    "{name} tells about all times, so as_of says nothing here. until shows what was done up to a time, before what was "
    "done before a call."
)


def in_camels(name: str) -> str:
    """`max_tokens` as `maxTokens`."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


class Within:
    """Marks an argument with the limit it must respect: `Annotated[list[Name], Within(check)]`."""

    __slots__ = ("check",)

    def __init__(self, check: Check) -> None:
        self.check = check


class Tool:
    """One function that clients can call."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        camel: bool = False,
        destructive: bool = False,
        idempotent: bool | None = None,
        heavy: bool = False,
        title: str | None = None,
        scope: str | None = None,
        past: bool = False,
        lengthy: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`scope`: what its caller must be allowed, if that is more than what reading or writing needs.
        `past`: it can be asked about the graph as it was, by an argument more. `headers`: arguments that a stateless
        HTTP request says again in a header, for proxies, and the header's name."""
        self.function = function
        self.name: str = function.__name__
        self.family = function.__module__.rpartition(".")[2]
        self.title = title or self.name.replace("_", " ").capitalize()
        self.description = " ".join((function.__doc__ or "").split())
        self.camel = camel
        returns = function.__annotations__.get("return")
        touches = next(iter(function.__annotations__.values()))
        # Annotations are strings here (PEP 563 in every family file), so no type needs to be resolved yet.
        self.is_errand = touches == "Errand"
        self.on_view = touches == "View"
        self.is_search = touches == "Seeker"
        self.is_care = touches == "Curator"
        self.is_heavy = heavy
        self.asks_past = touches == "Past"
        self.has_past = past
        self.writes = returns == "Plan" or self.is_errand
        self.scope = scope or ("write" if self.writes else "read")
        self.level = SCOPES.index(self.scope) + 1
        self.headers = headers or {}
        self.destructive = destructive
        # A reader that may take long, and asks the pace of its thread.
        self.is_lengthy = lengthy or (heavy and self.is_care and not self.writes)
        self.idempotent = not self.writes if idempotent is None else idempotent

    @property
    def annotations(self) -> dict[str, bool]:
        return {
            "readOnlyHint": not self.writes,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": False,
        }

    @cached_property
    def parameters(self) -> list[tuple[str, Any, Any]]:
        """Name, type and default (NODEFAULT: required) of each argument, as the wire knows it."""
        hints = typing.get_type_hints(self.function, include_extras=True)
        code = self.function.__code__
        names = code.co_varnames[1 : code.co_argcount]
        defaults = (self.function.__defaults__ or ())[::-1]
        found = [
            (name, hints[name], defaults[i] if i < len(defaults) else msgspec.NODEFAULT)
            for i, name in enumerate(reversed(names))
        ]
        return found[::-1]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the function calls its arguments."""
        return tuple(name for name, _, _ in self.parameters)

    @cached_property
    def wire_parameters(self) -> list[tuple[str, Any, Any]]:
        """The parameters, and the one that every tool about the past has."""
        return [*self.parameters, (AS_OF, str, "")] if self.has_past else self.parameters

    @cached_property
    def arguments(self) -> type[msgspec.Struct]:
        """The typed form of this tool's arguments."""
        fields = []
        for name, hint, default in self.wire_parameters:
            if default == [] and isinstance(default, list):
                default = msgspec.field(default_factory=list)
            fields.append((name, hint) if default is msgspec.NODEFAULT else (name, hint, default))
        return msgspec.defstruct(self.name, fields, rename=self.wire_name, kw_only=True)

    def wire_name(self, parameter: str) -> str:
        name = parameter.rstrip("_")  # `from_` stands for the wire's `from`
        return in_camels(name) if self.camel else name

    @cached_property
    def schema(self) -> dict[str, Any]:
        schema = input_schema(self.arguments)
        for argument, header in self.headers.items():
            schema["properties"][argument]["x-mcp-header"] = header
        return schema

    @cached_property
    def _decoder(self) -> Callable[[bytes | msgspec.Raw], Any]:
        return msgspec.json.Decoder(self.arguments).decode

    @cached_property
    def _values(self) -> Callable[[Any], tuple[Any, ...]]:
        if not self.names:
            return lambda _: ()
        if len(self.names) == 1:
            only = attrgetter(self.names[0])
            return lambda arguments: (only(arguments),)
        return attrgetter(*self.names)

    @cached_property
    def _checks(self) -> list[tuple[int, Check]]:
        return [
            (index, mark.check)
            for index, (_, hint, _) in enumerate(self.parameters)
            for mark in getattr(hint, "__metadata__", ())
            if isinstance(mark, Within)
        ]

    def decode(self, arguments: bytes | msgspec.Raw, limits: Limits) -> tuple[Any, ...]:
        """The arguments as values for the function, every limit checked; BadInput says what is wrong."""
        if self._misspelt is not None and self._misspelt(arguments):
            arguments = self._as_listed(arguments)
        try:
            decoded = self._decoder(arguments)
        except msgspec.ValidationError as fault:
            decoded = self._second_try(arguments, fault)
        values = self._values(decoded)
        for index, check in self._checks:
            check(limits, values[index])
        moment = decoded.as_of if self.has_past else ""
        if not moment and not self.writes and NAMES_A_MOMENT(arguments):
            moment = self._moment(arguments)
        return AsOf.of(values, moment) if moment else values

    @cached_property
    def _spellings(self) -> dict[bytes, tuple[str, str]]:
        """Arguments of several words in the spelling that is not listed, max_tokens for maxTokens and the other way
        round, as they stand in JSON: a filter that is passed over does not filter. The official server knows none."""
        listed = {} if self.family == "official" else {self.wire_name(name): name for name, _, _ in self.parameters}
        others = ((name.rstrip("_") if self.camel else in_camels(name), wire) for wire, name in listed.items())
        return {f'"{other}"'.encode(): (other, wire) for other, wire in others if other != wire and other not in listed}

    @cached_property
    def _misspelt(self) -> Callable[[bytes | msgspec.Raw], Any] | None:
        """Finds one of those spellings in arguments, in one pass."""
        return re.compile(b"|".join(map(re.escape, self._spellings))).search if self._spellings else None

    def _as_listed(self, arguments: bytes | msgspec.Raw) -> bytes | msgspec.Raw:
        """The same arguments by the names in the schema."""
        given = msgspec.json.decode(arguments)
        if not isinstance(given, dict):
            return arguments
        for other, wire in self._spellings.values():
            if other in given:
                given.setdefault(wire, given.pop(other))
        return msgspec.json.encode(given)

    def _moment(self, arguments: bytes | msgspec.Raw) -> str:
        """The moment that is meant, in the other spelling. Who asks about the past is never shown the present."""
        given = msgspec.json.decode(arguments)
        meant = next((given[key] for key in MOMENT_NAMES if given.get(key)), "")
        if not meant or self.family == "official":
            return ""
        if self.asks_past:
            raise BadInput(TELLS_ALL.format(name=self.name))
        if not self.has_past:
            raise BadInput(CANNOT_LOOK_BACK.format(name=self.name))
        if not isinstance(meant, str | int):
            raise BadInput(f"Invalid arguments for {self.name}: {self.wire_name(AS_OF)} must be text.")
        return str(meant)

    def _second_try(self, arguments: bytes | msgspec.Raw, fault: msgspec.ValidationError) -> Any:
        """Accept the spellings of the predecessors that the typed form does not know."""
        from mcp_memory.tools.dialects import respelled, without_nulls

        optional = {
            self.wire_name(name) for name, _, default in self.wire_parameters if default is not msgspec.NODEFAULT
        }
        try:
            given = respelled(msgspec.json.decode(arguments))
            if self.has_past and type(given) is dict:  # history numbers calls, so models say numbers
                given |= {key: str(given[key]) for key in MOMENT_NAMES if type(given.get(key)) is int}
            return msgspec.convert(without_nulls(given, optional), self.arguments)
        except msgspec.ValidationError as second:
            raise BadInput(explain(self, arguments, second)) from fault


REGISTRY: dict[str, Tool] = {}


@typing.overload
def tool(function: Callable[..., Any], /) -> Callable[..., Any]: ...
@typing.overload
def tool(
    *,
    camel: bool = False,
    destructive: bool = False,
    idempotent: bool | None = None,
    heavy: bool = False,
    title: str | None = None,
    scope: str | None = None,
    past: bool = False,
    lengthy: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Register a function as a tool. `camel`: its arguments are camelCase on the wire. `heavy`: it may take long,
    so only a few of its like are let in at a time. `lengthy`: it may take long, and asks the pace of its thread."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        made = Tool(function, **options)
        if made.name in REGISTRY:
            raise ValueError(f"two tools are named {made.name}")
        REGISTRY[made.name] = made
        return function

    return register if function is None else register(function)


def family(tools: Iterable[Tool], name: str) -> list[Tool]:
    return [tool for tool in tools if tool.family == name]


__all__ = ["REGISTRY", "Plan", "Tool", "Within", "family", "tool"]
