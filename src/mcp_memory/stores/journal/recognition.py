"""The same facts under the same ids: a file that keeps neither ids nor times, read again by a process
that has given some of them away.

The law: a fact that was known keeps its id and its times, whoever rewrote the file meanwhile; only what
is new gets new ones."""

from __future__ import annotations

from msgspec.structs import replace

from mcp_memory.facts import Entity, Observation
from mcp_memory.graph import Graph


def recognised(fresh: Graph, known: Graph) -> Graph:
    """A graph of the facts of `fresh`, which is used up, with the ids and times of `known` where it knows them."""
    recognition = Recognition(known)
    ids = {entity.id: recognition.entity(entity) for entity in fresh.by_id.values()}
    relations = []
    for relation in fresh.relations.values():
        one, other = known.named(fresh.name_of(relation.source)), known.named(fresh.name_of(relation.target))
        twin = known.relation(one.id, other.id, relation.relation_type) if one and other else None
        relation.source, relation.target = ids[relation.source].id, ids[relation.target].id
        if twin is not None:
            relation.id, relation.created_at, relation.context = twin.id, twin.created_at, twin.context
        else:
            relation.id = recognition.next_relation
            recognition.next_relation += 1
        relations.append(relation)
    graph = Graph()
    for entity in sorted(ids.values(), key=lambda entity: entity.id):
        graph.insert(entity)
    for relation in sorted(relations, key=lambda relation: relation.id):
        graph.keep(relation)
    graph.next_entity, graph.next_observation = recognition.next_entity, recognition.next_observation
    graph.next_relation = recognition.next_relation
    return graph


class Recognition:
    def __init__(self, known: Graph) -> None:
        self.known = known
        self.next_entity = known.next_entity
        self.next_observation = known.next_observation
        self.next_relation = known.next_relation

    def entity(self, entity: Entity) -> Entity:
        twin = self.known.named(entity.name)
        if twin is None or twin.is_placeholder != entity.is_placeholder:
            self.next_entity += 1
            observations = [self._new(seen) for seen in entity.observations]
            return replace(entity, id=self.next_entity - 1, observations=observations)
        observations = self._observations(entity, twin)
        same = (entity.entity_type, entity.texts()) == (twin.entity_type, twin.texts())
        updated_at = twin.updated_at if same else entity.updated_at
        return replace(entity, id=twin.id, observations=observations, created_at=twin.created_at, updated_at=updated_at)

    def _observations(self, entity: Entity, twin: Entity) -> list[Observation]:
        """Ids must rise in order of arrival, so an observation is known only behind the one known before it."""
        waiting = iter(twin.observations)
        wanted = {seen.text for seen in twin.observations}
        found = []
        for seen in entity.observations:
            known = next((old for old in waiting if old.text == seen.text), None) if seen.text in wanted else None
            if known is None:
                waiting = iter(())
                found.append(self._new(seen))
            else:
                found.append(replace(known))
        return found

    def _new(self, seen: Observation) -> Observation:
        self.next_observation += 1
        return replace(seen, id=self.next_observation - 1)
