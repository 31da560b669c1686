"""Errors about arguments, in the caller's words: which argument, what it should be, what came."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from mcp_memory.tools.registry import Tool

WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def explain(tool: Tool, arguments: bytes | msgspec.Raw, fault: msgspec.ValidationError) -> str:
    """What is wrong with these arguments, and what this tool takes."""
    text, _, place = str(fault).partition(" - at ")
    place = place.strip("`").removeprefix("$").lstrip(".").removesuffix("[...]")
    missing = re.fullmatch(r"Object missing required field `(\w+)`", text)
    choices = tool.schema["properties"].get(place, {}).get("enum")
    if choices and "enum value" in text:
        said = f"{place} must be one of {', '.join(choices)}"
    elif missing:
        where = f"{place}." if place else ""
        said = f"the argument {where}{missing[1]} is missing"
    else:
        expected = re.fullmatch(r"Expected `(.+?)`, got `(\w+)`", text)
        said = (
            f"{place or 'arguments'} must be {_words(expected[1])}, not {WORDS.get(expected[2], expected[2])}"
            if expected
            else f"{place or 'arguments'}: {text[0].lower()}{text[1:]}"
        )
    known = tool.wire_parameters
    takes = ", ".join(tool.wire_name(name) + ("" if d is msgspec.NODEFAULT else "?") for name, _, d in known)
    return f"Invalid arguments for {tool.name}: {said}. It takes: {takes or 'no arguments'}."


def _words(types: str) -> str:
    return " or ".join(WORDS.get(one.strip(), one.strip()) for one in types.split("|"))
