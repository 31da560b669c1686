"""What changes when one entity becomes part of another, so that nothing known of either is lost or doubled."""

from __future__ import annotations

from msgspec.structs import replace

from mcp_memory.changes import (
    AnyChange,
    ObservationReverted,
    ObservationsDeleted,
    ObservationsMoved,
    ReflectionReverted,
    RelationRepointed,
    RelationReverted,
    RelationRevived,
)
from mcp_memory.facts import GENERIC_KIND, Entity, Observation, Relation
from mcp_memory.graph import Graph
from mcp_memory.tools.inverses import AUTOMATIC, inverse_of


def joined_observations(going: Entity, staying: Entity) -> tuple[list[AnyChange], int]:
    """What moves, and how many of it are news to the one that stays. What was superseded moves as history."""
    believed: dict[str, Observation] = {seen.text: seen for seen in staying.active()}
    own = {seen.id for seen in believed.values()}
    moving: dict[int, None] = {}
    replaced: list[int] = []
    kinds: list[AnyChange] = []
    added = 0
    for seen in going.observations:
        if seen.superseded_at is None:
            same = believed.get(seen.text)
            if same is None:
                added += 1
                believed[seen.text] = seen
            else:
                is_said = seen.supersedes is None or same.supersedes is not None
                one, other = (same, seen) if is_said else (seen, same)
                if one.kind == GENERIC_KIND != other.kind:  # of two kinds the one that tells something
                    one = replace(one, kind=other.kind)
                    kinds.append(ObservationReverted(staying.id if one.id in own else going.id, one))
                believed[seen.text] = one
                if is_said:
                    continue
                if same.id in own:
                    replaced.append(same.id)  # the one with a history stays in its place
                else:
                    del moving[same.id]
        moving[seen.id] = None
    changes = kinds
    if replaced:
        changes.append(ObservationsDeleted(staying.id, replaced))
    if moving:
        changes.append(ObservationsMoved(going.id, staying.id, list(moving)))
    return changes, added


class Joining:
    """The relations of one entity on their way to another."""

    def __init__(self, graph: Graph, going: int, staying: int) -> None:
        self.graph = graph
        self.changes: list[AnyChange] = []
        self.redirected = 0
        self._standing: dict[tuple[int, int, str], tuple[int, bool]] = {}  # triple -> id, is it active?
        self._merged: dict[int, int] = {}  # dropped -> the one that says the same
        for relation in graph.incident_to(going):
            source = staying if relation.source == going else relation.source
            target = staying if relation.target == going else relation.target
            if source == target:
                continue  # it goes with its entity
            triple = (source, target, relation.relation_type)
            twin = graph.relation(*triple)
            if twin is None:
                self.redirected += 1
                self.changes.append(RelationRepointed(relation.id, source, target))
                self._standing[triple] = relation.id, relation.is_active
                continue
            self._merged[relation.id] = twin.id
            self._standing[triple] = twin.id, relation.is_active or twin.is_active
            if relation.is_active and not twin.is_active:
                self.changes.append(RelationRevived(twin.id, relation.context))
            elif relation.is_active == twin.is_active and _tells(relation) and not _tells(twin):
                self.changes.append(RelationReverted(replace(twin, context=relation.context)))
        self._pair_up()
        self._keep_reflections()

    def _pair_up(self) -> None:
        """A relation and its inverse are true together: where only one is now, the other is revived."""
        revived = set()
        for (source, target, relation_type), (relation_id, is_active) in self._standing.items():
            inverse = inverse_of(relation_type)
            other = self._known(target, source, inverse) if inverse else None
            if other is not None and other[1] != is_active:
                revived.add(other[0] if is_active else relation_id)
        self.changes += [RelationRevived(relation_id) for relation_id in sorted(revived)]

    def _known(self, source: int, target: int, relation_type: str) -> tuple[int, bool] | None:
        found = self._standing.get((source, target, relation_type))
        if found is None:
            relation = self.graph.relation(source, target, relation_type)
            found = None if relation is None else (relation.id, relation.is_active)
        return found

    def _keep_reflections(self) -> None:
        """What was thought about a dropped relation is thought about the one that says the same."""
        for thought in self.graph.reflections.values():
            heir = self._merged.get(thought.target_id or 0) if thought.target_type == "relation" else None
            if heir is not None:
                self.changes.append(ReflectionReverted(replace(thought, target_id=heir)))


def _tells(relation: Relation) -> bool:
    """Has it a context that somebody gave it?"""
    return relation.context is not None and not relation.context.startswith(AUTOMATIC)
