"""What is searched for, shown and used leaves its traces, and the ranking goes by what was used."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.search.usage import SOON
from mcp_memory.space import Space
from tests.conftest import Caller, link, person

TWINS = ("Ada", "Bob", "Eve")


class Tables:
    """The tables of a memory, wherever its store keeps those of usage."""

    def __init__(self, memory_file: Path) -> None:
        beside = memory_file.with_name(memory_file.name + "-usage")
        self.path = memory_file if memory_file.suffix == ".db" else beside

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    def by_name(self, column: str, table: str) -> dict[str, Any]:
        return dict(self.rows(f"select name, {column} from {table} t join entities e on e.id = t.entity_id"))


class Clock:
    """Now, or as much later as a test says."""

    def __init__(self) -> None:
        self.later = 0.0

    def __call__(self) -> float:
        return time.time() + self.later


@pytest.fixture
def tables(memory_file: Path) -> Tables:
    return Tables(memory_file)


@pytest.fixture
def clock(space: Space, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(space.usage, "_clock", clock)
    return clock


@pytest.fixture
def twins(call: Caller, clock: Clock) -> Caller:
    """Three people of whom the same is known, so that only habit can tell them apart."""
    call("create_entities", entities=[*(person(name, "plays the violin") for name in TWINS), person("Zoe", "cooks")])
    return call


def shown(call: Caller, query: str = "who plays the violin", **more: Any) -> list[str]:
    return [row["name"] for row in call("search_semantic", query=query, **more)["results"]]


def settled(call: Caller) -> None:
    call.space.settle()


# ── what is recorded ─────────────────────────────────────────────────────────────────────────────


def test_what_is_shown_is_recorded_as_documented(twins: Caller, tables: Tables) -> None:
    assert shown(twins) == shown(twins) == list(TWINS)
    settled(twins)

    assert tables.by_name("access_count", "entity_access") == dict.fromkeys(TWINS, 2)
    today = tables.rows("select date('now')")[0][0]
    assert tables.rows("select access_date, access_count from entity_access_log") == [(today, 2)] * 3
    assert all(tables.rows("select last_access >= datetime('now', '-1 minute') from entity_access"))
    pairs = "select entity_a_id < entity_b_id, co_count from co_occurrences"
    assert tables.rows(pairs) == [(1, 2)] * 3


def test_a_search_is_logged_with_both_of_its_orders(twins: Caller, tables: Tables) -> None:
    shown(twins)
    twins("open_nodes", names=["Eve"])
    assert shown(twins, limit=2) == ["Eve", "Ada"]
    settled(twins)

    events = tables.rows(
        "select query_text, query_hash, treatment, k_limit, num_results, duration_ms from search_events"
    )
    assert [event[0] for event in events] == ["who plays the violin"] * 2
    assert events[0][1] == events[1][1] and len(events[0][1]) == 32
    assert events[0][2] == events[1][2] and events[0][2] in (0, 1)
    assert [(limit, count) for *_, limit, count, _ in events] == [(10, 3), (2, 2)]
    assert all(0 <= duration < 60_000 for *_, duration in events)
    ranks = tables.rows("select event_id, entity_name, rank, baseline_rank from search_results order by 1, 3")
    assert ranks == [(1, "Ada", 1, 1), (1, "Bob", 2, 2), (1, "Eve", 3, 3), (2, "Eve", 1, 3), (2, "Ada", 2, 1)]
    parts = tables.rows("select limbic_score, importance, temporal, cooc_boost from search_results")
    assert all(score > 0 and 0 <= value and 0 < age <= 1 and 0 <= boost for score, value, age, boost in parts)


@pytest.mark.parametrize("query", ["who plays the violin", "violin players", "¿quién toca el violin?"])
def test_the_same_query_always_belongs_to_the_same_arm_and_is_answered_alike(
    twins: Caller, tables: Tables, query: str
) -> None:
    assert len({tuple(shown(twins, query)) for _ in range(5)}) == 1
    settled(twins)

    assert len(tables.rows("select distinct treatment from search_events")) == 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("open_nodes", {"names": ["Bob"]}),
        ("get_entity", {"name": "Bob"}),
        ("batch_get_entities", {"names": ["Bob"]}),
        ("describe_entity", {"name": "Bob"}),
        ("get_neighbors", {"name": "Bob"}),
        ("add_observations", {"name": "Bob", "observations": ["plays in Porto"]}),
        ("add_observations", {"observations": [{"entityName": "Bob", "contents": ["plays in Porto"]}]}),
        ("create_relations", {"relations": [link("Bob", "knows", "Zoe")]}),
        ("create_entities", {"entities": [person("Bob", "plays in Porto")]}),
        ("upsert_entities", {"entities": [person("Bob", "plays in Porto")]}),
    ],
)
def test_whatever_is_done_with_a_result_soon_after_is_its_use(
    twins: Caller, tables: Tables, clock: Clock, tool: str, arguments: dict[str, Any]
) -> None:
    shown(twins)
    clock.later += 42
    twins(tool, **arguments)
    settled(twins)

    assert tables.by_name("use_count", "entity_use") == {"Bob": 1}
    feedback = tables.rows("select event_id, re_accessed, access_delta, session_id from implicit_feedback")
    assert feedback == [(1, 1, 42, "test")]


def test_use_counts_once_for_each_search(twins: Caller, tables: Tables) -> None:
    shown(twins)
    for _ in range(3):
        twins("get_entity", name="Bob")
    shown(twins)
    twins("get_entity", name="Bob")
    settled(twins)

    assert tables.by_name("use_count", "entity_use") == {"Bob": 2}
    assert tables.rows("select event_id from implicit_feedback") == [(1,), (2,)]


def test_what_was_not_shown_or_is_opened_late_or_by_another_is_no_use(
    twins: Caller, tables: Tables, clock: Clock
) -> None:
    shown(twins)
    twins("get_entity", name="Zoe")
    twins.desk.call(twins.desk.tools["get_entity"], b'{"name":"Bob"}', origin="somebody else")
    twins.refusal("get_entity", name="Nobody")
    clock.later += SOON + 1
    twins("get_entity", name="Ada")
    settled(twins)

    assert tables.rows("select * from entity_use") == tables.rows("select * from implicit_feedback") == []


def test_what_is_used_after_the_same_search_keeps_company(twins: Caller, tables: Tables) -> None:
    shown(twins)
    twins("open_nodes", names=["Bob", "Eve"])
    settled(twins)

    assert tables.rows("select co_count from co_use") == [(1,)]
    row = next(row for row in twins("search_semantic", query="violin")["results"] if row["name"] == "Bob")
    assert row["scoring"]["cooc_boost"] == 1.0


# ── what the ranking makes of it ─────────────────────────────────────────────────────────────────


def test_being_shown_is_no_merit(twins: Caller) -> None:
    """The first of equals is shown alone a hundred times; a machine that liked what it shows would be stuck with it."""
    for _ in range(100):
        assert shown(twins, limit=1) == ["Ada"]
    row = twins("search_semantic", query="violin")["results"][0]

    assert row["scoring"] == {"importance": 0, "temporal_factor": 1, "cooc_boost": 0, "echo": 0}


def test_what_was_used_stands_above_its_equals_at_once(twins: Caller) -> None:
    shown(twins)
    twins("get_entity", name="Eve")

    assert shown(twins) == ["Eve", "Ada", "Bob"]
    assert shown(twins, "somebody with a violin") == ["Eve", "Ada", "Bob"]


def test_what_a_question_led_to_comes_back_with_it_in_other_words_and_order(twins: Caller) -> None:
    shown(twins, "who cooks or plays the violin in the evening")
    twins("get_entity", name="Zoe")
    row = {row["name"]: row for row in twins("search_semantic", query="evening: violin played, cooking?")["results"]}

    assert row["Zoe"]["scoring"]["echo"] > 0.3
    assert row["Ada"]["scoring"]["echo"] == 0
    other = {row["name"]: row for row in twins("search_semantic", query="who cooks")["results"]}
    assert other["Zoe"]["scoring"]["echo"] == 0


def test_an_exact_name_is_found_first_whatever_else_is_used(twins: Caller) -> None:
    twins("create_entities", entities=[person("violin", "an instrument of four strings")])
    for _ in range(30):
        shown(twins, "violin")
        twins("open_nodes", names=list(TWINS))

    assert shown(twins, "violin")[0] == "violin"
    assert shown(twins, "VIOLÍN")[0] == "violin"


def test_archived_entities_stand_behind_their_equals(keep: Caller) -> None:
    keep("create_entities", entities=[{**person("Ada", "plays chess"), "status": "archivado"}])
    keep("create_entities", entities=[person("Bob", "plays chess")])

    assert shown(keep, "chess") == ["Bob", "Ada"]


# ── how long it lasts ────────────────────────────────────────────────────────────────────────────


def test_use_outlives_the_process(twins: Caller, memory_file: Path) -> None:
    shown(twins, "who has a violin")
    twins("open_nodes", names=["Eve", "Bob"])
    before = twins("search_semantic", query="who has a violin")["results"]
    twins.space.close()

    again = open_space(memory_file)
    after = Caller(again)("search_semantic", query="who has a violin")["results"]
    again.close()
    assert [row["name"] for row in after] == [row["name"] for row in before] == ["Bob", "Eve", "Ada"]
    for key in ("importance", "cooc_boost", "echo"):
        assert [row["scoring"][key] for row in after] == [row["scoring"][key] for row in before]


@pytest.fixture
def other(memory_file: Path) -> Iterator[Caller]:
    """Another process on the same file, as far as the store can tell."""
    space = open_space(memory_file)
    yield Caller(space)
    space.close()


def test_two_processes_count_together_and_learn_from_each_other(twins: Caller, other: Caller, tables: Tables) -> None:
    for _ in range(3):
        for caller in (twins, other):
            shown(caller)
            caller("get_entity", name="Bob")
            settled(caller)
    shown(other, "the violin")  # what the others wrote is noticed when something is written
    settled(other)

    assert tables.by_name("use_count", "entity_use") == {"Bob": 6}
    assert tables.rows("select count(*) from search_events") == [(7,)]
    counts = {call.space.usage.view().uses["Bob"].count for call in (twins, other)}
    assert 6 in counts


def test_a_deleted_entity_takes_its_use_with_it(twins: Caller, tables: Tables) -> None:
    shown(twins)
    twins("open_nodes", names=["Bob", "Eve"])
    settled(twins)
    twins("delete_entities", entityNames=["Bob"])
    twins("create_entities", entities=[person("Bob", "plays the violin")])
    row = {row["name"]: row for row in twins("search_semantic", query="who plays the violin")["results"]}
    settled(twins)

    assert row["Bob"]["scoring"] == {"importance": 0, "temporal_factor": 1, "cooc_boost": 0, "echo": 0}
    assert row["Eve"]["scoring"]["cooc_boost"] == 0
    assert tables.by_name("use_count", "entity_use") == {"Eve": 1}
    assert tables.by_name("access_count", "entity_access")["Bob"] == 1
    assert tables.rows("select count(*) from co_use") == [(0,)]


def test_a_merged_entity_passes_its_use_on(twins: Caller, tables: Tables, memory_file: Path) -> None:
    for name in ("Bob", "Eve"):
        shown(twins)
        twins("open_nodes", names=["Ada", name])
    settled(twins)
    twins("merge_entities", source="Bob", target="Eve")
    in_memory = twins.space.usage.view()
    settled(twins)
    again = open_space(memory_file)
    on_disk = again.usage.view()
    again.close()

    for habits in (in_memory, on_disk):
        assert {name: use.count for name, use in habits.uses.items()} == {"Ada": 2, "Eve": 2}
        assert {name: one.count for name, one in habits.company_of("Eve").items()} == {"Ada": 2}
        assert habits.echoes.of("who plays the violin") == {"Ada": 2 / 3, "Eve": 2 / 3}
    assert tables.by_name("access_count", "entity_access") == {"Ada": 2, "Eve": 4}
    assert tables.rows("select count(*) from implicit_feedback f join entities e on e.id = f.entity_id") == [(4,)]


def test_usage_of_a_memory_that_nobody_searches_is_never_made(call: Caller, tables: Tables, memory_file: Path) -> None:
    call("create_entities", entities=[person("Ada"), person("Bob")])
    call("merge_entities", source="Ada", target="Bob")
    call("delete_entities", entityNames=["Bob"])
    settled(call)

    if tables.path == memory_file:
        assert tables.rows("select count(*) from sqlite_master where name = 'entity_use'") == [(0,)]
    else:
        assert not tables.path.exists()


# ── the log ──────────────────────────────────────────────────────────────────────────────────────


def test_the_log_keeps_the_newest_searches(memory_file: Path, tables: Tables) -> None:
    space = open_space(memory_file, query_log=5)
    call = Caller(space)
    call("create_entities", entities=[person("Ada", "plays the violin")])
    for number in range(30):
        shown(call, f"violin {number}")
        call("get_entity", name="Ada")
        if number % 7 == 0:
            settled(call)
    settled(call)
    space.close()

    assert tables.rows("select query_text from search_events") == [(f"violin {number}",) for number in range(25, 30)]
    for table in ("search_results", "search_base", "implicit_feedback"):
        assert tables.rows(f"select count(*), min(event_id) from {table}") == [(5, 26)]
    assert tables.by_name("use_count", "entity_use") == {"Ada": 30}


def test_without_a_query_log_use_is_counted_and_no_query_is_written(memory_file: Path, tables: Tables) -> None:
    space = open_space(memory_file, query_log=0)
    call = Caller(space)
    call("create_entities", entities=[person("Ada", "plays the violin")])
    shown(call, "my secret violin")
    call("get_entity", name="Ada")
    settled(call)
    space.close()

    assert tables.by_name("use_count", "entity_use") == {"Ada": 1}
    for table in ("search_events", "search_results", "implicit_feedback"):
        assert tables.rows(f"select count(*) from {table}") == [(0,)]
    written = b"".join(file.read_bytes() for file in memory_file.parent.iterdir() if file.is_file())
    assert b"secret" not in written


def test_a_query_is_written_into_search_events_and_nowhere_else(twins: Caller, tables: Tables) -> None:
    shown(twins, "violin xyzzy")
    twins("get_entity", name="Ada")
    settled(twins)

    names = [name for (name,) in tables.rows("select name from sqlite_master where type = 'table'")]
    holding = [
        name
        for name in names
        if "embeddings" not in name and any("xyzzy" in str(row) for row in tables.rows(f"select * from {name}"))
    ]
    assert holding == ["search_events"]


def test_a_read_only_space_ranks_by_use_and_writes_nothing(twins: Caller, tables: Tables, memory_file: Path) -> None:
    shown(twins)
    twins("get_entity", name="Eve")
    settled(twins)
    events = tables.rows("select count(*) from search_events")
    reader = open_space(memory_file, keeps_usage=False)

    assert shown(Caller(reader)) == ["Eve", "Ada", "Bob"]
    Caller(reader)("get_entity", name="Bob")
    reader.settle()
    reader.close()
    assert tables.rows("select count(*) from search_events") == events


# ── the constants ────────────────────────────────────────────────────────────────────────────────


def test_tuned_constants_count_from_the_next_search_on(twins: Caller, other: Caller) -> None:
    from mcp_memory.stores.usage import usage_of

    shown(twins)
    twins("get_entity", name="Eve")
    settled(twins)
    assert shown(twins, "the violin") == ["Eve", "Ada", "Bob"]
    usage_of(other.space.store).tune({"beta_sal": 0.0, "age_reach": 0.0, "echo_reach": 0.0})

    assert shown(twins, "the violin") == ["Ada", "Bob", "Eve"]


@pytest.mark.parametrize("value", ["", "many", "-1", "nan", "inf", "1e300"])
def test_a_constant_that_is_no_sensible_number_is_passed_over(twins: Caller, tables: Tables, value: str) -> None:
    shown(twins)
    settled(twins)
    connection = apsw.Connection(str(tables.path))
    for name in ("gamma", "beta_sal", "d_max", "temporal_floor", "habit_reach"):
        connection.execute("insert or replace into db_metadata (key, value) values (?, ?)", (name, value))
    connection.close()

    assert shown(twins) == list(TWINS)
    assert twins.space.usage.constants() == type(twins.space.usage.constants())()


def test_a_file_beside_that_somebody_is_just_making_is_no_file_yet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Between its making and the commit of its tables there is a database without tables."""
    space = open_space(tmp_path / "memory.jsonl")
    call = Caller(space)
    call("create_entities", entities=[person("Ada", "likes tea")])
    (tmp_path / "memory.jsonl-usage").write_bytes(b"")

    assert call("search_semantic", query="tea")["results"]

    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == []
    space.close()
