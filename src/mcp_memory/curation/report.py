"""The state of a memory in four lists: what to split, what may be doubled, what nobody needs, what grows.

One pass over the entities, and nothing is changed: somebody reads the report and decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.curation.split import Analysis, Grown, grown
from mcp_memory.search.times import DAY, day_of, seconds_of

if TYPE_CHECKING:
    from mcp_memory.facts import Entity, Observation
    from mcp_memory.search.limbic import Use

ARCHIVED = "archivado"
# Who was served or opened more often than this is in use, however long ago.
LITTLE_USED = 2
# Beyond this many times its threshold an entity is worth taking apart by hand, even where no topics show.
FAR_BEYOND = 1.5


class Flagged(msgspec.Struct, frozen=True):
    entity_name: str
    observation_text: str
    similarity_flag: int
    observation_id: int


class Stale(msgspec.Struct, frozen=True):
    entity_name: str
    entity_type: str
    last_accessed_days_ago: int | None
    access_count: int
    observation_count: int
    changed_days_ago: int


class Survey(msgspec.Struct):
    """What one pass over the entities found."""

    entities: int = 0
    observations: int = 0
    large: list[Grown] = []
    flagged: list[Flagged] = []
    stale: list[Stale] = []
    pending: int = 0  # observations nobody has compared yet


def survey(
    entities: Iterable[Entity],
    thresholds: Mapping[str, int],
    uses: Mapping[str, Use],
    now: float,
    stale_days: float,
    examined: float,
) -> Survey:
    """Look at every entity once. `examined`: the last observation that was compared with those before it."""
    found = Survey()
    least = min(thresholds.values())
    since = now - stale_days * DAY
    # Most entities changed since, and their texts say so: what is older is asked exactly.
    day = day_of(since + DAY)
    for entity in entities:
        observations = entity.observations
        count = 0
        for seen in observations:
            if seen.superseded_at is None:
                count += 1
                if seen.similarity_flag:
                    found.flagged.append(Flagged(entity.name, seen.text, seen.similarity_flag, seen.id))
        found.entities += 1
        found.observations += count
        if not observations:
            continue
        if observations[-1].id > examined:
            found.pending += pending_in(entity.active(), examined)
        if count > least and (one := grown(entity, thresholds)).is_large:
            found.large.append(one)
        if entity.updated_at <= day and entity.status != ARCHIVED:
            stale = _stale(entity, count, uses.get(entity.name), now, since)
            if stale is not None:
                found.stale.append(stale)
    # Never used before long unused, the oldest first.
    found.stale.sort(key=lambda one: (one.last_accessed_days_ago is not None, -_days_since(one)))
    return found


def pending_in(active: Sequence[Observation], examined: float) -> int:
    """How many of an entity's observations may still get a flag."""
    if len(active) < 2:
        return 0
    # From the end: they stand in order, and of an entity that has grown only the last are new.
    return sum(1 for _ in takewhile(lambda seen: seen.id > examined, reversed(active)))


def _days_since(one: Stale) -> int:
    return one.changed_days_ago if one.last_accessed_days_ago is None else one.last_accessed_days_ago


def _stale(entity: Entity, count: int, use: Use | None, now: float, since: float) -> Stale | None:
    """An entity that was neither used nor changed for so long. What is new is not stale, however little used."""
    if use is not None and (use.count > LITTLE_USED or use.last >= since):
        return None
    changed = seconds_of(entity.updated_at)
    if changed is None or changed >= since:
        return None
    accessed = None if use is None or not use.count else int((now - use.last) / DAY)
    uses = 0 if use is None else use.count
    return Stale(entity.name, entity.entity_type, accessed, uses, count, int((now - changed) / DAY))


def report(found: Survey, analyses: Sequence[Analysis], most: int) -> dict[str, Any]:
    """As documented; of each area the first `most`, and in the summary how many there are."""
    splitting = [one for one in analyses if one.needs_split]
    candidates = {one.of.name for one in splitting}
    splitting.sort(key=lambda one: -one.of.score)
    large = [one for one in found.large if one.name not in candidates]
    large.sort(key=lambda one: -one.score)
    return {
        "summary": {
            "total_entities": found.entities,
            "total_observations": found.observations,
            "split_candidates_count": len(splitting),
            "flagged_observations_count": len(found.flagged),
            "stale_entities_count": len(found.stale),
            "large_entities_count": len(large),
            **({"flags_pending": found.pending} if found.pending else {}),
        },
        "split_candidates": [_candidate(one) for one in splitting[:most]],
        "flagged_observations": found.flagged[:most],
        "stale_entities": found.stale[:most],
        "large_entities": [_large(one) for one in large[:most]],
    }


def _sizes(one: Grown) -> dict[str, Any]:
    return {
        "entity_name": one.name,
        "entity_type": one.entity_type,
        "observation_count": len(one.texts),
        "threshold": one.threshold,
    }


def _candidate(one: Analysis) -> dict[str, Any]:
    return {**_sizes(one.of), "split_score": one.of.score, "num_topics": len(one.topics.groups)}


def _large(one: Grown) -> dict[str, Any]:
    said = "evaluate for split by hand" if one.score >= FAR_BEYOND else "monitor growth"
    return {**_sizes(one), "recommendation": f"No separate topics; {said}"}
