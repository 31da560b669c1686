"""The graph's primitive questions answered by SQL, for the first calls of a fresh process.

Nothing is kept between calls. Only the projected tables are read, so a view is given out only while
they are up to the feed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import inf

import apsw

from mcp_memory.facts import PLACEHOLDER, Entity, Observation, Reflection, Relation, UnknownEntity
from mcp_memory.stores.sqlite.queries import Queries
from mcp_memory.views import Glance, Lives

SQL = Queries("view")


class SqlView:
    """One connection's view of the tables."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._run = connection.execute
        self.by_id = self._Entities(self)
        self.fragments: dict[str, bytes] = {}
        self.lives: Lives | None = None  # as below: they are told once the graph is there
        self.examined = inf  # nobody looks for duplicates before the graph is there

    class _Entities:
        def __init__(self, view: SqlView) -> None:
            self._view = view

        def __getitem__(self, entity_id: int) -> Entity:
            for row in self._view._run(SQL.entity, (entity_id,)):
                seen = [Observation(*each) for each in self._view._run(SQL.observations, (entity_id,))]
                return Entity(*row, seen)  # type: ignore[call-arg]
            raise KeyError(entity_id)

    def id_of(self, name: str) -> int | None:
        for entity_id, status in self._run(SQL.entity_named, (name,)):
            return None if status == PLACEHOLDER else int(entity_id)
        return None

    def find(self, name: str) -> Entity | None:
        entity_id = self.id_of(name)
        return None if entity_id is None else self.by_id[entity_id]

    def named(self, name: str) -> Entity | None:
        for entity_id, _ in self._run(SQL.entity_named, (name,)):
            return self.by_id[int(entity_id)]
        return None

    def name_of(self, entity_id: int) -> str:
        return str(self._run(SQL.name, (entity_id,)).get)

    def names_of(self, entity_ids: Iterable[int]) -> Iterator[str]:
        return map(self.name_of, entity_ids)

    def __getitem__(self, name: str) -> Entity:
        entity = self.find(name)
        if entity is None:
            raise UnknownEntity(name)
        return entity

    def __contains__(self, name: str) -> bool:
        return self.id_of(name) is not None

    def incident_to(self, entity_id: int) -> list[Relation]:
        return self._linked([entity_id])

    def relations_of(self, entity_id: int) -> list[Relation]:
        return [relation for relation in self._linked([entity_id]) if relation.is_active]

    def relations_touching(self, entity_ids: Iterable[int]) -> list[Relation]:
        return [relation for relation in self._linked(list(entity_ids)) if relation.is_active]

    def relations_among(self, entity_ids: Collection[int]) -> list[Relation]:
        ids = set(entity_ids)
        return [r for r in self.relations_touching(ids) if r.source in ids and r.target in ids]

    def relation_page(self, relation_type: str, offset: int, count: int) -> tuple[list[Relation], int]:
        found = [Relation(*row) for row in self._run(SQL.relation_page, (relation_type, count, offset))]
        return found, int(self._run(SQL.relation_count, (relation_type,)).get)

    def _linked(self, entity_ids: Sequence[int]) -> list[Relation]:
        return [Relation(*row) for row in self._run(SQL.relations, (json.dumps(entity_ids),))]

    def degree(self, entity_id: int) -> int:
        return len(self._linked([entity_id]))

    def neighbours(self, entity_ids: Iterable[int]) -> Iterator[tuple[int, Sequence[int]]]:
        found: dict[int, dict[int, None]] = {entity_id: {} for entity_id in entity_ids}
        for here, there in self._run(SQL.neighbours, (json.dumps(list(found)),)):
            found[int(here)][int(there)] = None
        return ((here, tuple(there)) for here, there in found.items())

    def glance(self, types: int, recent: int) -> Glance:
        found = [(str(name), int(count)) for name, count in self._run(SQL.types)]
        names = [str(name) for (name,) in self._run(SQL.recent, (recent,))]
        return Glance(sum(count for _, count in found), found[:types], names)

    def reflections_on(self, entity_id: int) -> list[Reflection]:
        return [Reflection(*row) for row in self._run(SQL.reflections, (entity_id,))]
