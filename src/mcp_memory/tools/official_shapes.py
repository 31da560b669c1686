"""What the official server's tools take and answer, as types: decoder, schema and refusals come from them.

The types are the interface of another program, so nothing may be added, renamed or put in another
order here; the words that describe them are ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from mcp_memory.facts import BadInput, Limits, check_name
from mcp_memory.tools.registry import Tool
from mcp_memory.tools.schemas import input_schema

DRAFT = "http://json-schema.org/draft-07/schema#"


class Wire(msgspec.Struct, rename="camel"):
    """The base of what travels: camelCase keys, unknown ones dropped."""


class NewEntity(Wire):
    name: Annotated[str, Meta(description="Unique, case-sensitive")]
    entity_type: Annotated[str, Meta(description="What kind of thing it is: person, project, …")]
    observations: Annotated[list[str], Meta(description="What is known of it, one short fact each")]


class NewRelation(Wire):
    source: Annotated[str, Meta(description="Name of the entity that acts")] = msgspec.field(name="from")
    target: Annotated[str, Meta(description="Name of the entity it acts on")] = msgspec.field(name="to")
    relation_type: Annotated[str, Meta(description="A verb: works_at, knows, …")]


class Additions(Wire):
    entity_name: Annotated[str, Meta(description="Name of an entity that exists")]
    contents: Annotated[list[str], Meta(description="New facts about it")]


class Deletion(Wire):
    entity_name: Annotated[str, Meta(description="Name of the entity to take them from")]
    observations: Annotated[list[str], Meta(description="The exact texts to take away")]


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────


class Created(Wire):
    entities: list[NewEntity]


class Related(Wire):
    relations: list[NewRelation]


class AddedObservations(Wire):
    entity_name: str
    added_observations: list[str]


class Added(Wire):
    results: list[AddedObservations]


class Done(Wire):
    success: bool
    message: str


class Shown(Wire):
    entities: list[NewEntity]
    relations: list[NewRelation]


class OfficialTool(Tool):
    """A tool that lists, decodes and refuses as the official server does."""

    def __init__(self, function: Callable[..., Any], answers: type[Wire], *, destructive: bool = False) -> None:
        title = function.__name__.replace("_", " ").title()
        super().__init__(function, camel=True, destructive=destructive, idempotent=destructive or None, title=title)
        self.answers = answers

    def wire(self) -> dict[str, Any]:
        """This tool's row of `tools/list`."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": {"$schema": DRAFT, **self.schema},
            "annotations": self.annotations,
            "execution": {"taskSupport": "forbidden"},
            "outputSchema": {"$schema": DRAFT, **_closed(input_schema(self.answers))},
        }

    def _second_try(self, arguments: bytes | msgspec.Raw, fault: msgspec.ValidationError) -> Any:
        import json  # not msgspec: it refuses numbers that are too large, and here they are only named

        issues = "\n".join(_issues(self.schema, json.loads(bytes(arguments)), ""))
        raise BadInput(
            f"MCP error -32602: Input validation error: Invalid arguments for tool {self.name}: {issues}"
        ) from fault


def _closed(schema: Any) -> Any:
    """The schema of an answer: no key but the known ones, and no words, which only arguments need."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items() if key != "description"}
    if closed.get("type") == "object":
        closed["additionalProperties"] = False
    return closed


# ── what is wrong with arguments, in the official server's words ─────────────────────────────────────

JSON_TYPES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
INFINITE = {float("inf"): "Infinity", float("-inf"): "-Infinity"}  # what becomes of 1e400
ABSENT: Any = object()


def _type_of(value: Any) -> str:
    if isinstance(value, float) and value in INFINITE:
        return INFINITE[value]
    return JSON_TYPES.get(type(value), "undefined")


def _issues(schema: dict[str, Any], value: Any, place: str) -> Iterator[str]:
    """Every place where a value is not what the schema says, in the order of the schema."""
    expected, received = schema["type"], _type_of(value)
    if expected != received:
        yield f"Invalid input: expected {expected}, received {received}" + (f" at {place}" if place else "")
    elif expected == "array":
        for index, item in enumerate(value):
            yield from _issues(schema["items"], item, f"{place}[{index}]")
    elif expected == "object":
        for key, part in schema["properties"].items():
            yield from _issues(part, value.get(key, ABSENT), f"{place}.{key}" if place else key)


# ── what we refuse and the official server does not ──────────────────────────────────────────────────


def _check_type(text: str, what: str) -> None:
    if text:  # an empty type is odd, and harmless: the official server's files have them
        check_name(text, what)


def check_entities(limits: Limits, entities: list[NewEntity]) -> None:
    limits.check_count("entities", len(entities), limits.entities)
    for entity in entities:
        check_name(entity.name, "name of an entity")
        _check_type(entity.entity_type, "type of an entity")
        limits.check_texts(entity.observations, entity.name)


def check_relations(limits: Limits, relations: list[NewRelation]) -> None:
    limits.check_count("relations", len(relations), limits.relations)
    for relation in relations:
        check_name(relation.source, "from of a relation")
        check_name(relation.target, "to of a relation")
        _check_type(relation.relation_type, "type of a relation")


def check_additions(limits: Limits, observations: list[Additions]) -> None:
    limits.check_count("entities to add to", len(observations), limits.entities)
    for addition in observations:
        limits.check_texts(addition.contents, addition.entity_name)


def check_query(limits: Limits, query: str) -> None:
    limits.check_query(query)
