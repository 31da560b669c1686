"""What counts as use of a search result: told from the calls that clients make after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Given = dict[str, Any]  # the arguments of a call, by name


def _named(given: Given) -> list[str]:
    return [given["name"]]


def _several(given: Given) -> list[str]:
    return list(given["names"])


def _extended(given: Given) -> list[str]:
    name = given.get("name")
    return [addition.entity_name for addition in given["observations"]] if name is None else [name]


def _created(given: Given) -> list[str]:
    return [entity.name for entity in given["entities"]]


def _reflected_on(given: Given) -> list[str]:
    target = given["target_id"]
    return [target] if given["target_type"] == "entity" and isinstance(target, str) else []


# What counts as use, and of which entities: opening them, adding to them, relating them, looking around them.
USES: dict[str, Callable[[Given], list[str]]] = {
    "open_nodes": _several,
    "get_entity": _named,
    "batch_get_entities": _several,
    "describe_entity": _named,
    "get_neighbors": _named,
    "add_observations": _extended,
    "create_entities": _created,
    "upsert_entities": _created,
    "add_reflection": _reflected_on,
    "create_relations": lambda given: [end for link in given["relations"] for end in (link.source, link.target)],
}

# Of these the entity itself tells when: it was changed.
DATED = {"add_observations", "create_entities", "upsert_entities"}
