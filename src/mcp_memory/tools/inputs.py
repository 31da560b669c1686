"""What tools take: the typed forms of names, texts and facts on the wire, with the limits they respect."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from mcp_memory.facts import PLACEHOLDER, BadInput, Limits, check_name
from mcp_memory.tools.registry import Within

Offset = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]


class EntityInput(msgspec.Struct, rename="camel"):
    """An entity to create or to add to. What is left out stays as it is, or gets the documented default."""

    name: str
    entity_type: str | UnsetType = UNSET
    observations: list[str] = []
    status: str | UnsetType = UNSET


class RelationInput(msgspec.Struct, rename={"source": "from", "target": "to", "relation_type": "relationType"}):
    source: str
    target: str
    relation_type: str
    context: str | None = None


class Triple(msgspec.Struct, rename={"source": "from", "target": "to", "relation_type": "relationType"}):
    source: str
    target: str
    relation_type: str


class Split(msgspec.Struct):
    name: str
    observations: list[str]
    entity_type: str | None = None


class Addition(msgspec.Struct, rename="camel"):
    entity_name: str
    contents: list[str]
    kind: str | None = None
    supersedes: int | str | None = None


class Deletion(msgspec.Struct, rename="camel"):
    entity_name: str
    observations: list[str]


def check_entities(limits: Limits, entities: list[EntityInput]) -> None:
    limits.check_count("entities", len(entities), limits.entities)
    for index, entity in enumerate(entities):
        check_name(entity.name)
        if entity.entity_type is not UNSET:
            check_name(entity.entity_type, "entityType")
        if entity.status is not UNSET:
            check_status(entity.status)
        if entity.observations:
            limits.check_texts(entity.observations, f"Entity {index}")


def check_status(status: str) -> None:
    check_name(status, "status")
    if status == PLACEHOLDER:
        raise BadInput(f"The status {PLACEHOLDER!r} is reserved. Choose another, such as activo or archivado.")


def check_relations(limits: Limits, relations: list[RelationInput]) -> None:
    limits.check_count("relations", len(relations), limits.relations)
    for relation in relations:
        check_name(relation.relation_type, "relationType")
        if relation.context:
            limits.check_texts([relation.context])


def check_triples(limits: Limits, relations: list[Triple]) -> None:
    limits.check_count("relations", len(relations), limits.relations)


def check_names(limits: Limits, names: list[str]) -> None:
    limits.check_count("entity names", len(names), limits.entities)


def check_additions(limits: Limits, observations: list[Any]) -> None:
    texts = [one for one in observations if isinstance(one, str)]
    limits.check_texts(texts)
    additions = [one for one in observations if not isinstance(one, str)]
    limits.check_count("entities", len(additions), limits.entities)
    for index, addition in enumerate(additions):
        limits.check_texts(addition.contents, f"Entity {index}")
        if addition.kind is not None:
            check_name(addition.kind, "kind")


def check_deletions(limits: Limits, deletions: list[Deletion] | None) -> None:
    limits.check_count("entities", len(deletions or ()), limits.entities)


def check_splits(limits: Limits, splits: list[Split]) -> None:
    limits.check_count("splits", len(splits), limits.entities)
    if not splits:
        raise BadInput("Give at least one split: {name, entity_type, observations}.")
    for split in splits:
        check_name(split.name)
        if split.entity_type is not None:
            check_name(split.entity_type, "entity_type")


def check_reflection(limits: Limits, content: str) -> None:
    if not content.strip():
        raise BadInput("content cannot be empty: a reflection says something.")
    if len(content) > limits.reflection_chars:
        raise BadInput(f"content is too long: {len(content)} > {limits.reflection_chars} characters. Say it in less.")


Name = Annotated[str, Within(lambda _, name: check_name(name))]
Entities = Annotated[list[EntityInput], Within(check_entities)]
Relations = Annotated[list[RelationInput], Within(check_relations)]
Triples = Annotated[list[Triple], Within(check_triples)]
Names = Annotated[list[str], Within(check_names)]
Additions = Annotated[list[str | Addition], Within(check_additions)]
Deletions = Annotated[list[Deletion] | None, Within(check_deletions)]
Splits = Annotated[list[Split], Within(check_splits)]
Thought = Annotated[str, Within(check_reflection)]
Results = Annotated[int, Within(Limits.check_results)]
Query = Annotated[str, Within(Limits.check_query)]
