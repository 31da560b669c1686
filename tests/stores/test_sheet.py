"""The lines of a sheet are those of its graph, whatever happened to it."""

from __future__ import annotations

import pytest

from mcp_memory.changes import (
    AnyChange,
    EntityCreated,
    EntityDeleted,
    EntityRestored,
    Entry,
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
from mcp_memory.checkup import contradictions, differences
from mcp_memory.facts import Entity, Observation, Relation
from mcp_memory.stores.lines import lines_of
from mcp_memory.stores.sheet import Sheet

AT = "2026-01-01 00:00:00"
BASE: list[AnyChange] = [
    EntityCreated(1, "Ada", "t", first=1, texts=["one", "two"]),
    EntityCreated(2, "Bob", "t", first=3, texts=["three"]),
    EntityCreated(3, "Eve", "t"),
    RelationCreated(1, 1, 2, "knows"),
    RelationCreated(2, 2, 3, "knows"),
]
ADA = Entity(1, "Ada", "other", "activo", AT, AT, [Observation(1, "again", AT)])

HAPPENINGS: dict[str, list[AnyChange]] = {
    "an entity comes back in its place": [EntityDeleted(1), EntityRestored(ADA)],
    "a relation comes back in its place": [RelationDeleted(1), RelationRestored(Relation(1, 1, 2, "met", AT))],
    "a relation gets other ends": [RelationRepointed(1, 3, 1)],
    "an entity merges into another": [ObservationsMoved(2, 1, [3]), RelationRepointed(2, 1, 3), EntityDeleted(2)],
    "a relation comes and goes": [RelationCreated(3, 1, 3, "saw"), RelationDeleted(3)],
    "an entity comes and goes": [EntityCreated(4, "Dan", "t"), RelationCreated(3, 4, 1, "saw"), EntityDeleted(4)],
    "an observation comes back": [ObservationsDeleted(1, [1]), ObservationRestored(1, Observation(1, "one", AT))],
    "a relation is revived": [RelationRevived(1)],
    "an entity learns": [ObservationsAdded(2, 4, ["four"]), ObservationsAdded(2, 5, ["five"])],
}


@pytest.mark.parametrize("changes", HAPPENINGS.values(), ids=HAPPENINGS)
def test_the_lines_follow_what_happens(changes: list[AnyChange]) -> None:
    sheet = Sheet(Entry(0, AT, BASE))
    sheet.apply([Entry(1, AT, changes)])
    graph = sheet.graph()

    assert sheet.lines() == list(lines_of(graph))
    assert sheet.render() == b"\n".join(sheet.lines())
    assert list(contradictions(graph)) == []


@pytest.mark.parametrize("changes", HAPPENINGS.values(), ids=HAPPENINGS)
def test_happening_one_by_one_is_happening_at_once(changes: list[AnyChange]) -> None:
    at_once, one_by_one = Sheet(Entry(0, AT, BASE)), Sheet(Entry(0, AT, BASE))
    at_once.apply([Entry(len(changes), AT, changes)])
    for seq, change in enumerate(changes, 1):
        one_by_one.apply([Entry(seq, AT, [change])])

    assert at_once.lines() == one_by_one.lines()
    assert list(differences(at_once.graph(), one_by_one.graph())) == []


def test_its_graph_is_a_copy_that_never_gives_an_id_twice() -> None:
    sheet = Sheet(Entry(0, AT, BASE))
    sheet.apply([Entry(1, AT, [EntityDeleted(3)])])
    graph = sheet.graph()
    graph.apply([Entry(2, AT, [ObservationsAdded(1, graph.next_observation, ["elsewhere"])])])

    assert sheet.seq == 1
    assert (graph.next_entity, graph.next_relation) == (4, 3)
    assert b"elsewhere" not in sheet.render()
