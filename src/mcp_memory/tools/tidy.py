"""Tools that put what is known in better order, without losing any of it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from mcp_memory.changes import AnyChange, EntityAbsorbed, ObservationFlagged, ObservationsMoved, Plan
from mcp_memory.curation.curator import Curator
from mcp_memory.curation.merging import Joining, joined_observations
from mcp_memory.facts import BadInput, Observation
from mcp_memory.graph import Graph
from mcp_memory.tools.drafting import Draft
from mcp_memory.tools.inputs import Count, Name, RelationInput, Splits
from mcp_memory.tools.registry import tool
from mcp_memory.tools.remember import Linking

if TYPE_CHECKING:
    from mcp_memory.curation.split import Analysis

Share = Annotated[float, Meta(ge=0, le=1)]
Days = Annotated[float, Meta(ge=0, le=1e6)]


@tool(destructive=True)
def merge_entities(graph: Graph, source: Name, target: Name) -> Plan:
    """Make two entities one when they mean the same: target gets the observations, relations, reflections and
    usage of source, which is then gone. Nothing is doubled; relations between the two are dropped."""
    if source == target:
        raise BadInput(f"Source and target must be different entities; both are {source!r}.")
    going, staying = graph[source], graph[target]
    observations, added = joined_observations(going, staying)
    joining = Joining(graph, going.id, staying.id)
    answer = {
        "source": source,
        "target": target,
        "movedObservations": len(going.active()),
        "addedObservations": added,
        "redirectedRelations": joining.redirected,
    }
    return Plan([*observations, *joining.changes, EntityAbsorbed(going.id, staying.id)], answer)


# ── splitting ────────────────────────────────────────────────────────────────────────────────────


@tool(heavy=True)
def analyze_entity_split(curator: Curator, entity_name: Name) -> dict[str, Any]:
    """Tell whether an entity has grown too large for its type, and which topics its observations fall into."""
    return {"analysis": _analysed(curator, entity_name).told()}


@tool(heavy=True)
def propose_entity_split(curator: Curator, entity_name: Name) -> dict[str, Any]:
    """Propose how to take a large entity apart: what execute_entity_split takes, after review. null when it needs
    none."""
    from mcp_memory.curation.split import proposal

    analysis = _analysed(curator, entity_name)
    with curator.facts() as graph:
        proposed = proposal(analysis, lambda name: graph[name].texts() if name in graph else ())
    return {"proposal": proposed, **({} if proposed else {"message": "Entity does not need splitting"})}


@tool(heavy=True)
def find_split_candidates(curator: Curator, limit: Count = 50) -> dict[str, Any]:
    """Entities that have grown too large for their type and have topics of their own, each with its analysis."""
    from mcp_memory.curation.split import analysed, too_large

    large = too_large(curator.passing(), curator.customs.split_thresholds)
    found = [one for one in analysed(large, curator) if one.needs_split]
    answer: dict[str, Any] = {"candidates": [one.told() for one in found[:limit]]}
    return answer | ({"total": len(found)} if len(found) > limit else {})


def _analysed(curator: Curator, name: str) -> Analysis:
    from mcp_memory.curation.split import analyse, grown

    with curator.facts() as graph:
        one = grown(graph[name], curator.customs.split_thresholds)
    return analyse(one, curator)


@tool(heavy=True)
def execute_entity_split(
    graph: Graph, entity_name: Name, approved_splits: Splits, parent_entity_name: str | None = None
) -> Plan:
    """Carry out a reviewed split: observations move to new entities with their kind, flags, history and times, and
    each is linked by contiene and parte_de to the entity, or to parent_entity_name. All or nothing."""
    from mcp_memory.curation.split import CONTAINS, moving

    original = graph[entity_name]
    parent = graph[parent_entity_name or entity_name]
    if parent is not original and parent.name in [one.name for one in approved_splits]:
        raise BadInput(f"{parent.name!r} cannot be a part of itself: give another parent_entity_name or split.")
    draft = Draft(graph)
    moves: list[AnyChange] = []
    relations = []
    for split, ids in moving(graph, original, [(one.name, one.observations) for one in approved_splits]):
        given = approved_splits[split]
        if graph.id_of(given.name) is None:
            draft.create(given.name, [], given.entity_type or original.entity_type)
        child = draft.id_of(given.name)
        assert child is not None
        moves.append(ObservationsMoved(original.id, child, ids))
        relations.append(RelationInput(parent.name, given.name, CONTAINS))
    linking = Linking(graph, draft)
    for relation in relations:
        linking.link(relation)
    moved = sum(len(one.observations) for one in approved_splits)
    answer = {
        "new_entities": [one.name for one in approved_splits],
        "moved_observations": moved,
        "relations_created": len(linking.changes),
        "original_observations_remaining": len(original.active()) - moved,
    }
    return Plan([*draft.changes, *moves, *linking.changes], {"result": answer})


# ── duplicates and the report ────────────────────────────────────────────────────────────────────

MANY_ALIKE = (
    "Only the best {pairs} pairs and the beginning of the clusters are listed. Higher thresholds find fewer; what is "
    "a log of the same event may be better off as one observation that sums it up."
)


@tool(heavy=True)
def find_duplicate_observations(
    curator: Curator, entity_name: Name, threshold: Share = 0.85, containment_threshold: Share = 0.7
) -> dict[str, Any]:
    """Pairs and clusters of observations of an entity that may say the same, by meaning (cosine) or because a short
    one stands in a long one (containment). differs hints at a contradiction."""
    from mcp_memory.curation.duplicates import compare, told_clusters, told_pairs

    with curator.facts() as graph:
        active = graph[entity_name].active()
        ids, texts, flags = ([getattr(seen, what) for seen in active] for what in ("id", "text", "similarity_flag"))
    meanings = curator.meanings(texts)
    found = compare(
        texts,
        meanings and meanings.vectors,
        model=meanings.model if meanings else "",
        same=threshold,
        contained=containment_threshold,
    )
    groups, of_groups = told_clusters(texts, ids, flags, found.clusters)
    answer: dict[str, Any] = {
        "entity_name": entity_name,
        "total_observations": len(texts),
        "duplicates_found": found.total,
        "duplicate_pairs": told_pairs(texts, ids, found.best),
        "clusters": groups,
    }
    if len(found.best) < found.total or of_groups:
        answer |= {"cut": True, "hint": MANY_ALIKE.format(pairs=len(found.best))}
    if meanings is None or not meanings.is_complete:
        answer["note"] = curator.missing("Compared")
    return answer


@tool(idempotent=True)
def settle_flags(graph: Graph, name: Name, observations: list[int | str] | None = None) -> Plan:
    """Take the flag off observations that are no duplicates, by id or exact text; if none are named, off all."""
    entity = graph[name]
    active = entity.active()
    meant = active if observations is None else [_meant(name, active, given) for given in observations]
    flagged = {seen.id: seen for seen in meant if seen.similarity_flag}
    answer = {
        "entity_name": name,
        "settled": [{"observation_id": seen.id, "content": seen.text} for seen in flagged.values()],
        "still_flagged": sum(bool(seen.similarity_flag) for seen in active) - len(flagged),
    }
    return Plan([ObservationFlagged(entity.id, seen, 0) for seen in flagged], answer)


def _meant(name: str, active: list[Observation], given: int | str) -> Observation:
    for seen in active:
        if given in (seen.id, seen.text):
            return seen
    raise BadInput(f"{name} has no active observation {given!r}; describe_entity lists them with their ids.")


@tool(heavy=True)
def consolidation_report(curator: Curator, stale_days: Days = 90.0, limit: Count = 50) -> dict[str, Any]:
    """What needs care: entities to split, possible duplicates, stale and large entities. The summary counts all, each
    list shows at most limit."""
    from mcp_memory.curation.report import report, survey
    from mcp_memory.curation.split import analysed

    uses, examined = curator.uses(), curator.examined()
    found = survey(curator.passing(), curator.customs.split_thresholds, uses, curator.now(), stale_days, examined)
    told = report(found, analysed(found.large, curator, found.entities), limit)
    return told | ({"note": NO_FLAGS} if examined == inf else {})


NO_FLAGS = (
    "Nobody flags duplicates here: a memory of this format has no place for flags. find_duplicate_observations "
    "compares the observations of one entity."
)
