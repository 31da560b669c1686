"""What stands in the way of taking back one call while later ones stay: whatever they built on it.

The law: only the net effect counts. What was altered later and brought back since is no obstacle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from mcp_memory.changes import Entry
from mcp_memory.facts import Entity, Observation, Relation
from mcp_memory.graph import Graph
from mcp_memory.history.rewinding import Before, Owned, WayBack, standing
from mcp_memory.quoting import named, quoted

Key = tuple[str, int]  # a kind of fact, as Before names it, and the id


class Obstacle(NamedTuple):
    """One reason, and the fact that a later call touched."""

    reason: str
    key: Key


def obstacles(way: WayBack, later: Sequence[Entry]) -> Iterator[Obstacle]:
    """Everything that is not any more as the call left it, and everything that would lose its ground."""
    after = Before(later)
    yield from _altered(way, after)
    yield from _on_the_dying(way)
    yield from _without_place(way)


def culprits(later: Sequence[Entry], key: Key) -> list[Entry]:
    """The later calls that touched a fact, each by its first entry."""
    kind, fact_id = key
    touching = {entry.call for entry in later if fact_id in getattr(Before([entry]), kind)}
    return [entry for entry in later if not entry.part and entry.call in touching]


def _altered(way: WayBack, after: Before) -> Iterator[Obstacle]:
    graph, before = way.graph, way.before
    for entity_id in before.entities.keys() & after.entities.keys():
        left, now = after.entities[entity_id], graph.by_id.get(entity_id)
        if _head(left) != _head(now):
            yield Obstacle(f"{_name(left or now)} was {_change(left, now)} later", ("entities", entity_id))
    here = standing(graph, before.owners | after.owners, before.observations)
    for observation_id in before.observations.keys() & after.observations.keys():
        owned, now_owned = after.observations[observation_id], here.get(observation_id)
        if _unflagged(owned) != _unflagged(now_owned):
            seen = (owned or now_owned or (0, Observation(0, "", "")))[1]
            yield Obstacle(f"{_short(seen.text)} was changed later", ("observations", observation_id))
    for relation_id in before.relations.keys() & after.relations.keys():
        if after.relations[relation_id] != graph.relations.get(relation_id):
            yield Obstacle(f"relation {relation_id} was changed later", ("relations", relation_id))
    for reflection_id in before.reflections.keys() & after.reflections.keys():
        if after.reflections[reflection_id] != graph.reflections.get(reflection_id):
            yield Obstacle(f"reflection {reflection_id} was changed later", ("reflections", reflection_id))


def _on_the_dying(way: WayBack) -> Iterator[Obstacle]:
    """What came later to an entity that was not there before the call."""
    graph, before = way.graph, way.before
    for entity_id in way.dying:
        entity = graph.by_id[entity_id]
        for seen in entity.observations:
            if seen.id not in before.observations:
                yield Obstacle(f"{named(entity.name)} has learned {_short(seen.text)} since", ("observations", seen.id))
        for relation in graph.incident_to(entity_id):
            if relation.id not in before.relations:
                yield Obstacle(f"{named(entity.name)} got {_link(graph, relation)} since", ("relations", relation.id))
        for reflection in graph.reflections_on(entity_id):
            if reflection.id not in before.reflections:
                yield Obstacle(f"{named(entity.name)} was reflected on since", ("reflections", reflection.id))


def _without_place(way: WayBack) -> Iterator[Obstacle]:
    """What comes back and finds its name or its triple taken, or what it belongs to gone."""
    graph = way.graph

    def is_there(entity_id: int) -> bool:
        return entity_id in way.reborn or (entity_id in graph.by_id and entity_id not in way.dying)

    for head in way.reborn.values():
        bearer = graph.ids.get(head.name)
        if bearer is not None and bearer not in way.dying:
            yield Obstacle(f"another entity is named {named(head.name)} since", ("entities", bearer))
    for owned in way.before.observations.values():
        if owned is None:
            continue
        if not is_there(owned[0]):
            yield Obstacle(f"the entity that {_short(owned[1].text)} belongs to is gone", ("entities", owned[0]))
        old = owned[1].supersedes
        if old is not None and old not in way.before.observations and not _stands(graph, owned[0], old):
            yield Obstacle(f"what {_short(owned[1].text)} superseded is gone", ("observations", old))
    for relation_id, relation in way.before.relations.items():
        if relation is None:
            continue
        for end in (relation.source, relation.target):
            if not is_there(end):
                yield Obstacle(f"an end of relation {relation_id} is gone", ("entities", end))
        twin = graph.relation(relation.source, relation.target, relation.relation_type)
        if twin is not None and twin.id != relation_id and twin.id not in way.before.relations:
            yield Obstacle(f"{_link(graph, twin)} was made anew since", ("relations", twin.id))


def abandoned(way: WayBack) -> set[int]:
    """Placeholders that nothing would be related to any more: they go too."""
    graph, before = way.graph, way.before
    if not graph.placeholders:
        return set()
    left: set[int] = set()
    back = {end for was in before.relations.values() if was is not None for end in (was.source, was.target)}
    for relation in (graph.relations.get(relation_id) for relation_id in before.relations):
        for end in () if relation is None else (relation.source, relation.target):
            if end in graph.placeholders and end not in back and end not in way.dying:
                others = (one.id for one in graph.incident_to(end))
                if all(way.relation_now(one) is None or one in before.relations for one in others):
                    left.add(end)
    return left


def _head(entity: Entity | None) -> tuple[str, str] | None:
    return None if entity is None else (entity.entity_type, entity.status)


def _unflagged(owned: Owned | None) -> Owned | None:
    """Flags are set by the server itself: nobody builds on them."""
    return None if owned is None else (owned[0], replace(owned[1], similarity_flag=0))


def _change(left: Entity | None, now: Entity | None) -> str:
    if now is None:
        return "deleted or merged"
    return "created again" if left is None else "given another type or status"


def _stands(graph: Graph, entity_id: int, observation_id: int) -> bool:
    entity = graph.by_id.get(entity_id)
    return entity is not None and any(seen.id == observation_id for seen in entity.observations)


def _name(entity: Entity | None) -> str:
    return "an entity" if entity is None else named(entity.name)


def _link(graph: Graph, relation: Relation) -> str:
    source, target = named(graph.name_of(relation.source)), named(graph.name_of(relation.target))
    return f"the relation {source} {named(relation.relation_type)} {target}"


def _short(text: str) -> str:
    return quoted(text, 60)
