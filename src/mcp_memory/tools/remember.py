"""Tools that add to what is known: entities, relations, observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from mcp_memory.changes import AnyChange, Plan, RelationCreated, RelationRevived
from mcp_memory.curation.report import pending_in
from mcp_memory.facts import GENERIC_KIND, GENERIC_TYPE, BadInput, Entity, check_name
from mcp_memory.graph import Graph
from mcp_memory.tools.dialects import plain_entity
from mcp_memory.tools.drafting import Draft
from mcp_memory.tools.inputs import Addition, Additions, Entities, RelationInput, Relations
from mcp_memory.tools.inverses import INVERSES, automatic_context
from mcp_memory.tools.registry import tool


@tool(camel=True)
def create_entities(graph: Graph, entities: Entities) -> Plan:
    """Create entities with their first observations. Where a name exists already, new observations are added to
    it; type and status change only when given."""
    draft = Draft(graph)
    created: list[dict[str, Any]] = []
    for given in entities:
        entity_type = None if given.entity_type is UNSET else given.entity_type
        status = None if given.status is UNSET else given.status
        texts = draft.create(given.name, given.observations, entity_type, status)
        if texts is not None:
            told = {"name": given.name, "entityType": entity_type or GENERIC_TYPE, "observations": texts}
            created.append(told)
            continue
        draft.observe(given.name, given.observations)
        draft.alter(given.name, entity_type, status)
    if len(created) == len(entities):  # all new: what was planned is all there is to tell
        return Plan(draft.changes, {"entities": created})
    return Plan(draft.changes, lambda graph: {"entities": [plain_entity(graph[given.name]) for given in entities]})


@tool(camel=True, idempotent=True)
def upsert_entities(graph: Graph, entities: Entities) -> Plan:
    """Assert facts again and again without harm: creates what is missing and adds only observations that are new.
    The type of an existing entity is kept."""
    draft = Draft(graph)
    results = []
    for given in entities:
        entity_type = None if given.entity_type is UNSET else given.entity_type
        added = draft.create(given.name, given.observations, entity_type)
        created = added is not None
        if added is None:
            added, _ = draft.observe(given.name, given.observations)
        results.append({"name": given.name, "created": created, "addedObservations": added})
    return Plan(draft.changes, {"results": results})


@tool(camel=True)
def create_relations(graph: Graph, relations: Relations) -> Plan:
    """Link existing entities: from, to, relationType in active voice. Each relation is answered with its id, or
    with an error when an end is missing or the relation exists. One that had ended becomes active again."""
    linking = Linking(graph)
    items = [linking.link(given) for given in relations]
    errors = [item["error"] for item in items if "from" not in item]
    return Plan(linking.changes, {"relations": items, **({"errors": errors} if errors else {})})


class Linking:
    """Relations under way: what the graph holds plus what this plan has drafted and linked so far."""

    def __init__(self, graph: Graph, draft: Draft | None = None, keeps_loose_ends: bool = False) -> None:
        """`keeps_loose_ends`: an end that nobody has created yet gets a placeholder, drafted beside the rest."""
        self.graph = graph
        self.changes: list[AnyChange] = []
        # Without placeholders a name's id is one look-up, and no step of Python.
        self._end: Callable[[str], int | None]
        if draft is not None:
            self._end = draft.place if keeps_loose_ends else draft.id_of
        else:
            self._end = graph.id_of if graph.placeholders else graph.ids.__getitem__
        self._outgoing, self._known = graph.outgoing.get, graph.relation_id
        self._next = graph.next_relation
        self._linked: set[tuple[int, int, str]] = set()

    def link(self, given: RelationInput) -> dict[str, Any]:
        """Link one pair, and the other way round where the type has an inverse."""
        from_, to, kind, context = given.source, given.target, given.relation_type, given.context
        source, target = self._end(from_), self._end(to)
        if source is None or target is None:
            return {"error": f"Entity not found: {from_ if source is None else to}"}
        relation_id = self.relate(source, target, kind, context or None)
        if relation_id is None:
            return {"from": from_, "to": to, "relationType": kind, "error": "Relation already exists"}
        if kind in INVERSES:
            self.relate(target, source, INVERSES[kind], automatic_context(kind))
        if context:
            return {"id": relation_id, "from": from_, "to": to, "relationType": kind, "context": context}
        return {"id": relation_id, "from": from_, "to": to, "relationType": kind}

    def relate(self, source: int, target: int, relation_type: str, context: str | None) -> int | None:
        """The id of a relation that is now active, or None where it was so already."""
        triple = (source, target, relation_type)
        if triple in self._linked:
            return None
        out = self._outgoing(source)
        known = self._known(*triple) if out is None else out.get((target, relation_type))
        if known is not None:
            if self.graph.relations[known].is_active:
                return None
            self._linked.add(triple)
            self.changes.append(RelationRevived(known, context))
            return known
        self._linked.add(triple)
        made = self._next
        self._next = made + 1
        self.changes.append(RelationCreated(made, source, target, relation_type, context))
        return made


@tool
def add_observations(
    graph: Graph,
    observations: Additions,
    name: str | None = None,
    kind: str = GENERIC_KIND,
    supersedes: int | str | None = None,
) -> Plan:
    """Add observations to existing entities; those already known are left out. For one entity give name and
    observations (texts), with an optional kind, and supersedes: the id or exact text of what the last one replaces.
    For several give observations: [{entityName, contents}]."""
    check_name(kind, "kind")
    if name is None:
        return _add_to_several(graph, observations, kind, supersedes)
    texts = [one for one in observations if isinstance(one, str)]
    if len(texts) != len(observations):
        raise BadInput("With name, observations must be a list of texts.")
    draft = Draft(graph)
    fresh = _add(draft, Addition(name, texts, kind, supersedes))
    return Plan(draft.changes, lambda graph: _added_to(graph, name, len(fresh)))


def _added_to(graph: Graph, name: str, count: int) -> dict[str, Any]:
    """The entity as documented, and how many of the new ones will be compared with the rest, behind the reply."""
    entity = graph[name]
    pending = min(count, pending_in(entity.active(), graph.examined))
    return {"entity": plain_entity(entity), **({"flags_pending": pending} if pending else {})}


def _add_to_several(graph: Graph, additions: list[str | Addition], kind: str, supersedes: int | str | None) -> Plan:
    """What stands beside the list is meant for each of it; one old observation can be replaced only once."""
    if supersedes is not None and len(additions) != 1:
        raise BadInput("supersedes beside several entities says not whose. Give it inside one of observations.")
    draft = Draft(graph)
    results = []
    for addition in additions:
        if isinstance(addition, str):
            raise BadInput("Give name beside a list of texts, or observations as [{entityName, contents}].")
        old = supersedes if addition.supersedes is None else addition.supersedes
        added = _add(draft, replace(addition, kind=addition.kind or kind, supersedes=old))
        results.append({"entityName": addition.entity_name, "addedObservations": added})
    return Plan(draft.changes, {"results": results})


def _add(draft: Draft, addition: Addition) -> list[str]:
    """Draft new observations of an entity, and what the last of them replaces; those that are new."""
    entity = draft.graph[addition.entity_name]
    old = None if addition.supersedes is None else _replaced(draft, entity, addition.supersedes)
    fresh, first = draft.observe(entity.name, addition.contents, addition.kind or GENERIC_KIND)
    if old is not None:
        by = first + len(fresh) - 1 if fresh else _known(draft, entity, addition.contents, old)
        draft.supersede(entity.id, old, by)
    return fresh


def _known(draft: Draft, entity: Entity, texts: list[str], old: int) -> int:
    """The active observation of the last of these texts: it was added before somebody saw that it replaces another."""
    seen = next((seen for seen in entity.active() if texts and seen.text == texts[-1]), None)
    if seen is None or seen.id == old or seen.id in draft.replaced:
        raise BadInput("Nothing was given that could supersede the old observation.")
    if seen.supersedes is not None or seen.id in draft.replaced.values():
        raise BadInput(f"{seen.text!r} supersedes another observation already. Delete the old one, or word it anew.")
    return seen.id


def _replaced(draft: Draft, entity: Entity, supersedes: int | str) -> int:
    """The active observation meant by an id or by its exact text; digits may be either, the text before the id."""
    active = [seen for seen in entity.active() if seen.id not in draft.replaced]
    as_id = int(supersedes) if isinstance(supersedes, int) or supersedes.isdecimal() else None
    found = [seen for seen in active if seen.text == supersedes] or [seen for seen in active if seen.id == as_id]
    if found:
        return found[0].id
    raise BadInput(
        f"{entity.name} has no active observation {supersedes!r} to supersede; "
        "describe_entity lists them with their ids."
    )
