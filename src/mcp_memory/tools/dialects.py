"""Argument and answer shapes of the predecessors, in one place.

`E` and `R` are what all three servers call an entity and a relation; what else an answer may carry
is decided by its tool."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from mcp_memory.facts import Entity, Observation, Relation
from mcp_memory.views import View

SPELLINGS = {"from_entity": "from", "to_entity": "to", "relation_type": "relationType"}


def respelled(arguments: Any) -> Any:
    """The same arguments with `from_entity`/`to_entity` called `from`/`to`, wherever they stand."""
    if isinstance(arguments, list):
        return [respelled(item) for item in arguments]
    if not isinstance(arguments, dict):
        return arguments
    renamed = {key: respelled(value) for key, value in arguments.items()}
    for spelling, name in SPELLINGS.items():
        if spelling in renamed and name not in renamed:
            renamed[name] = renamed[spelling]
    return renamed


def without_nulls(arguments: Any, optional: Container[str]) -> Any:
    """The same arguments without those that are null and might have been left out: the Rust server takes both alike."""
    if not isinstance(arguments, dict):
        return arguments
    return {key: value for key, value in arguments.items() if value is not None or key not in optional}


def plain_entity(entity: Entity) -> dict[str, Any]:
    """An entity as all three predecessors write it."""
    return {"name": entity.name, "entityType": entity.entity_type, "observations": entity.texts()}


def plain_relation(graph: View, relation: Relation) -> dict[str, Any]:
    """A relation as the official server writes it: names and type, nothing else."""
    return {
        "from": graph.name_of(relation.source),
        "to": graph.name_of(relation.target),
        "relationType": relation.relation_type,
    }


def shown_relation(graph: View, relation: Relation) -> dict[str, Any]:
    """A relation with the id that ends or revives it, and what else is known of it."""
    return _shown(relation, graph.name_of(relation.source), graph.name_of(relation.target))


def shown_relations(graph: View, relations: Sequence[Relation]) -> list[dict[str, Any]]:
    """Several of them: their names are looked up at once."""
    sources = graph.names_of([relation.source for relation in relations])
    targets = graph.names_of([relation.target for relation in relations])
    return list(map(_shown, relations, sources, targets))


def _shown(relation: Relation, source: str, target: str) -> dict[str, Any]:
    shown = {"id": relation.id, "from": source, "to": target, "relationType": relation.relation_type}
    if relation.context:
        shown["context"] = relation.context
    if relation.ended_at:
        shown["endedAt"] = relation.ended_at
    return shown


def shown_observation(observation: Observation) -> dict[str, Any]:
    """An observation in detail: everything that is not as usual is said, the rest is left out."""
    shown: dict[str, Any] = {"id": observation.id, "content": observation.text, "kind": observation.kind}
    if observation.similarity_flag:
        shown["similarity_flag"] = observation.similarity_flag
    if observation.supersedes is not None:
        shown["supersedes"] = observation.supersedes
    if observation.superseded_at is not None:
        shown["superseded_at"] = observation.superseded_at
    shown["created_at"] = observation.created_at
    return shown
