"""Changes in words, a line each: what a person, or an agent, reads in the history.

The law: a line is a sentence of ours. Stored texts stand in quotes that they cannot end, and so does every name
that is more than a word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

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
    Was,
)
from mcp_memory.facts import Reflection, Relation
from mcp_memory.quoting import named, quoted

NOTHING = Was()


class Telling:
    """One entry, with the names that its ids stood for."""

    def __init__(self, entry: Entry, name_of: Callable[[int], str], is_whole: bool = False) -> None:
        """`is_whole`: every name and text as it was written, to be searched and not to be shown."""
        images = entry.was or NOTHING
        self._quoted: Callable[[str], str] = str if is_whole else quoted
        self._named: Callable[[str], str] = str if is_whole else named
        self._entry = entry
        self._name_of = name_of
        self._heads = {entity.id: entity for entity in images.entities}
        self._texts = {seen.id: seen.text for _, seen in images.observations}
        self._images = images
        self._relations = {relation.id: relation for relation in images.relations}
        self._reflections = {reflection.id: reflection for reflection in images.reflections}
        self._names: dict[int, str] = {}
        for change in entry.changes:
            self._learn(change)

    def _learn(self, change: AnyChange) -> None:
        """What this entry brings itself: names, texts and relations that its other changes refer to."""
        match change:
            case EntityCreated():
                self._names[change.id] = change.name
                self._texts.update(enumerate(change.texts, change.first))
            case EntityRestored():
                self._names[change.fact.id] = change.fact.name
            case ObservationsAdded():
                self._texts.update(enumerate(change.texts, change.first))
            case RelationCreated():
                told = Relation(change.id, change.source, change.target, change.relation_type, "")
                self._relations.setdefault(change.id, told)
            case RelationRestored():
                self._relations.setdefault(change.fact.id, change.fact)
            case _:
                pass

    def lines(self, about: set[int] | None = None, relation_id: int | None = None) -> Iterator[str]:
        """What happened; or only what happened to these entities, to this relation."""
        for change in self._entry.changes:
            if about is not None and about.isdisjoint(self.subjects(change)):
                continue
            if relation_id is not None and not self._concerns(change, relation_id):
                continue
            line = TELL[type(change)](self, change)
            if line:
                yield line

    def _concerns(self, change: AnyChange, relation_id: int) -> bool:
        """Is this change about a relation, or does it take away an entity that the relation goes with?"""
        match change:
            case RelationCreated() | RelationEnded() | RelationRevived() | RelationRepointed() | RelationDeleted():
                return change.id == relation_id
            case RelationRestored() | RelationReverted():
                return change.fact.id == relation_id
            case EntityDeleted() | EntityAbsorbed():
                return change.id in self._ends(relation_id)
            case _:
                return False

    def subjects(self, change: AnyChange) -> Iterable[int]:
        """The entities that a change is about."""
        find = SUBJECTS.get(type(change))
        return () if find is None else find(self, change)

    def name(self, entity_id: int) -> str:
        found = self._names.get(entity_id)
        if found is None:
            head = self._heads.get(entity_id)
            found = self._name_of(entity_id) if head is None else head.name
        return self._named(found)

    def text(self, observation_id: int) -> str:
        return self._quoted(self._texts.get(observation_id, f"observation {observation_id}"))

    def _all(self, before: str, texts: Iterable[str]) -> str:
        told = ", ".join(map(self._quoted, texts))
        return before + told if told else ""

    def _link(self, relation_id: int, relation: Relation | None = None) -> str:
        told = relation or self._relations.get(relation_id)
        if told is None:
            return f"relation {relation_id}"
        kind = self._named(told.relation_type)
        return f"{self.name(told.source)} {kind} {self.name(told.target)} (relation {told.id})"

    def _ends(self, relation_id: int, relation: Relation | None = None) -> tuple[int, ...]:
        told = relation or self._relations.get(relation_id)
        return () if told is None else (told.source, told.target)

    def around(self, entity_id: int) -> set[int]:
        """An entity that goes, and those that lose a relation by it."""
        lost = self._links.get(entity_id, ())
        return {entity_id, *(end for relation in lost for end in (relation.source, relation.target))}

    # Once for all: looked for anew, each of 8,000 deleted entities read what all of them had, in 67 s.
    @cached_property
    def _owned(self) -> dict[int, list[str]]:
        """The texts that each entity had."""
        owned: dict[int, list[str]] = {}
        for owner, seen in self._images.observations:
            owned.setdefault(owner, []).append(seen.text)
        return owned

    @cached_property
    def _links(self) -> dict[int, list[Relation]]:
        """The relations that each entity had or gets here."""
        links: dict[int, list[Relation]] = {}
        for relation in self._relations.values():
            for end in {relation.source, relation.target}:
                links.setdefault(end, []).append(relation)
        return links

    def _reflection(self, reflection: Reflection | None, what: str) -> str:
        if reflection is None:
            return what
        is_entity = reflection.target_type == "entity" and reflection.target_id is not None
        on = self.name(reflection.target_id) if is_entity and reflection.target_id else reflection.target_type
        return f"{what} on {on} by {self._named(reflection.author)}: {self._quoted(reflection.content)}"

    # ── by kind of change ────────────────────────────────────────────────────────────────────────

    def _created(self, change: EntityCreated) -> str:
        return f"created {self._named(change.name)} ({self._named(change.entity_type)}){self._all(': ', change.texts)}"

    def _altered(self, change: EntityAltered) -> str:
        parts = []
        old = self._heads.get(change.id)
        if change.entity_type is not None:
            was = f" (was {self._named(old.entity_type)})" if old else ""
            parts.append(f"type {self._named(change.entity_type)}{was}")
        if change.status is not None:
            was = f" (was {self._named(old.status)})" if old else ""
            parts.append(f"status {self._named(change.status)}{was}")
        return f"{self.name(change.id)}: {', '.join(parts)}"

    def _reverted(self, change: EntityReverted) -> str:
        old = self._heads.get(change.id)
        if old is not None and (old.entity_type, old.status) == (change.entity_type, change.status):
            return ""  # only its date
        kind, status = self._named(change.entity_type), self._named(change.status)
        return f"{self.name(change.id)}: again type {kind}, status {status}"

    def _deleted(self, change: EntityDeleted) -> str:
        texts = self._owned.get(change.id, ())
        links = len(self._links.get(change.id, ()))
        told = f" with {links} relation{'' if links == 1 else 's'}" if links else ""
        return f"deleted {self.name(change.id)}{told}{self._all(': ', texts)}"

    def _absorbed(self, change: EntityAbsorbed) -> str:
        return f"merged {self.name(change.id)} into {self.name(change.into)}"

    def _restored(self, change: EntityRestored) -> str:
        texts = [seen.text for seen in change.fact.observations]
        name, kind = self._named(change.fact.name), self._named(change.fact.entity_type)
        return f"restored {name} ({kind}){self._all(': ', texts)}"

    def _observed(self, change: ObservationsAdded) -> str:
        return f"{self.name(change.entity)}{self._all(' + ', change.texts)}"

    def _superseded(self, change: ObservationSuperseded) -> str:
        return f"{self.name(change.entity)}: {self.text(change.by)} replaces {self.text(change.id)}"

    def _unobserved(self, change: ObservationsDeleted) -> str:
        return f"{self.name(change.entity)} - {', '.join(map(self.text, change.ids))}"

    def _moved(self, change: ObservationsMoved) -> str:
        texts = ", ".join(map(self.text, change.ids))
        return f"moved from {self.name(change.source)} to {self.name(change.target)}: {texts}"

    def _flagged(self, change: ObservationFlagged) -> str:
        return f"{self.name(change.entity)}: {self.text(change.id)} {'flagged' if change.flag else 'no longer flagged'}"

    def _observation_restored(self, change: ObservationRestored) -> str:
        return f"{self.name(change.entity)} + {self._quoted(change.fact.text)}"

    def _observation_reverted(self, change: ObservationReverted) -> str:
        return f"{self.name(change.entity)}: {self._quoted(change.fact.text)} is again as it was"

    def _related(self, change: RelationCreated) -> str:
        return self._link(change.id)

    def _revived(self, change: RelationRevived) -> str:
        old = self._relations.get(change.id)
        told = f"again true: {self._link(change.id)}"
        if change.context is None or (old is not None and old.context == change.context):
            return told
        was = f" (was {self._quoted(old.context)})" if old is not None and old.context else ""
        return f"{told}, context {self._quoted(change.context)}{was}"

    def _reflected(self, change: ReflectionAdded) -> str:
        told = Reflection(
            change.id, change.target_type, change.target_id, change.author, change.content, change.mood, ""
        )
        return self._reflection(told, "reflection")

    def _undone(self, change: CallsUndone) -> str:
        return f"took back call{'s' * (len(change.calls) > 1)} {', '.join(map(str, change.calls))}"


TELL: dict[type[AnyChange], Callable[[Telling, Any], str]] = {
    EntityCreated: Telling._created,
    EntityAltered: Telling._altered,
    EntityReverted: Telling._reverted,
    EntityDeleted: Telling._deleted,
    EntityAbsorbed: Telling._absorbed,
    EntityRestored: Telling._restored,
    ObservationsAdded: Telling._observed,
    ObservationSuperseded: Telling._superseded,
    ObservationsDeleted: Telling._unobserved,
    ObservationsMoved: Telling._moved,
    ObservationFlagged: Telling._flagged,
    ObservationRestored: Telling._observation_restored,
    ObservationReverted: Telling._observation_reverted,
    RelationCreated: Telling._related,
    RelationEnded: lambda telling, change: f"ended {telling._link(change.id)}",
    RelationRevived: Telling._revived,
    RelationRepointed: lambda telling, change: (
        f"{telling._link(change.id)} now joins {telling.name(change.source)} and {telling.name(change.target)}"
    ),
    RelationDeleted: lambda telling, change: f"deleted {telling._link(change.id)}",
    RelationRestored: lambda telling, change: f"restored {telling._link(change.fact.id, change.fact)}",
    RelationReverted: lambda telling, change: f"again as it was: {telling._link(change.fact.id, change.fact)}",
    ReflectionAdded: Telling._reflected,
    ReflectionRestored: lambda telling, change: telling._reflection(change.fact, "restored the reflection"),
    ReflectionReverted: lambda telling, change: telling._reflection(change.fact, "the reflection is now one"),
    ReflectionDeleted: lambda telling, change: telling._reflection(
        telling._reflections.get(change.id), "deleted the reflection"
    ),
    CallsUndone: Telling._undone,
    RequestNoted: lambda telling, change: "",  # how a client asked is nothing that happened to facts
}


def _target(reflection: Reflection | ReflectionAdded | None) -> tuple[int, ...]:
    if reflection is None or reflection.target_type != "entity" or reflection.target_id is None:
        return ()
    return (reflection.target_id,)


SUBJECTS: dict[type[AnyChange], Callable[[Telling, Any], Iterable[int]]] = {
    EntityCreated: lambda telling, change: (change.id,),
    EntityAltered: lambda telling, change: (change.id,),
    EntityReverted: lambda telling, change: (change.id,),
    EntityDeleted: lambda telling, change: telling.around(change.id),
    EntityAbsorbed: lambda telling, change: (*telling.around(change.id), change.into),
    EntityRestored: lambda telling, change: (change.fact.id,),
    ObservationsAdded: lambda telling, change: (change.entity,),
    ObservationSuperseded: lambda telling, change: (change.entity,),
    ObservationsDeleted: lambda telling, change: (change.entity,),
    ObservationsMoved: lambda telling, change: (change.source, change.target),
    ObservationFlagged: lambda telling, change: (change.entity,),
    ObservationRestored: lambda telling, change: (change.entity,),
    ObservationReverted: lambda telling, change: (change.entity,),
    RelationCreated: lambda telling, change: (change.source, change.target),
    RelationEnded: lambda telling, change: telling._ends(change.id),
    RelationRevived: lambda telling, change: telling._ends(change.id),
    RelationRepointed: lambda telling, change: (*telling._ends(change.id), change.source, change.target),
    RelationDeleted: lambda telling, change: telling._ends(change.id),
    RelationRestored: lambda telling, change: telling._ends(change.fact.id, change.fact),
    RelationReverted: lambda telling, change: telling._ends(change.fact.id, change.fact),
    ReflectionAdded: lambda telling, change: _target(change),
    ReflectionRestored: lambda telling, change: _target(change.fact),
    ReflectionReverted: lambda telling, change: _target(change.fact),
    ReflectionDeleted: lambda telling, change: _target(telling._reflections.get(change.id)),
}
