"""JSON Schemas that every client understands: one plain object, no references, nothing superfluous.

Clients have dropped whole tool lists over one `$ref`; and each byte here is paid in every conversation."""

from __future__ import annotations

from typing import Any

import msgspec

REF = "#/$defs/"


def input_schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of a tool's arguments, inlined and trimmed."""
    (schema,), parts = msgspec.json.schema_components([arguments], ref_template=REF + "{name}")
    inlined: dict[str, Any] = _inlined(schema, parts)
    inlined.setdefault("properties", {})
    return inlined


def _inlined(node: Any, parts: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(item, parts) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(parts[node["$ref"].removeprefix(REF)], parts)
    if "anyOf" in node and {"type": "null"} in node["anyOf"]:
        # "May be absent" is told by `required`; that null is accepted as well need not be advertised.
        rest = [option for option in node["anyOf"] if option != {"type": "null"}]
        node = {key: value for key, value in node.items() if key != "anyOf"}
        node.update(rest[0] if len(rest) == 1 else {"anyOf": rest})
        return _inlined(node, parts)
    return {key: _inlined(value, parts) for key, value in node.items() if not _superfluous(node, key, value)}


def _superfluous(node: dict[str, Any], key: str, value: Any) -> bool:
    if key in {"title", "description"} and isinstance(value, str):
        return "properties" in node  # the name and docstring of a struct; properties of that name are no text
    if key in {"minLength", "maxLength"}:
        return True  # an error says it when it matters
    return bool(key == "required" and value == []) or (key == "default" and value in (None, [], "", False))
