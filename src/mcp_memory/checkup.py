"""Is everything that should be equal, equal? Behind `mcp-memory doctor` and the end of every test.

Feed against graph, graph against store; the store itself compares its projections and indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.changes import Entry
from mcp_memory.graph import Graph
from mcp_memory.history.examining import Examination, Fingerprint
from mcp_memory.stores.store import REBUILT, RESTORED, Finding, StoreFault, StoreReadOnly, StoreTooNew
from mcp_memory.stores.vectors import vectors_of

if TYPE_CHECKING:
    from mcp_memory.space import Space

# What a file that somebody has been at makes of our own code.
BROKEN = (LookupError, TypeError, ValueError, AttributeError)
STARTED_AGAIN = "start the server again: it reads the memory anew"
SHOWN = 5  # findings of one kind; the rest is counted


class Moment(NamedTuple):
    """The same state several times, as it was while nobody wrote."""

    graph: Graph  # in memory
    fresh: Graph  # in the store
    feed: list[Entry] | None
    floor: int = 0  # the last entry of the feed's beginning
    indexed: int = 0  # the last that the index by entity knows
    fingerprint: Fingerprint | None = None  # of that index
    nameless: int = 0  # entities that the history tells about without their names


def checkup(space: Space, repair: bool = False) -> list[Finding]:
    try:
        return _compared(space, repair)
    except StoreFault as fault:
        if not _may_lie_in_the_tables(fault):
            raise
        return _from_the_feed_alone(space, repair, fault)
    except BROKEN as error:
        return _from_the_feed_alone(space, repair, error)


def _may_lie_in_the_tables(fault: StoreFault) -> bool:
    return not (fault.retryable or isinstance(fault, StoreReadOnly | StoreTooNew))


def _from_the_feed_alone(space: Space, repair: bool, why: Exception) -> list[Finding]:
    """The memory cannot be read as it stands. Where the feed can, everything else follows from it."""
    feed = space.store.feed()
    if feed is None:
        raise why
    wrong = _few("the feed is not in order", _unreadable(feed), RESTORED)
    reason = str(why) if isinstance(why, StoreFault) else f"{type(why).__name__}: {why}"
    if wrong:
        return [Finding(f"the memory cannot be read: {reason}", remedy=RESTORED), *wrong]
    found = Finding(f"what follows from the feed cannot be read: {reason}", remedy=REBUILT)
    if not repair:
        return [found]
    space.rebuild()
    found.repaired = True
    return [found, *_compared(space, repair)]


def _unreadable(feed: Iterator[Entry]) -> Iterator[str]:
    """Why a feed cannot be replayed."""
    entries: list[Entry] = []
    try:
        entries.extend(feed)
    except (StoreFault, *BROKEN) as error:
        yield f"the entry after {entries[-1].seq if entries else 0} cannot be read: {error}"
        return
    examination = Examination(0, 0)
    try:
        examination.take(entries)
    except BROKEN as error:
        yield f"it cannot be replayed: {type(error).__name__}: {error}"
    yield from examination.wrong


def _compared(space: Space, repair: bool) -> list[Finding]:
    findings = list(space.store.check(repair))
    moment = _at_one_moment(space)
    aside = differences(moment.graph, moment.fresh)
    findings += _few("the graph in memory differs from the store", aside, STARTED_AGAIN)
    if moment.feed is not None:
        findings += _of_the_feed(moment, moment.feed)
    remedy = RESTORED if moment.feed is None else REBUILT
    findings += _few("the graph contradicts itself", contradictions(moment.graph), remedy)
    if repair:
        _rebuild(space, findings)
    return findings + vectors_of(space.store).check(space.graph(), repair)


def _rebuild(space: Space, findings: list[Finding]) -> None:
    """Make everything that follows from the feed anew, where that helps and the feed itself is in order."""
    derived = [finding for finding in findings if finding.remedy == REBUILT and not finding.repaired]
    if not derived or any(finding.remedy == RESTORED for finding in findings):
        return
    space.rebuild()
    for finding in derived:
        finding.repaired = True


def _of_the_feed(moment: Moment, feed: list[Entry]) -> list[Finding]:
    """What is wrong with the feed itself cannot be mended; what follows from it can be made anew."""
    examination = Examination(moment.floor, moment.indexed)
    examination.take(feed)
    findings = _few("the feed is not in order", iter(examination.wrong), RESTORED)
    derived = _few("the feed replayed differs from the store", differences(examination.graph, moment.fresh), REBUILT)
    derived += _few("what stood before is told wrongly", (f"entry {seq}" for seq in examination.stale), REBUILT)
    if moment.fingerprint is not None and moment.fingerprint != examination.fingerprint:
        derived.append(Finding("the index of the history by entity differs from the feed", remedy=REBUILT))
    if moment.nameless:
        derived.append(Finding(f"{moment.nameless} entities of the history have no name", remedy=REBUILT))
    return findings + derived


def _at_one_moment(space: Space) -> Moment:
    """Others may write at any time, so they are made to wait until it is read."""
    try:
        with space.store.begin():
            return _moment(space)
    except StoreReadOnly:
        return _moment(space)


def _moment(space: Space) -> Moment:
    graph, fresh = space.graph(), space.store.load()
    feed, history = space.store.feed(), space.history
    if feed is None or history is None:
        return Moment(graph, fresh, None if feed is None else list(feed))
    return Moment(graph, fresh, list(feed), history.floor, history.indexed, history.fingerprint(), history.nameless())


def _few(kind: str, texts: Iterator[str], remedy: str) -> list[Finding]:
    found = list(texts)
    shown = [Finding(f"{kind}: {text}", remedy=remedy) for text in found[:SHOWN]]
    if len(found) > SHOWN:
        shown.append(Finding(f"{kind}: {len(found) - SHOWN} more", remedy=remedy))
    return shown


def differences(one: Graph, other: Graph) -> Iterator[str]:
    """In what two graphs differ, as facts and in order."""
    if one.seq != other.seq:
        yield f"sequence {one.seq} and {other.seq}"
    for what in ("by_id", "relations", "reflections"):
        left, right = getattr(one, what), getattr(other, what)
        for key in left.keys() | right.keys():
            if left.get(key) != right.get(key):
                yield f"{what}[{key}]: {left.get(key)} and {right.get(key)}"
        if list(left) != sorted(left):
            yield f"the order of {what}"
    for what in ("entity_count", "observation_count", "relation_count", "type_counts", "relation_type_counts"):
        if getattr(one, what) != getattr(other, what):
            yield f"{what}: {getattr(one, what)} and {getattr(other, what)}"


def contradictions(graph: Graph) -> Iterator[str]:
    """Where the graph's own indexes disagree with its facts."""
    yield from _about_entities(graph)
    yield from _about_relations(graph)
    yield from _about_placeholders(graph)


def _about_entities(graph: Graph) -> Iterator[str]:
    for entity in graph.by_id.values():
        if graph.ids[entity.name] != entity.id:
            yield f"entity {entity.id} is not found by its name {entity.name!r}"
        ids = [seen.id for seen in entity.observations]
        if ids != sorted(set(ids)):
            yield f"observations of {entity.name!r} are out of order: {ids}"
    if len(graph.ids) != len(graph.by_id):
        yield f"{len(graph.ids)} names for {len(graph.by_id)} entities"


def _about_relations(graph: Graph) -> Iterator[str]:
    for relation in graph.relations.values():
        if relation.source not in graph.by_id or relation.target not in graph.by_id:
            yield f"relation {relation.id} has an end that does not exist"
        if graph.relation(relation.source, relation.target, relation.relation_type) != relation:
            yield f"relation {relation.id} is not found by its triple"
        for end in (relation.source, relation.target):
            if relation not in graph.incident_to(end):
                yield f"relation {relation.id} is missing at entity {end}"
    linked = sum(graph.degree(entity_id) for entity_id in graph.by_id)
    ends = sum(len({relation.source, relation.target}) for relation in graph.relations.values())
    if linked != ends:
        yield f"{linked} links for {ends} ends of relations"


def _about_placeholders(graph: Graph) -> Iterator[str]:
    placeholders = {entity.id for entity in graph.by_id.values() if entity.is_placeholder}
    if placeholders != graph.placeholders:
        yield f"placeholders {placeholders} are taken for {graph.placeholders}"
    for placeholder in placeholders:
        if not graph.degree(placeholder):
            yield f"placeholder {graph.name_of(placeholder)!r} has no relation left"
    for entity_id, near in graph.neighbours(graph.by_id):
        others = [r.target if r.source == entity_id else r.source for r in graph.relations_of(entity_id)]
        if list(near) != [o for o in dict.fromkeys(others) if o != entity_id and o not in placeholders]:
            yield f"the neighbours of entity {entity_id} are taken for {list(near)}"
