"""What a plan would take away, counted before it is made true, so that somebody can be asked first."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from mcp_memory.changes import (
    AnyChange,
    EntityAbsorbed,
    EntityDeleted,
    ObservationsDeleted,
    ObservationsMoved,
    Plan,
    RelationDeleted,
    RelationRepointed,
)
from mcp_memory.facts import Interruption
from mcp_memory.graph import Graph


class Losses(msgspec.Struct, frozen=True):
    """How many facts of each kind go, or change their owner."""

    entities: int = 0
    observations: int = 0
    relations: int = 0

    @property
    def total(self) -> int:
        return self.entities + self.observations + self.relations

    def __str__(self) -> str:
        counted = (
            (self.entities, "entit", "y", "ies"),
            (self.observations, "observation", "", "s"),
            (self.relations, "relation", "", "s"),
        )
        parts = [f"{count} {stem}{one if count == 1 else many}" for count, stem, one, many in counted if count]
        return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts or ["nothing"])


class Unconfirmed(Interruption):
    """The plan takes more than its caller may take without asking."""

    def __init__(self, losses: Losses) -> None:
        super().__init__(str(losses))
        self.losses = losses


def losses_of(graph: Graph, changes: Iterable[AnyChange]) -> Losses:
    """What these changes, which are not true yet, would take away."""
    entities = observations = 0
    relations: set[int] = set()
    for change in changes:
        match change:
            case EntityDeleted():
                entity = graph.by_id[change.id]
                entities += not entity.is_placeholder
                observations += len(entity.active())
                relations.update(relation.id for relation in graph.relations_of(change.id))
            case EntityAbsorbed():
                entities += 1
            case ObservationsDeleted() | ObservationsMoved():
                observations += len(change.ids)
            case RelationDeleted() | RelationRepointed():
                relations.add(change.id)
    return Losses(entities, observations, len(relations))


def guarded(planner: Callable[[Graph], Plan], most: float) -> Callable[[Graph], Plan]:
    """The same planner, which raises Unconfirmed where its plan takes away more facts than this."""

    def plan(graph: Graph) -> Plan:
        made = planner(graph)
        losses = losses_of(graph, made.changes)
        if losses.total > most:
            raise Unconfirmed(losses)
        return made

    return plan
