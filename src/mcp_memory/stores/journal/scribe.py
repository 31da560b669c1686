"""From changes to records: a plan in the words of the journal, names and texts instead of ids.

The law: who reads the records finds what the changes made of the graph. Where no record says exactly
that, the entity is written anew, with its relations, and reading knows it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mcp_memory.changes import (
    AnyChange,
    EntityAbsorbed,
    EntityAltered,
    EntityCreated,
    EntityDeleted,
    EntityRestored,
    ObservationRestored,
    ObservationsAdded,
    ObservationsDeleted,
    ObservationsMoved,
    RelationCreated,
    RelationDeleted,
    RelationRepointed,
    RelationRestored,
    RelationRevived,
)
from mcp_memory.facts import PLACEHOLDER
from mcp_memory.graph import Graph
from mcp_memory.stores.journal import mcpmem
from mcp_memory.stores.journal.mcpmem import Record

Ends = tuple[int, int, str]


class Page(msgspec.Struct):
    """An entity as the plan has it so far."""

    name: str
    entity_type: str
    texts: dict[int, str]
    is_placeholder: bool
    ids: tuple[int, ...]  # its own, and that of the placeholder it took the place of


class Scribe:
    """Writes one plan down. The graph is the one the plan was made on, and still without it."""

    def __init__(self, graph: Graph) -> None:
        self.records: list[Record] = []
        self._graph = graph
        self._created: dict[int, EntityCreated] = {}
        self._pages: dict[int, Page] = {}
        self._relations: dict[int, Ends | None] = {}  # where they differ from the graph; None: gone

    def write(self, changes: list[AnyChange]) -> None:
        for change in changes:
            say = WORDS.get(type(change))
            if say is not None:  # the rest has no place in a journal, and was refused, or says nothing
                say(self, change)

    # ── what the plan has made of things ─────────────────────────────────────────────────────────

    def _name(self, entity_id: int) -> str:
        created = self._created.get(entity_id)
        return created.name if created is not None else self._graph.name_of(entity_id)

    def _page(self, entity_id: int) -> Page:
        page = self._pages.get(entity_id)
        if page is None:
            page = self._pages[entity_id] = self._open(entity_id)
        return page

    def _open(self, entity_id: int) -> Page:
        new = self._created.get(entity_id)
        if new is not None:
            ids = (entity_id,) if new.fills is None else (entity_id, new.fills)
            texts = dict(enumerate(new.texts, new.first))
            return Page(new.name, new.entity_type, texts, new.status == PLACEHOLDER, ids)
        entity = self._graph.by_id[entity_id]
        texts = {seen.id: seen.text for seen in entity.observations}
        return Page(entity.name, entity.entity_type, texts, entity.is_placeholder, (entity_id,))

    def _ends(self, relation_id: int) -> Ends:
        known = self._relations.get(relation_id)
        if known is not None:
            return known
        relation = self._graph.relations[relation_id]
        return relation.source, relation.target, relation.relation_type

    def _incident(self, page: Page) -> dict[int, Ends]:
        """The relations of an entity, as the plan has them so far."""
        found: dict[int, Ends | None] = {}
        for one in page.ids:
            for relation in self._graph.incident_to(one) if one in self._graph.by_id else ():
                found[relation.id] = (relation.source, relation.target, relation.relation_type)
        mine = set(page.ids)
        for relation_id, ends in self._relations.items():
            if relation_id in found or (ends is not None and mine & set(ends[:2])):
                found[relation_id] = ends if ends is not None and mine & set(ends[:2]) else None
        return {relation_id: ends for relation_id, ends in found.items() if ends is not None}

    def _named(self, ends: Ends) -> tuple[str, str, str]:
        return self._name(ends[0]), self._name(ends[1]), ends[2]

    # ── entities ─────────────────────────────────────────────────────────────────────────────────

    def _create(self, change: EntityCreated) -> None:
        self._created[change.id] = change
        if change.status != PLACEHOLDER:  # whose relations name it
            self.records += mcpmem.create_entity(change.name, change.entity_type, change.texts)

    def _restore(self, change: EntityRestored) -> None:
        fact = change.fact
        texts = {seen.id: seen.text for seen in fact.observations}
        self._created[fact.id] = EntityCreated(fact.id, fact.name, fact.entity_type)
        self._pages[fact.id] = Page(fact.name, fact.entity_type, texts, fact.is_placeholder, (fact.id,))
        if not fact.is_placeholder:
            self.records += mcpmem.create_entity(fact.name, fact.entity_type, texts.values())

    def _alter(self, change: EntityAltered) -> None:
        page = self._page(change.id)
        if change.entity_type not in (None, page.entity_type):
            page.entity_type = change.entity_type or page.entity_type
            self._write_anew(page)

    def _delete(self, change: EntityDeleted | EntityAbsorbed) -> None:
        page = self._page(change.id)
        incident = self._incident(page)
        if incident or not page.is_placeholder:
            self.records.append(mcpmem.delete_entity(page.name))
        self._relations.update(dict.fromkeys(incident))

    def _write_anew(self, page: Page) -> None:
        self.records.append(mcpmem.delete_entity(page.name))
        self.records += mcpmem.create_entity(page.name, page.entity_type, page.texts.values())
        self.records += [mcpmem.create_relation(*self._named(ends)) for ends in self._incident(page).values()]

    # ── observations ─────────────────────────────────────────────────────────────────────────────

    def _observe(self, change: ObservationsAdded) -> None:
        self._add(self._page(change.entity), dict(enumerate(change.texts, change.first)))

    def _observe_again(self, change: ObservationRestored) -> None:
        self._add(self._page(change.entity), {change.fact.id: change.fact.text})

    def _add(self, page: Page, texts: dict[int, str]) -> None:
        """One record, if it says the same: it can only append, and only what is not there yet."""
        fresh = set(texts.values())
        appends = not page.texts or min(texts, default=0) > max(page.texts)
        says_it = appends and len(fresh) == len(texts) and fresh.isdisjoint(page.texts.values())
        page.texts = page.texts | texts if appends else dict(sorted((page.texts | texts).items()))
        if not says_it:
            self._write_anew(page)
        elif texts:
            self.records += mcpmem.add_observations(page.name, texts.values())

    def _forget(self, change: ObservationsDeleted) -> None:
        self._remove(self._page(change.entity), change.ids)

    def _remove(self, page: Page, ids: list[int]) -> None:
        """One record, if it says the same: it takes away every copy of a text."""
        gone = [page.texts.pop(one) for one in ids if one in page.texts]
        if not set(gone).isdisjoint(page.texts.values()):
            self._write_anew(page)
        elif gone:
            self.records += mcpmem.delete_observations(page.name, dict.fromkeys(gone))

    def _move(self, change: ObservationsMoved) -> None:
        source, target = self._page(change.source), self._page(change.target)
        texts = {one: source.texts[one] for one in sorted(change.ids) if one in source.texts}
        self._remove(source, list(texts))
        self._add(target, texts)

    # ── relations ────────────────────────────────────────────────────────────────────────────────

    def _relate(self, change: RelationCreated) -> None:
        ends = self._relations[change.id] = (change.source, change.target, change.relation_type)
        self.records.append(mcpmem.create_relation(*self._named(ends)))

    def _relate_again(self, change: RelationRestored | RelationRevived) -> None:
        fact = change.fact if isinstance(change, RelationRestored) else self._graph.relations[change.id]
        ends = self._relations[fact.id] = (fact.source, fact.target, fact.relation_type)
        self.records.append(mcpmem.create_relation(*self._named(ends)))

    def _repoint(self, change: RelationRepointed) -> None:
        old = self._ends(change.id)
        new = self._relations[change.id] = (change.source, change.target, old[2])
        self.records.append(mcpmem.delete_relation(*self._named(old)))
        self.records.append(mcpmem.create_relation(*self._named(new)))

    def _unrelate(self, change: RelationDeleted) -> None:
        self.records.append(mcpmem.delete_relation(*self._named(self._ends(change.id))))
        self._relations[change.id] = None


def whole(graph: Graph) -> list[Record]:
    """The shortest records that say all of a graph: entities first, then relations, each in order."""
    records: list[Record] = []
    for entity in graph.entities():
        texts = entity.texts()
        try:
            records += mcpmem.create_entity(entity.name, entity.entity_type, texts)
        except mcpmem.TooLarge:  # read from a journal, so it can only be that it repeats itself
            records += mcpmem.create_entity(entity.name, entity.entity_type, dict.fromkeys(texts))
    name_of = graph.name_of
    for relation in graph.active_relations():
        records.append(
            mcpmem.create_relation(name_of(relation.source), name_of(relation.target), relation.relation_type)
        )
    return records


WORDS: dict[type[AnyChange], Callable[[Scribe, Any], None]] = {
    EntityCreated: Scribe._create,
    EntityRestored: Scribe._restore,
    EntityAltered: Scribe._alter,
    EntityDeleted: Scribe._delete,
    EntityAbsorbed: Scribe._delete,
    ObservationsAdded: Scribe._observe,
    ObservationRestored: Scribe._observe_again,
    ObservationsDeleted: Scribe._forget,
    ObservationsMoved: Scribe._move,
    RelationCreated: Scribe._relate,
    RelationRestored: Scribe._relate_again,
    RelationRevived: Scribe._relate_again,
    RelationRepointed: Scribe._repoint,
    RelationDeleted: Scribe._unrelate,
}
