"""The file says what its document says: tables, columns, defaults, indexes and pragmas, and who may open it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.stores.sqlite import schema
from mcp_memory.stores.sqlite.connection import connect, load_vectors
from mcp_memory.stores.sqlite.queries import read_sql
from mcp_memory.stores.sqlite.vectors import bring_vectors
from mcp_memory.stores.store import StoreDamaged, StoreFault
from tests.stores.predecessor import vector
from tests.stores.schema_reading import flat, rows, statements

DOCUMENT = Path(__file__).parent.parent / "golden" / "documented_schema.sql"
# What the document does not know. Each is ours alone, and nothing documented depends on it.
OURS = {"change", "change_subject", "gone_entity", "idx_gone_entity_name", "space_state", "idx_obs_supersedes"}
NEXT = schema.VERSION + 1


@pytest.fixture
def new(database: Path) -> Path:
    """A file in which nothing is known yet."""
    space = open_space(database)
    space.graph()
    space.close()
    return database


@pytest.fixture
def live(new: Path) -> Iterator[apsw.Connection]:
    with closing(connect(str(new), "normal")) as connection:
        yield connection


def documented() -> dict[str, str]:
    found = re.findall(r"^CREATE[^;]+", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    named = (re.match(r"CREATE (?:VIRTUAL )?(?:TABLE|INDEX) (?:IF NOT EXISTS )?(\w+)", sql) for sql in found)
    return {name[1]: flat(sql) for name, sql in zip(named, found, strict=True) if name}


# ── the document ─────────────────────────────────────────────────────────────────────────────────


def test_a_new_file_has_exactly_the_documented_schema_and_what_is_ours(new: Path) -> None:
    found = statements(new)

    assert len(documented()) == 29  # 15 tables and 14 indexes
    assert {name: sql for name, sql in found.items() if name not in OURS} == documented()
    assert found.keys() - documented().keys() == OURS


@pytest.mark.parametrize(
    ("table", "given", "expected"),
    [
        ("entities", {"name": "e"}, {"entity_type": "Generic", "status": "activo"}),
        (
            "observations",
            {"entity_id": 1, "content": "o"},
            {"kind": "generic", "supersedes": None, "superseded_at": None, "similarity_flag": 0},
        ),
        (
            "relations",
            {"from_entity": 1, "to_entity": 1, "relation_type": "r"},
            {"context": None, "active": 1, "ended_at": None},
        ),
        ("entity_access", {"entity_id": 1}, {"access_count": 1}),
        ("entity_access_log", {"entity_id": 1, "access_date": "2026-01-01"}, {"access_count": 1}),
        ("co_occurrences", {"entity_a_id": 1, "entity_b_id": 1}, {"co_count": 1}),
        (
            "reflections",
            {"target_type": "global", "content": "c"},
            {"author": "sofia", "mood": None, "target_id": None},
        ),
    ],
)
def test_what_plain_sql_leaves_out_gets_its_documented_default(
    table: str, given: dict[str, Any], expected: dict[str, Any], live: apsw.Connection
) -> None:
    live.execute("insert or ignore into entities (id, name) values (1, 'first')")
    live.execute(f"insert into {table} ({', '.join(given)}) values ({', '.join('?' * len(given))})", (*given.values(),))

    stored = live.execute(f"select {', '.join(expected)} from {table} order by rowid desc limit 1").fetchall()[0]
    assert dict(zip(expected, stored, strict=True)) == expected


@pytest.mark.parametrize("column", ["entities.updated_at", "entity_access.last_access", "co_occurrences.last_co"])
def test_times_default_to_now_in_utc(column: str, live: apsw.Connection) -> None:
    table, name = column.split(".")
    live.execute("insert into entities (id, name) values (1, 'first')")
    live.execute("insert into entity_access (entity_id) values (1)")
    live.execute("insert into co_occurrences (entity_a_id, entity_b_id) values (1, 1)")

    assert live.execute(f"select abs(julianday('now') - julianday({name})) < 0.001 from {table}").get == 1


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("busy_timeout", 10_000),
        ("synchronous", 1),
        ("cache_size", -64_000),
        ("temp_store", 2),
        ("foreign_keys", 1),
        ("checkpoint_fullfsync", 1),
    ],
)
def test_every_connection_has_the_documented_pragmas(pragma: str, value: Any, live: apsw.Connection) -> None:
    assert live.execute(f"pragma {pragma}").get == value


def test_with_sync_a_commit_waits_until_the_drive_has_it(tmp_path: Path) -> None:
    with closing(connect(str(tmp_path / "memory.db"), "sync")) as connection:
        assert [connection.execute(f"pragma {pragma}").get for pragma in ("synchronous", "fullfsync")] == [2, 1]


def test_deleting_an_entity_takes_everything_of_it_along(live: apsw.Connection) -> None:
    live.execute("insert into entities (id, name) values (1, 'a'), (2, 'b')")
    live.execute("insert into observations (entity_id, content) values (1, 'o')")
    live.execute("insert into relations (from_entity, to_entity, relation_type) values (1, 2, 'r'), (2, 1, 'r')")
    live.execute("insert into co_occurrences (entity_a_id, entity_b_id) values (1, 2)")
    live.execute("delete from entities where id = 1")

    left = [live.execute(f"select count(*) from {table}").get for table in ("observations", "relations")]
    assert left == [0, 0]
    assert live.execute("select count(*) from co_occurrences").get == 0


# ── what the indexes are for ─────────────────────────────────────────────────────────────────────


def test_the_planner_finds_active_observations_by_their_own_index(live: apsw.Connection) -> None:
    question = "select content from observations where entity_id = ? and superseded_at is null"
    plan = live.execute(f"explain query plan {question}", (1,)).fetchall()

    assert "idx_obs_entity_superseded (entity_id=? AND superseded_at=?)" in str(plan)


def steps_of_a_deletion(connection: apsw.Connection) -> int:
    """How many steps SQLite's machine takes to delete one observation."""
    taken = []

    def note(event: dict[str, Any]) -> None:
        taken.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
    connection.execute("delete from observations where id = 5")
    connection.trace_v2(0, None)
    return int(taken[0])


@pytest.mark.parametrize("indexed", [True, False])
def test_deleting_an_observation_does_not_look_at_the_others(indexed: bool, live: apsw.Connection) -> None:
    if not indexed:  # the test itself: without our index they are all looked at
        live.execute("drop index idx_obs_supersedes")
    live.execute("insert into entities (id, name) values (1, 'a')")
    steps = []
    for count in (10, 1000):
        live.execute("delete from observations")
        with live:
            live.executemany(
                "insert into observations (id, entity_id, content) values (?, 1, 'o')", ((i,) for i in range(count))
            )
        steps.append(steps_of_a_deletion(live))

    assert (steps[1] < steps[0] + 50) == indexed


# ── strangers, newer files, older files ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "belongs", ["create table recipes (id integer)", "create table change (id integer)", "create table entities (id)"]
)
def test_a_database_of_another_program_is_refused_and_left_byte_for_byte(belongs: str, database: Path) -> None:
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute(belongs)
    before = database.read_bytes()

    space = open_space(database)
    with pytest.raises(StoreDamaged, match="some other program"):
        space.graph()
    space.close()

    assert database.read_bytes() == before
    assert [file.name for file in database.parent.iterdir()] == [database.name]


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(new: Path) -> None:
    with closing(apsw.Connection(str(new))) as connection:
        connection.execute("update db_metadata set value = ? where key = 'schema_version'", (str(NEXT),))
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    before = new.read_bytes()

    space = open_space(new)
    with pytest.raises(StoreFault, match=rf"newer mcp-memory \(schema {NEXT}, this one knows {schema.VERSION}\)"):
        space.graph()
    space.close()

    assert new.read_bytes() == before


@pytest.fixture
def two_versions_on(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Pretend that there are two versions more, with a second step that says this."""
    upgrades = dict(schema.UPGRADES)

    def two_versions_on(step: str) -> None:
        steps = {"one.sql": "create table second (x); insert into second values (2)", "two.sql": step}
        monkeypatch.setattr(schema, "VERSION", NEXT + 1)
        monkeypatch.setattr(schema, "UPGRADES", {**upgrades, NEXT: "one.sql", NEXT + 1: "two.sql"})
        monkeypatch.setattr(
            schema, "read_sql", lambda folder, name: steps[name] if name in steps else read_sql(folder, name)
        )

    return two_versions_on


def version(path: Path) -> str:
    return str(dict(rows(path, "db_metadata", "key", "value"))["schema_version"])


def test_an_older_file_of_ours_is_brought_forward_step_by_step(
    new: Path, two_versions_on: Callable[[str], None]
) -> None:
    two_versions_on("alter table second rename to third")
    space = open_space(new)
    assert [finding.text for finding in space.check()] == []
    space.close()

    assert (version(new), rows(new, "third", "x", "1")) == (str(NEXT + 1), [(2, 1)])


def test_a_new_file_starts_at_the_newest_version(database: Path, two_versions_on: Callable[[str], None]) -> None:
    two_versions_on("alter table second rename to third")
    space = open_space(database)
    space.graph()
    space.close()

    assert (version(database), "third" in statements(database)) == (str(NEXT + 1), True)


def test_a_step_that_fails_leaves_the_file_at_its_version(new: Path, two_versions_on: Callable[[str], None]) -> None:
    two_versions_on("create table third (x); insert into nowhere values (1)")
    space = open_space(new)
    with pytest.raises(StoreFault, match="nowhere"):
        space.graph()
    space.close()

    assert version(new) == str(NEXT - 1)
    assert statements(new).keys().isdisjoint({"second", "third"})


# ── vector tables ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("missing", ["entity_embeddings", "reflection_embeddings"])
def test_a_vector_table_that_is_missing_is_made_when_sqlite_vec_is_there(missing: str, new: Path) -> None:
    whole = statements(new)
    with closing(apsw.Connection(str(new))) as connection:
        load_vectors(connection)
        connection.execute(f"drop table {missing}")
    space = open_space(new)
    assert [finding.text for finding in space.check()] == []
    space.close()

    assert statements(new) == whole


def test_vectors_of_another_size_keep_their_size_when_the_metric_changes(live: apsw.Connection) -> None:
    load_vectors(live)
    live.execute("drop table reflection_embeddings")
    live.execute("create virtual table reflection_embeddings using vec0(embedding float[8])")
    live.execute("insert into reflection_embeddings (rowid, embedding) values (3, ?)", (vector(1)[:32],))
    with live:
        bring_vectors(live)

    assert live.execute("select rowid, embedding from reflection_embeddings").fetchall() == [(3, vector(1)[:32])]
    sql = live.execute("select sql from sqlite_master where name = 'reflection_embeddings'").get
    assert "float[8] distance_metric=cosine" in sql
