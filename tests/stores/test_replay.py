"""What the records of a journal mean: in an empty graph, over a graph that knows the beginning, and back again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.changes import (
    AnyChange,
    EntityAbsorbed,
    EntityAltered,
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
)
from mcp_memory.checkup import contradictions, differences
from mcp_memory.facts import PLACEHOLDER, Entity, Observation, Relation
from mcp_memory.graph import Graph
from mcp_memory.stores.journal import mcpmem
from mcp_memory.stores.journal.mcpmem import Record
from mcp_memory.stores.journal.recognition import recognised
from mcp_memory.stores.journal.replay import Replay
from mcp_memory.stores.journal.scribe import Scribe, whole
from tests.stores.test_mcpmem import EXAMPLE

AT = "2026-01-01 00:00:00"
BEGIN, COMMIT = (mcpmem.BEGIN, b""), (mcpmem.COMMIT, b"")


def replayed(records: list[Record], graph: Graph | None = None) -> Replay:
    replay = Replay(AT, graph)
    replay.run(mcpmem.scan(mcpmem.frame(records, 2), 0, 2), 0)
    return replay


def plain(graph: Graph) -> Any:
    """A graph as the file knows it: no ids, no times; relations in no order."""
    entities = [(entity.name, entity.entity_type, entity.texts()) for entity in graph.entities()]
    relations = {(graph.name_of(r.source), r.relation_type, graph.name_of(r.target)) for r in graph.active_relations()}
    return entities, relations


def entity(name: str, *texts: str, entity_type: str = "t") -> list[Record]:
    return mcpmem.create_entity(name, entity_type, texts)


def relation(source: str, target: str, kind: str = "r") -> Record:
    return mcpmem.create_relation(source, target, kind)


def test_the_example_ends_as_the_reference_says() -> None:
    replay = Replay(AT)
    replay.run(mcpmem.scan(EXAMPLE, 8, 1), 8)

    assert plain(replay.content().graph()) == ([("A", "t", ["x"])], set())
    assert (replay.end, replay.tail, replay.bad) == (len(EXAMPLE), None, [])


def test_an_entity_written_twice_is_one_that_lost_nothing() -> None:
    graph = replayed([*entity("A", "one", "two"), *entity("A", "two", "three", entity_type="later")]).content().graph()

    assert plain(graph)[0] == [("A", "later", ["one", "two", "three"])]


def test_a_relation_may_name_what_is_no_entity_until_it_is_one() -> None:
    graph = replayed([relation("A", "B"), *entity("B")]).content().graph()

    assert plain(graph) == ([("B", "t", [])], {("A", "r", "B")})
    assert [one.name for one in graph.by_id.values() if one.is_placeholder] == ["A"]
    assert list(contradictions(graph)) == []


def test_what_stood_only_for_ends_of_relations_goes_with_them() -> None:
    both = [relation("A", "B"), relation("B", "C")]

    assert len(replayed([*both, mcpmem.delete_relation("A", "B", "r")]).content().graph().by_id) == 2
    assert len(replayed([*both, mcpmem.delete_entity("B")]).content().graph().by_id) == 0


def test_forgetting_takes_every_copy_and_adding_none_that_is_there() -> None:
    graph = (
        replayed(
            [
                *entity("A", "x", "y", "x"),
                *mcpmem.add_observations("A", ["y", "z", "z"]),
                *mcpmem.delete_observations("A", ["x", "unknown"]),
                *mcpmem.delete_observations("B", ["x"]),
                mcpmem.delete_relation("A", "B", "r"),
                mcpmem.delete_entity("B"),
            ]
        )
        .content()
        .graph()
    )

    assert plain(graph)[0] == [("A", "t", ["y", "z"])]


# ── transactions ─────────────────────────────────────────────────────────────────────────────────


def test_a_transaction_without_an_end_is_the_tail() -> None:
    replay = replayed([*entity("A"), BEGIN, mcpmem.delete_entity("A"), *entity("B")])

    assert plain(replay.content().graph())[0] == [("A", "t", [])]
    assert replay.tail is not None
    assert replay.tail.start == replay.end == len(mcpmem.frame(entity("A"), 2))


def test_a_transaction_that_never_ended_does_not_swallow_the_next_one() -> None:
    replay = replayed([BEGIN, *entity("A"), BEGIN, *entity("B"), COMMIT, *entity("C"), COMMIT])

    assert [name for name, *_ in plain(replay.content().graph())[0]] == ["B", "C"]
    assert [(one.start, one.reason) for one in replay.bad] == [(0, "a transaction that was never committed")]
    assert replay.tail is None


def test_a_damaged_transaction_adds_and_takes_nothing_away() -> None:
    """A merge whose first record is struck must not delete the entity whose facts that record carried."""
    merge = [BEGIN, *mcpmem.add_observations("B", ["one"]), relation("B", "C"), mcpmem.delete_entity("A"), COMMIT]
    start = mcpmem.frame([*entity("A", "one"), *entity("B"), relation("A", "C")], 2)
    data = bytearray(start + mcpmem.frame(merge, 2))
    data[len(start) + 9 + 10] ^= 1  # in the payload of the second record
    replay = Replay(AT)
    replay.run(mcpmem.scan(bytes(data), 0, 2), 0)

    assert plain(replay.content().graph()) == (
        [("A", "t", ["one"]), ("B", "t", [])],
        {("A", "r", "C"), ("B", "r", "C")},
    )
    assert [one.reason for one in replay.bad] == [
        "its checksum is wrong",
        "it takes something away, in a transaction that is damaged",
    ]


def test_what_is_told_of_an_unknown_entity_is_kept_aside() -> None:
    replay = replayed([*entity("A"), *mcpmem.add_observations("B", ["lost otherwise"])])

    assert [one.reason for one in replay.bad] == ["it adds to an entity that is not there"]


def test_an_entity_written_anew_in_a_transaction_keeps_its_place_and_its_relations_theirs() -> None:
    records = [*entity("A", "1", "2", "3"), *entity("B"), *entity("C"), relation("A", "B"), relation("B", "C")]
    before = replayed(records).content().graph()
    anew = [
        BEGIN,
        mcpmem.delete_entity("A"),
        *entity("A", "2", "3", "4", entity_type="u"),
        relation("A", "B"),
        COMMIT,
    ]
    after = replayed(records + anew).content().graph()

    assert plain(after)[0] == [("A", "u", ["2", "3", "4"]), ("B", "t", []), ("C", "t", [])]
    assert [seen.id for seen in after["A"].observations] == [2, 3, 4]
    assert list(after.relations.values()) == list(before.relations.values())
    left_out = replayed([*records, *anew[:3], COMMIT]).content().graph()
    assert plain(left_out)[1] == {("B", "r", "C")}


# ── over a graph that knows the beginning ────────────────────────────────────────────────────────

NAMES = st.sampled_from("ABCD")
TEXTS = st.lists(st.sampled_from(["one", "two", "three"]), max_size=3)
RECORD: st.SearchStrategy[list[Record]] = st.one_of(
    st.builds(mcpmem.create_entity, NAMES, st.sampled_from("tu"), TEXTS),
    st.builds(lambda one, other: [relation(one, other)], NAMES, NAMES),
    st.builds(mcpmem.add_observations, NAMES, TEXTS),
    st.builds(lambda name: [mcpmem.delete_entity(name)], NAMES),
    st.builds(mcpmem.delete_observations, NAMES, TEXTS),
    st.builds(lambda one, other: [mcpmem.delete_relation(one, other, "r")], NAMES, NAMES),
    st.builds(
        lambda name, kind, texts, other: [
            BEGIN,
            mcpmem.delete_entity(name),
            *mcpmem.create_entity(name, kind, texts),
            relation(name, other),
            COMMIT,
        ],
        NAMES,
        st.sampled_from("tu"),
        TEXTS,
        NAMES,
    ),
)
RECORDS = st.lists(RECORD, max_size=8).map(lambda groups: [record for group in groups for record in group])


@given(RECORDS, RECORDS)
@settings(max_examples=300, deadline=None)
def test_reading_on_is_reading_from_the_start(known: list[Record], news: list[Record]) -> None:
    graph = replayed(known).content().graph()
    replay = replayed(news, graph)
    graph.apply([Entry(1, AT, replay.changes)])

    whole_file = replayed(known + news)
    graph.seq = 0
    assert list(differences(graph, whole_file.content().graph())) == []
    assert list(contradictions(graph)) == []
    assert len(replayed(known).bad) + len(replay.bad) == len(whole_file.bad)


@given(RECORDS, RECORDS)
@settings(max_examples=150, deadline=None)
def test_known_facts_are_recognised_in_a_file_written_anew(known: list[Record], news: list[Record]) -> None:
    graph = replayed(known).content().graph()
    anew = replayed(whole(replayed(known + news).content().graph())).content()
    entities, relations = plain(anew.graph())
    after = recognised(anew, graph).graph()

    assert plain(after)[1] == relations
    assert sorted(plain(after)[0]) == sorted(entities)
    assert list(contradictions(after)) == []
    for one in after.by_id.values():
        twin = graph.named(one.name)
        if twin is not None and twin.is_placeholder == one.is_placeholder:
            assert one.id == twin.id
        else:
            assert one.id >= graph.next_entity
    assert list(differences(recognised(replayed(known).content(), graph).graph(), graph)) == []


# ── from changes to records and back ─────────────────────────────────────────────────────────────

BASE: list[AnyChange] = [
    EntityCreated(1, "Ada", "t", first=1, texts=["one", "two", "one"]),
    EntityCreated(2, "Bob", "t", first=4, texts=["three", "one"]),
    EntityCreated(3, "Eve", "t"),
    EntityCreated(4, "who", "Generic", PLACEHOLDER),
    RelationCreated(1, 1, 2, "knows"),
    RelationCreated(2, 2, 3, "knows"),
    RelationCreated(3, 4, 3, "saw"),
]
ADA = Entity(1, "Ada", "other", "activo", AT, AT, [Observation(1, "again", AT), Observation(2, "again", AT)])

HAPPENINGS: dict[str, list[AnyChange]] = {
    "an entity gets another type": [EntityAltered(1, "u")],
    "an entity gets another type and learns": [ObservationsAdded(1, 6, ["six"]), EntityAltered(1, "u")],
    "a new entity gets another type": [EntityCreated(5, "New", "t", first=6, texts=["x"]), EntityAltered(5, "u")],
    "an entity is active, as before": [EntityAltered(1, status="activo")],
    "an entity comes back": [EntityDeleted(1), EntityRestored(ADA)],
    "a relation comes back with another type": [RelationDeleted(1), RelationRestored(Relation(1, 1, 2, "met", AT))],
    "a relation gets other ends": [RelationRepointed(1, 3, 1)],
    "an entity is absorbed": [ObservationsMoved(2, 1, [4]), RelationRepointed(2, 1, 3), EntityAbsorbed(2, 1)],
    "an older observation moves in between": [ObservationsMoved(1, 2, [2])],
    "a text moves to where it is": [ObservationsMoved(1, 2, [3])],
    "one copy of a text goes": [ObservationsDeleted(1, [1])],
    "every copy of a text goes": [ObservationsDeleted(1, [1, 3])],
    "two equal texts come at once": [ObservationsAdded(2, 6, ["new", "new"])],
    "a text comes that is there": [ObservationsAdded(2, 6, ["three"])],
    "an observation comes back": [ObservationsDeleted(1, [2]), ObservationRestored(1, Observation(2, "two", AT))],
    "a placeholder becomes an entity and something else": [
        EntityCreated(5, "who", "t", fills=4),
        EntityAltered(5, "u"),
    ],
    "a placeholder goes with its relation": [RelationDeleted(3), EntityDeleted(4)],
    "a placeholder goes with its entity": [EntityDeleted(3), EntityDeleted(4)],
    "a placeholder takes its relations with it": [EntityDeleted(4)],
    "something comes and goes": [EntityCreated(5, "Dan", "t"), RelationCreated(4, 5, 1, "saw"), EntityDeleted(5)],
    "nothing is added and nothing goes": [ObservationsAdded(1, 6, []), ObservationsDeleted(1, [])],
}


@pytest.mark.parametrize("changes", HAPPENINGS.values(), ids=HAPPENINGS)
def test_the_records_say_what_the_changes_made(changes: list[AnyChange]) -> None:
    graph = Graph()
    graph.apply([Entry(1, AT, BASE)])
    records = whole(graph)
    scribe = Scribe(graph)
    scribe.write(changes)
    graph.apply([Entry(2, AT, changes)])

    content = replayed(records + mcpmem.transaction(scribe.records)).content()
    after = content.graph()
    assert plain(after)[1] == plain(graph)[1]
    assert sorted(plain(after)[0]) == sorted(plain(graph)[0])
    assert list(differences(recognised(content, graph).graph(), after_seq(graph))) == []


def after_seq(graph: Graph) -> Graph:
    graph.seq = 0
    return graph
