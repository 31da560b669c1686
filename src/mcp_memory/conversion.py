"""From one memory into another, whatever the formats of the two.

The law: the source is only read; the target gets everything in one commit, keeps what it knew, and does
not change when the same source comes again. What a format has no place for is counted, never dropped in silence."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from msgspec.json import decode, encode
from msgspec.structs import replace

from mcp_memory import transcript
from mcp_memory.changes import (
    AnyChange,
    EntityCreated,
    EntityRestored,
    ObservationRestored,
    Plan,
    ReflectionRestored,
    RelationRestored,
    RelationRevived,
)
from mcp_memory.errand import Errand
from mcp_memory.facts import BadInput, Entity, Observation, Reflection, Relation
from mcp_memory.graph import Graph
from mcp_memory.space import Space
from mcp_memory.stores.formats import SUFFIXES, format_of
from mcp_memory.stores.lines import NUL, mended
from mcp_memory.stores.onefile import OneFile
from mcp_memory.stores.plain import plainly

EXPORT_SUFFIXES = (*SUFFIXES, ".db", ".sqlite", ".sqlite3", transcript.SUFFIX)


def import_memory(errand: Errand, path: str) -> dict[str, Any]:
    """Bring in a journal, what was taken out of one, a transcript, or a database of ours or of the predecessor."""
    errand.progress(0, None, "reading")
    source, unread = read_source(path)
    if format_of(path) == "history" and errand.space.history is not None and not errand.space.graph().seq:
        floor, entries = transcript.read(path)
        count = errand.space.take_feed(entries, floor)
        moved = {"entities_imported": source.entity_count, "relations_imported": source.relation_count}
        return {**moved, "errors": 0, "skipped": 0, "history_entries": count}
    return bring_in(errand, source, unread)


def bring_in(errand: Errand, source: Graph, unread: int = 0) -> dict[str, Any]:
    """Everything of one graph into the space of another, as far as its store can hold it."""
    store = errand.space.store
    source, left = without_nul(source)
    if isinstance(store, OneFile):
        source, more = plainly(source, store.longest_text)
        left |= more
    entities, relations = source.entity_count, len(source.relations)
    total = entities + relations
    errand.progress(total, total, f"writing {entities} entities, {relations} relations")

    def merge(graph: Graph) -> Plan:
        merging = Merging(graph, source)
        merging.run()
        answer = {
            "entities_imported": entities,
            "relations_imported": merging.new_relations,
            "errors": 0,
            "skipped": unread,
        }
        return Plan(merging.changes, answer | ({"not_held": left} if left else {}))

    answer = dict(errand.commit(merge))
    if unread:
        errand.log("warning", f"{unread} stretches of the file could not be read and were not imported")
    for what, count in left.items():
        errand.log("warning", f"this memory's format has no place for {count} {what}, which were not imported")
    return answer


def read_source(path: str) -> tuple[Graph, int]:
    """What a file says, and how many stretches of it could not be read."""
    match format_of(path):
        case "journal":
            from mcp_memory.stores.journal.reading import read_file

            reading = read_file(path)
            return reading.content.graph(), len(reading.bad) + (reading.tail is not None)
        case "remains":
            from mcp_memory.stores.journal.remains import read_remains

            content, unreadable = read_remains(path)
            return content.graph(), unreadable
        case "sqlite":
            from mcp_memory.stores.sqlite.elsewhere import read_apart

            return read_apart(path), 0
        case "history":
            return transcript.replayed(path), 0
        case _:
            raise BadInput(f"{path} is a JSONL memory file, which is imported line by line.")


def export_memory(space: Space, path: str, errand: Errand, journal_version: int | None = None) -> dict[str, Any]:
    """Everything of a space into a new file, whose suffix tells the format."""
    from mcp_memory.assembly import open_space

    suffix = os.path.splitext(path)[1].lower()
    if suffix not in EXPORT_SUFFIXES:
        raise BadInput(f"Which format {path} should have is told by its suffix: {', '.join(EXPORT_SUFFIXES)}.")
    if os.path.exists(path) and os.path.getsize(path):
        raise BadInput(f"{path} exists already and is not written over. Remove it, or choose another name.")
    if journal_version is not None and suffix != ".mcpmem":
        raise BadInput(f"{path} is no journal and has no journal version. Choose a name that ends in .mcpmem.")
    errand.progress(0, None, "reading")
    if suffix == transcript.SUFFIX:
        count = transcript.write(space, path, lambda done: errand.progress(done, None, "writing"))
        graph = space.graph()
        return {
            "entities_imported": graph.entity_count,
            "relations_imported": graph.relation_count,
            "history_entries": count,
        }
    target = open_space(path)
    if journal_version is not None:
        target.store.new_version = journal_version  # type: ignore[attr-defined]
    errand.space = target
    try:
        moved = bring_in(errand, space.graph())
        if not os.path.exists(path):
            target.compact()  # nothing to write is a file too
        return moved
    finally:
        target.settle()
        target.close()
        with suppress(FileNotFoundError):
            os.unlink(f"{path}.lock")


def without_nul(graph: Graph) -> tuple[Graph, dict[str, int]]:
    """A graph with U+FFFD for NUL, which no text may hold here, and how many facts that altered."""
    facts: list[Entity | Relation | Reflection]
    facts = [*graph.by_id.values(), *graph.relations.values(), *graph.reflections.values()]
    altered = [place for place, raw in enumerate(map(encode, facts)) if NUL in raw and mended(raw) != raw]
    if not altered:
        return graph, {}
    better = Graph()
    for place in altered:
        facts[place] = decode(mended(encode(facts[place])), type=type(facts[place]))
    for fact in facts:
        if isinstance(fact, Reflection):
            better.remember(fact)
        elif isinstance(fact, Entity):
            is_taken = better.named(fact.name) is not None
            better.insert(replace(fact, name=f"{fact.name} #{fact.id}" if is_taken else fact.name))
        elif better.relation(fact.source, fact.target, fact.relation_type) is None:
            better.keep(replace(fact))
    return better, {"NUL characters, now U+FFFD": len(altered)}


class Merging:
    """What must change in a graph so that it also holds what another one holds.

    Facts keep their order and, in an empty graph, their ids: every id is moved by how many are taken."""

    def __init__(self, graph: Graph, source: Graph) -> None:
        self.changes: list[AnyChange] = []
        self.new_relations = 0
        self._graph = graph
        self._source = source
        self._entity_shift = graph.next_entity - 1
        self._observation_shift = graph.next_observation - 1
        self._relation_shift = graph.next_relation - 1
        self._reflection_shift = graph.next_reflection - 1
        self._entities: dict[int, int] = {}  # ids there -> ids here
        self._relations: dict[int, int] = {}
        self._known: dict[int, int] = {}  # ids there -> ids here, before anything changes

    def run(self) -> None:
        for entity in self._source.by_id.values():
            self._entities[entity.id] = self._entity(entity)
        for relation in self._source.relations.values():
            self._relations[relation.id] = self._relation(relation)
        known = {_said(reflection) for reflection in self._graph.reflections.values()}
        for reflection in self._source.reflections.values():
            self._reflection(reflection, known)

    def _entity(self, entity: Entity) -> int:
        known = self._graph.named(entity.name)
        if known is not None:
            self._known[entity.id] = known.id
        if known is None:
            new = entity.id + self._entity_shift
            observations = [self._moved(seen) for seen in entity.observations]
            self.changes.append(EntityRestored(replace(entity, id=new, observations=observations)))
            return new
        if entity.is_placeholder:
            return known.id
        if known.is_placeholder:
            new = entity.id + self._entity_shift
            self.changes.append(EntityCreated(new, entity.name, entity.entity_type, entity.status, fills=known.id))
            self.changes += [ObservationRestored(new, self._moved(seen)) for seen in entity.observations]
            return new
        self._observe(known, entity)
        return known.id

    def _moved(self, seen: Observation) -> Observation:
        supersedes = None if seen.supersedes is None else seen.supersedes + self._observation_shift
        return replace(seen, id=seen.id + self._observation_shift, supersedes=supersedes)

    def _observe(self, known: Entity, entity: Entity) -> None:
        """What is not known of an entity yet, in whatever state it is known here or was there."""
        ids = {seen.text: seen.id for seen in known.observations}
        twins = {seen.id: ids[seen.text] for seen in entity.observations if seen.text in ids}
        for seen in entity.observations:
            if seen.id not in twins:
                moved = self._moved(seen)
                if seen.supersedes in twins:
                    moved.supersedes = twins[seen.supersedes]
                self.changes.append(ObservationRestored(known.id, moved))

    def _relation(self, relation: Relation) -> int:
        known = None
        if relation.source in self._known and relation.target in self._known:
            ends = self._known[relation.source], self._known[relation.target]
            known = self._graph.relation(*ends, relation.relation_type)
        if known is None:
            new = relation.id + self._relation_shift
            source, target = self._entities[relation.source], self._entities[relation.target]
            self.changes.append(RelationRestored(replace(relation, id=new, source=source, target=target)))
            self.new_relations += relation.is_active
            return new
        if relation.is_active and not known.is_active:
            self.changes.append(RelationRevived(known.id, relation.context))
            self.new_relations += 1
        return known.id

    def _reflection(self, reflection: Reflection, known: set[tuple[Any, ...]]) -> None:
        ids = {"entity": self._entities, "relation": self._relations}.get(reflection.target_type, {})
        target = reflection.target_id
        moved = replace(
            reflection,
            id=reflection.id + self._reflection_shift,
            target_id=target if target is None else ids.get(target, target),
        )
        if _said(moved) not in known:
            self.changes.append(ReflectionRestored(moved))


def _said(reflection: Reflection) -> tuple[Any, ...]:
    return reflection.target_type, reflection.target_id, reflection.author, reflection.content, reflection.created_at
