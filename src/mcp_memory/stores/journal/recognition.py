"""The same facts under the same ids: a file that keeps neither ids nor times, read again by a process
that has given some of them away.

The law: a fact that was known keeps its id and its times, whoever rewrote the file meanwhile; only what
is new gets new ones."""

from __future__ import annotations

from msgspec.structs import replace

from mcp_memory.facts import Entity, Observation, Relation
from mcp_memory.graph import Graph
from mcp_memory.stores.journal.content import Content


def recognised(fresh: Content, known: Graph) -> Content:
    """The facts of `fresh`, with the ids and times of `known` where it knows them."""
    content = Content([], [], known.next_entity, known.next_observation, known.next_relation)
    ids: dict[int, int] = {}
    known_ids: dict[int, int] = {}
    for entity in fresh.entities:
        twin = known.named(entity.name)
        if twin is not None:
            known_ids[entity.id] = twin.id
        if twin is None or twin.is_placeholder != entity.is_placeholder:
            same = _new_entity(entity, content)
        else:
            same = _same_entity(entity, twin, content)
        ids[entity.id] = same.id
        content.entities.append(same)
    twins = {(one.source, one.target, one.relation_type): one for one in known.relations.values()}
    for relation in fresh.relations:
        one, other = known_ids.get(relation.source), known_ids.get(relation.target)
        match = twins.get((one, other, relation.relation_type)) if one is not None and other is not None else None
        content.relations.append(_relation(relation, ids, match, content))
    content.sort()
    return content


def _new_entity(entity: Entity, content: Content) -> Entity:
    content.next_entity += 1
    observations = [_new(seen, content) for seen in entity.observations]
    return replace(entity, id=content.next_entity - 1, observations=observations)


def _same_entity(entity: Entity, twin: Entity, content: Content) -> Entity:
    is_same = (entity.entity_type, entity.texts()) == (twin.entity_type, twin.texts())
    return replace(
        entity,
        id=twin.id,
        observations=_observations(entity, twin, content),
        created_at=twin.created_at,
        updated_at=twin.updated_at if is_same else entity.updated_at,
    )


def _observations(entity: Entity, twin: Entity, content: Content) -> list[Observation]:
    """Ids must rise in order of arrival, so an observation is known only behind the one known before it."""
    waiting = iter(twin.observations)
    wanted = {seen.text for seen in twin.observations}
    found = []
    for seen in entity.observations:
        known = next((old for old in waiting if old.text == seen.text), None) if seen.text in wanted else None
        if known is None:
            waiting = iter(())
            found.append(_new(seen, content))
        else:
            found.append(replace(known))
    return found


def _new(seen: Observation, content: Content) -> Observation:
    content.next_observation += 1
    return replace(seen, id=content.next_observation - 1)


def _relation(relation: Relation, ids: dict[int, int], twin: Relation | None, content: Content) -> Relation:
    source, target, kind = ids[relation.source], ids[relation.target], relation.relation_type
    if twin is not None:
        return Relation(twin.id, source, target, kind, twin.created_at, twin.context)
    content.next_relation += 1
    return Relation(content.next_relation - 1, source, target, kind, relation.created_at)
