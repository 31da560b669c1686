"""How the documented tables and full text follow the feed.

Every change has one entry in PROJECT that says it in SQL. Nothing here looks at the graph: whoever
lost a table can make it again from the feed alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from mcp_memory.changes import (
    AnyChange,
    CallsUndone,
    EntityAbsorbed,
    EntityAltered,
    EntityCreated,
    EntityDeleted,
    EntityRestored,
    EntityReverted,
    Entry,
    ObservationFlagged,
    ObservationRestored,
    ObservationReverted,
    ObservationsAdded,
    ObservationsDeleted,
    ObservationsMoved,
    ObservationSuperseded,
    ReflectionAdded,
    ReflectionDeleted,
    ReflectionRestored,
    ReflectionReverted,
    RelationCreated,
    RelationDeleted,
    RelationEnded,
    RelationRepointed,
    RelationRestored,
    RelationReverted,
    RelationRevived,
    RequestNoted,
)
from mcp_memory.facts import Entity, Observation, Reflection
from mcp_memory.stores.sqlite.queries import Queries

SQL = Queries("project")
CHECK = Queries("check")
HISTORY = Queries("history")


class Projector:
    """One batch of entries on its way into the tables; full text is refreshed once, at the end."""

    def __init__(self, connection: apsw.Connection, has_vectors: bool) -> None:
        self.connection = connection
        self.run = connection.execute
        self.run_many = connection.executemany
        self.has_vectors = has_vectors
        self.touched: set[int] = set()

    def project(self, entry: Entry) -> None:
        for change in entry.changes:
            PROJECT[type(change)](self, change, entry.at)

    def finish(self) -> None:
        """Refresh the full text of every entity whose words changed."""
        ids = [(entity_id,) for entity_id in sorted(self.touched)]
        self.run_many(SQL.forget_text, ids)
        self.run_many(SQL.index_text, ids)
        self.touched.clear()

    # ── entities ─────────────────────────────────────────────────────────────────────────────────

    def _created(self, change: EntityCreated, at: str) -> None:
        if change.fills is not None:
            self.run(HISTORY.bury, (change.fills,))
            # Its name is wanted now; bytes are the name of nothing else, because names are text.
            self.run(SQL.rename_entity, (str(change.fills).encode(), change.fills))
        self.run(SQL.create_entity, (change.id, change.name, change.entity_type, change.status, at, at))
        if change.fills is not None:
            self.run(SQL.repoint_sources, (change.id, change.fills))
            self.run(SQL.repoint_targets, (change.id, change.fills))
            self.run(SQL.delete_entity, (change.fills,))
        self._add(change.id, change.first, change.texts, "generic", at)
        self.touched.add(change.id)

    def _altered(self, change: EntityAltered, at: str) -> None:
        self.run(SQL.alter_entity, (change.entity_type, change.status, change.id))
        self._touch(change.id, at)

    def _touch(self, entity_id: int, at: str) -> None:
        self.run(SQL.touch_entity, (at, entity_id))
        self.touched.add(entity_id)

    def _deleted(self, change: EntityDeleted, at: str) -> None:
        if self.has_vectors:  # vec0 knows no cascade
            self.run(SQL.forget_vector, (change.id,))
        self.run(SQL.forget_text, (change.id,))
        self.run(HISTORY.bury, (change.id,))
        self.run(SQL.delete_entity, (change.id,))
        self.touched.discard(change.id)

    def _absorbed(self, change: EntityAbsorbed, at: str) -> None:
        from mcp_memory.stores.sqlite import usage

        pair = (change.into, change.id)
        self.run(SQL.pass_reflections, pair)
        for statement in (SQL.pass_access, SQL.pass_access_days, SQL.pass_company_above, SQL.pass_company_below):
            self.run(statement, pair)
        usage.pass_on(self.connection, *pair)
        self._deleted(EntityDeleted(change.id), at)

    def _entity_restored(self, change: EntityRestored, at: str) -> None:
        fact: Entity = change.fact
        self.run(
            SQL.create_entity,
            (fact.id, fact.name, fact.entity_type, fact.status, fact.created_at, fact.updated_at),
        )
        for observation in fact.observations:
            self._restore(fact.id, observation)
        self.touched.add(fact.id)

    def _entity_reverted(self, change: EntityReverted, at: str) -> None:
        self._altered(EntityAltered(change.id, change.entity_type, change.status), change.updated_at)

    # ── observations ─────────────────────────────────────────────────────────────────────────────

    def _add(self, entity: int, first: int, texts: Any, kind: str, at: str) -> None:
        self.run_many(SQL.add_observation, [(first + i, entity, text, kind, at) for i, text in enumerate(texts)])

    def _observed(self, change: ObservationsAdded, at: str) -> None:
        self._add(change.entity, change.first, change.texts, change.kind, at)
        self._touch(change.entity, at)

    def _superseded(self, change: ObservationSuperseded, at: str) -> None:
        self.run(SQL.supersede_observation, (at, change.id))
        self.run(SQL.link_superseding, (change.id, change.by))
        self._touch(change.entity, at)

    def _unobserved(self, change: ObservationsDeleted, at: str) -> None:
        ids = [(observation_id,) for observation_id in change.ids]
        self.run_many(SQL.unlink_superseded, ids)
        self.run_many(SQL.delete_observation, ids)
        self._touch(change.entity, at)

    def _moved(self, change: ObservationsMoved, at: str) -> None:
        self.run_many(SQL.move_observation, [(change.target, observation_id) for observation_id in change.ids])
        self._touch(change.source, at)
        self._touch(change.target, at)

    def _flagged(self, change: ObservationFlagged, at: str) -> None:
        self.run(SQL.flag_observation, (change.flag, change.id))

    def _restore(self, entity: int, seen: Observation) -> None:
        self.run(
            SQL.restore_observation,
            (
                seen.id,
                entity,
                seen.text,
                seen.kind,
                seen.supersedes,
                seen.superseded_at,
                seen.similarity_flag,
                seen.created_at,
            ),
        )

    def _observation_restored(self, change: ObservationRestored, at: str) -> None:
        self._restore(change.entity, change.fact)
        self.touched.add(change.entity)

    def _observation_reverted(self, change: ObservationReverted, at: str) -> None:
        seen = change.fact
        self.run(
            SQL.revert_observation,
            (
                seen.text,
                seen.kind,
                seen.supersedes,
                seen.superseded_at,
                seen.similarity_flag,
                seen.created_at,
                seen.id,
            ),
        )
        self.touched.add(change.entity)

    # ── relations ────────────────────────────────────────────────────────────────────────────────

    def _related(self, change: RelationCreated, at: str) -> None:
        self.run(
            SQL.create_relation,
            (change.id, change.source, change.target, change.relation_type, change.context, at),
        )

    def _ended(self, change: RelationEnded, at: str) -> None:
        self.run(SQL.end_relation, (at, change.id))

    def _revived(self, change: RelationRevived, at: str) -> None:
        self.run(SQL.revive_relation, (change.context, change.id))

    def _repointed(self, change: RelationRepointed, at: str) -> None:
        self.run(SQL.repoint_relation, (change.source, change.target, change.id))

    def _unrelated(self, change: RelationDeleted, at: str) -> None:
        self.run(SQL.delete_relation, (change.id,))

    def _relation_restored(self, change: RelationRestored, at: str) -> None:
        fact = change.fact
        self.run(
            SQL.restore_relation,
            (
                fact.id,
                fact.source,
                fact.target,
                fact.relation_type,
                fact.context,
                fact.is_active,
                fact.ended_at,
                fact.created_at,
            ),
        )

    def _relation_reverted(self, change: RelationReverted, at: str) -> None:
        fact = change.fact
        self.run(SQL.revert_relation, (fact.context, fact.is_active, fact.ended_at, fact.created_at, fact.id))

    # ── reflections ──────────────────────────────────────────────────────────────────────────────

    def _reflected(self, change: ReflectionAdded, at: str) -> None:
        self._reflection_restored(
            ReflectionRestored(
                Reflection(
                    change.id, change.target_type, change.target_id, change.author, change.content, change.mood, at
                )
            ),
            at,
        )

    def _reflection_restored(self, change: ReflectionRestored, at: str) -> None:
        fact = change.fact
        self.run(
            SQL.add_reflection,
            (fact.id, fact.target_type, fact.target_id, fact.author, fact.content, fact.mood, fact.created_at),
        )
        self.run(SQL.index_reflection, (fact.id, fact.content))

    def _reflection_reverted(self, change: ReflectionReverted, at: str) -> None:
        fact = change.fact
        self._unreflected(ReflectionDeleted(fact.id), at)
        self._reflection_restored(ReflectionRestored(fact), at)

    def _unreflected(self, change: ReflectionDeleted, at: str) -> None:
        if self.has_vectors:
            self.run(SQL.forget_reflection_vector, (change.id,))
        self.run(CHECK.forget_reflection, (change.id,))
        self.run(SQL.delete_reflection, (change.id,))

    def _undone(self, change: CallsUndone, at: str) -> None:
        """Nothing to say in tables: the changes beside this one say it."""

    def _noted(self, change: RequestNoted, at: str) -> None:
        """Whoever wants to know looks for it in the feed."""


PROJECT: dict[type[AnyChange], Callable[[Projector, Any, str], None]] = {
    EntityCreated: Projector._created,
    EntityAltered: Projector._altered,
    EntityDeleted: Projector._deleted,
    EntityAbsorbed: Projector._absorbed,
    ObservationsAdded: Projector._observed,
    ObservationSuperseded: Projector._superseded,
    ObservationsDeleted: Projector._unobserved,
    ObservationsMoved: Projector._moved,
    ObservationFlagged: Projector._flagged,
    RelationCreated: Projector._related,
    RelationEnded: Projector._ended,
    RelationRevived: Projector._revived,
    RelationRepointed: Projector._repointed,
    RelationDeleted: Projector._unrelated,
    ReflectionAdded: Projector._reflected,
    EntityRestored: Projector._entity_restored,
    ObservationRestored: Projector._observation_restored,
    RelationRestored: Projector._relation_restored,
    ReflectionRestored: Projector._reflection_restored,
    EntityReverted: Projector._entity_reverted,
    ObservationReverted: Projector._observation_reverted,
    RelationReverted: Projector._relation_reverted,
    ReflectionReverted: Projector._reflection_reverted,
    ReflectionDeleted: Projector._unreflected,
    CallsUndone: Projector._undone,
    RequestNoted: Projector._noted,
}
