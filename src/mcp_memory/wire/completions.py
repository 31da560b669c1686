"""Completing what a person types: names of entities, types, relation types, by how they begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_memory.facts import NotNow
from mcp_memory.search.names import NameIndex, beginning
from mcp_memory.wire.jsonrpc import INVALID_PARAMS, Fault
from mcp_memory.wire.prompts import ENTITY, ENTITY_TYPE

if TYPE_CHECKING:
    from mcp_memory.graph import Graph
    from mcp_memory.wire.offer import Offer

MOST_VALUES = 100
LONGEST_VALUE = 1024
RELATION_TYPE = "relationType"
# What the variables of resource templates are completed with.
VARIABLES = {"name": ENTITY, "entityType": ENTITY_TYPE, "relationType": RELATION_TYPE}


def completed(offer: Offer, params: dict[str, Any], at_once: bool = False) -> tuple[list[str], int]:
    """What the value of an argument may become, and how many values there are."""
    ref, argument = params.get("ref"), params.get("argument")
    if not isinstance(ref, dict) or not isinstance(argument, dict):
        raise Fault(INVALID_PARAMS, 'Invalid params: "ref" and "argument" must be objects')
    name, value = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(value, str) or len(value) > LONGEST_VALUE:
        raise Fault(INVALID_PARAMS, 'Invalid params: "argument" must hold a name and a value, both texts')
    kind = _kind(offer, ref, name)
    if not kind:
        return [], 0
    from mcp_memory.tools.registry import Tool

    space = offer.desk.space
    if at_once and kind == ENTITY and not space.has_index(NameIndex):
        raise NotNow  # sorting the names takes a moment, once
    found: tuple[list[str], int] = space.call(Tool(COMPLETING[kind]), (value,), at_once=at_once)
    return found


def _kind(offer: Offer, ref: dict[str, Any], name: str) -> str:
    """What completes this argument of this prompt or template; nothing where nothing does."""
    if ref.get("type") == "ref/prompt":
        prompt = offer.offered_prompts().get(str(ref.get("name")))
        if prompt is None:
            raise Fault(INVALID_PARAMS, f"Unknown prompt: {ref.get('name')}. prompts/list names those there are.")
        return next((each.completes for each in prompt.arguments if each.name == name), "")
    if ref.get("type") == "ref/resource":
        templates = [each["uriTemplate"] for each in offer.resources.templates()]
        if ref.get("uri") not in templates:
            raise Fault(
                INVALID_PARAMS, f"Unknown resource template: {ref.get('uri')}. resources/templates/list names them."
            )
        return VARIABLES.get(name, "") if f"{{{name}}}" in ref["uri"] else ""
    raise Fault(INVALID_PARAMS, 'Invalid params: the type of "ref" must be ref/prompt or ref/resource')


def entities(graph: Graph, value: str) -> tuple[list[str], int]:
    return graph.index(NameIndex).beginning(value, MOST_VALUES)


def entity_types(graph: Graph, value: str) -> tuple[list[str], int]:
    return beginning((each for each, _ in graph.type_counts.most_common()), value, MOST_VALUES)


def relation_types(graph: Graph, value: str) -> tuple[list[str], int]:
    return beginning((each for each, _ in graph.relation_type_counts.most_common()), value, MOST_VALUES)


COMPLETING = {ENTITY: entities, ENTITY_TYPE: entity_types, RELATION_TYPE: relation_types}
