"""What raw SQL and crashes left in a database of the predecessor: kept where it can be, written down where not,
and never a reason to fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.graph import Graph
from mcp_memory.stores.sqlite.schema import VERSION
from tests.stores.predecessor import ROWS, SHAPES, build, fill, lay
from tests.stores.schema_reading import reading, rows, statements
from tests.stores.test_adoption import adopted

Spoil = Callable[..., None]


@pytest.fixture
def spoil(database: Path) -> Spoil:
    """A full database of the predecessor's last shape, and statements on it without any rule in force."""
    build(database)

    def spoil(*spoiling: str, **values: Any) -> None:
        with closing(apsw.Connection(str(database))) as connection:
            for statement in spoiling:
                connection.execute(statement, values or None)

    return spoil


def leftovers(path: Path) -> list[tuple[str, dict[str, Any]]]:
    with reading(path) as connection:
        found = connection.execute("select table_name, row_json from adoption_leftovers").fetchall()
    return [(str(table), json.loads(str(row))) for table, row in found]


@contextmanager
def graph_of(path: Path) -> Iterator[Graph]:
    with adopted(path) as space:
        yield space.graph()


# ── rows that no rule allows ─────────────────────────────────────────────────────────────────────


def test_an_orderly_database_has_no_leftovers(database: Path) -> None:
    build(database)
    with adopted(database):
        pass

    assert "adoption_leftovers" not in statements(database)


def test_rows_that_belong_to_nothing_are_written_down_and_taken_out(spoil: Spoil, database: Path) -> None:
    spoil(
        "insert into observations (id, entity_id, content) values (50, 77, 'of nobody')",
        "insert into relations (id, from_entity, to_entity, relation_type) values (51, 77, 1, 'r'), (52, 1, 77, 'r')",
        "insert into entity_access (entity_id, access_count) values (77, 3)",
        "insert into entity_access_log values (77, '2025-01-01', 3)",
        "insert into co_occurrences (entity_a_id, entity_b_id) values (1, 77), (77, 90)",
        "insert into search_results (event_id, entity_id, entity_name, rank) values (77, 1, 'Ada', 1)",
        "insert into implicit_feedback (event_id, entity_id) values (77, 1)",
    )

    with graph_of(database) as graph:
        assert (graph.observation_count, graph.relation_count) == (3, 3)
    kept = leftovers(database)
    assert [table for table, _ in kept] == [
        "observations", "relations", "relations", "entity_access", "entity_access_log", "co_occurrences",
        "co_occurrences", "search_results", "implicit_feedback",
    ]  # fmt: skip
    assert kept[0][1]["content"] == "of nobody"
    assert kept[0][1].keys() == ROWS["observations"][0].keys()


def test_an_observation_that_supersedes_a_row_long_gone_stays_without_the_link(spoil: Spoil, database: Path) -> None:
    spoil("update observations set supersedes = 888 where id = 9")

    with graph_of(database) as graph:
        assert [seen.supersedes for seen in graph["Ada"].observations] == [None, 1, None]
    assert [row["supersedes"] for _, row in leftovers(database)] == [888]


def test_an_observation_superseded_by_an_orphan_stays_superseded(spoil: Spoil, database: Path) -> None:
    spoil("update observations set entity_id = 77 where id = 4")

    with graph_of(database) as graph:
        seen = graph["Ada"].observations
        assert [(one.id, one.supersedes, one.superseded_at) for one in seen] == [
            (1, None, "2025-02-01 00:00:00"),
            (9, None, None),
        ]
    assert [row["id"] for _, row in leftovers(database)] == [4, 9]


def test_a_relation_ended_without_a_time_ended_when_it_was_created(spoil: Spoil, database: Path) -> None:
    spoil("update relations set ended_at = null where id = 4")

    with graph_of(database) as graph:
        assert graph.relations[4].ended_at == graph.relations[4].created_at
    assert rows(database, "relations", "id", "ended_at")[2] == (4, "2025-01-05 10:00:00")


def test_an_active_relation_with_an_end_is_active(spoil: Spoil, database: Path) -> None:
    spoil("update relations set ended_at = '2025-05-05 00:00:00' where id = 1")

    with graph_of(database) as graph:
        assert graph.relations[1].is_active
    assert [row["ended_at"] for _, row in leftovers(database)] == ["2025-05-05 00:00:00"]


@pytest.mark.parametrize(("active", "is_active"), [(2, True), (-1, True), ("yes", False), ("1x", True)])
def test_an_odd_mark_of_activity_means_what_sql_takes_it_for(
    active: Any, is_active: bool, spoil: Spoil, database: Path
) -> None:
    spoil("update relations set active = :active where id = 1", active=active)

    with graph_of(database) as graph:
        assert graph.relations[1].is_active == is_active
    assert [row["active"] for _, row in leftovers(database)] == [active]


def test_a_status_of_ours_gets_a_mark_so_that_the_entity_stays_visible(spoil: Spoil, database: Path) -> None:
    spoil("update entities set status = 'placeholder' where id = 6")

    with graph_of(database) as graph:
        assert graph["empty"].status == "placeholder_"
    assert [row["status"] for _, row in leftovers(database)] == ["placeholder"]


def test_names_that_we_would_refuse_today_are_kept(spoil: Spoil, database: Path) -> None:
    spoil("update entities set name = :name where id = 6", name="n" * 5000)
    spoil("update entities set name = '', entity_type = '' where id = 5")

    with graph_of(database) as graph:
        assert graph["n" * 5000].id == 6
        assert graph[""].entity_type == ""


def test_texts_of_any_length_are_kept(spoil: Spoil, database: Path) -> None:
    spoil("update observations set content = :text where id = 9", text="ñ" * 3_000_000)

    with graph_of(database) as graph:
        assert graph["Ada"].texts() == ["ñ" * 3_000_000]


def test_a_text_stored_as_bytes_becomes_text(spoil: Spoil, database: Path) -> None:
    spoil("update observations set content = :text where id = 9", text="agua ñ".encode())

    with graph_of(database) as graph:
        assert graph["Ada"].texts() == ["agua ñ"]
    assert leftovers(database)[0][1]["content"] == {"blob_hex": "agua ñ".encode().hex()}


def test_what_is_no_text_is_kept_as_far_as_it_is_one(spoil: Spoil, database: Path) -> None:
    spoil("update observations set content = cast(:text as text) where id = 9", text=b"agua \xff\xed\xa0\x80!")
    spoil("update entities set name = :name where id = 6", name="no\0thing")

    with graph_of(database) as graph:
        assert graph["Ada"].texts() == ["agua \ufffd\ufffd\ufffd\ufffd!"]
        assert graph["no\ufffdthing"].id == 6
    assert [row.get("content") or row["name"] for _, row in leftovers(database)] == [
        "no\0thing",
        {"text_hex": b"agua \xff\xed\xa0\x80!".hex()},
    ]


def test_two_names_that_become_the_same_text_stay_two_entities(spoil: Spoil, database: Path) -> None:
    spoil("update entities set name = :name where id = 6", name=b"Ada")

    with graph_of(database) as graph:
        assert (graph["Ada"].id, graph["Ada #6"].id) == (1, 6)


def test_numbers_that_are_none_become_what_sql_takes_them_for(spoil: Spoil, database: Path) -> None:
    spoil("update observations set similarity_flag = 'x' where id = 9")
    spoil("update reflections set target_id = 'session-7' where id = 1")

    with graph_of(database) as graph:
        assert graph["Ada"].observations[-1].similarity_flag == 0
        assert graph.reflections[1].target_id is None
    assert [row.get("similarity_flag", row.get("target_id")) for _, row in leftovers(database)] == ["x", "session-7"]


def test_ids_below_one_are_ids(spoil: Spoil, database: Path) -> None:
    spoil(
        "insert into entities (id, name) values (0, 'zero'), (-5, 'minus five')",
        "insert into observations (id, entity_id, content) values (-7, -5, 'deep')",
        "insert into relations (id, from_entity, to_entity, relation_type) values (0, -5, 0, 'above')",
    )

    with graph_of(database) as graph:
        assert graph["minus five"].texts() == ["deep"]
        assert [relation.target for relation in graph.relations_of(-5)] == [0]


def test_keys_of_ours_that_somebody_used_make_way(spoil: Spoil, database: Path) -> None:
    spoil("insert into db_metadata values ('schema_version', 'v2.3'), ('space_id', 'mine')")

    with adopted(database):
        pass
    metadata = dict(rows(database, "db_metadata", "key", "value"))
    assert metadata["schema_version"] == str(VERSION) and metadata["space_id"] != "mine"
    assert leftovers(database) == [
        ("db_metadata", {"key": "schema_version", "value": "v2.3"}),
        ("db_metadata", {"key": "space_id", "value": "mine"}),
    ]


def test_relation_types_of_old_stay_as_they_were_written(spoil: Spoil, database: Path) -> None:
    """The predecessor rewrote two of them at each start. A fact is not ours to reword."""
    spoil("update relations set relation_type = 'continua' where id = 6")

    with graph_of(database) as graph:
        assert graph.relations[6].relation_type == "continua"


# ── tables, columns, views and triggers that somebody added ──────────────────────────────────────


@pytest.mark.parametrize("shape", SHAPES)
def test_columns_that_somebody_added_stay_with_what_is_in_them(shape: str, database: Path) -> None:
    with closing(lay(database, shape)) as connection:
        connection.execute("alter table entities add column colour text default 'grey' check (colour <> 'beige')")
        connection.execute("alter table relations add column weight real")
        connection.execute("alter table observations add column size integer as (length(content))")
        fill(connection)
        connection.execute("update entities set colour = 'red' where id = 2; update relations set weight = 0.5")

    with graph_of(database) as graph:
        assert [entity.name for entity in graph.entities()] == [row["name"] for row in ROWS["entities"]]
        assert len(graph.relations) == 4
    assert rows(database, "entities", "id", "colour") == [(1, "grey"), (2, "red"), (5, "grey"), (6, "grey")]
    assert {weight for _, weight in rows(database, "relations", "id", "weight")} == {0.5}
    assert rows(database, "observations", "id", "size")[0] == (1, 9)
    assert {"status"} <= set(columns_of(database, "entities"))


def test_a_space_with_added_columns_can_be_written(database: Path) -> None:
    from tests.conftest import Caller

    with closing(lay(database, "first")) as connection:
        connection.execute("alter table observations add column note text")
        fill(connection)

    with adopted(database) as space:
        Caller(space)("add_observations", name="Ada", observations=["new"], kind="decision")
        assert [finding.text for finding in space.check()] == []


def columns_of(path: Path, table: str) -> list[str]:
    with reading(path) as connection:
        return [str(name) for (name,) in connection.execute("select name from pragma_table_xinfo(?)", (table,))]


def test_tables_views_indexes_and_triggers_of_others_stay_and_work(spoil: Spoil, database: Path) -> None:
    spoil(
        "create table notes (entity_id integer references entities(id), note text)",
        "insert into notes values (1, 'mine')",
        "create view people as select e.name, n.note from entities e join notes n on n.entity_id = e.id",
        "create view broken as select missing from nowhere",
        "create table log (name text)",
        "create trigger logged after insert on entities begin insert into log values (new.name); end",
        "create trigger guarded before delete on observations begin select raise(abort, 'never'); end",
        "create index by_time on observations(created_at)",
        "create unique index by_lower_name on entities(lower(name))",
    )
    before = statements(database)
    ours = {"notes", "people", "broken", "log", "logged", "guarded", "by_time", "by_lower_name"}

    with adopted(database) as space:
        from tests.conftest import Caller

        after = statements(database)
        Caller(space)("create_entities", entities=[{"name": "Zoe"}])
        space.settle()

    assert {name: after.get(name) for name in ours} == {name: before[name] for name in ours}
    assert rows(database, "people", "name", "note") == [("Ada", "mine")]
    assert rows(database, "log", "name", "1") == [("Zoe", 1)]


def test_triggers_do_not_mistake_the_adoption_for_somebodys_changes(spoil: Spoil, database: Path) -> None:
    spoil(
        "create table log (what text)",
        "create trigger a after insert on observations begin insert into log values ('insert'); end",
        "create trigger b after update on observations begin insert into log values ('update'); end",
        "create trigger c after delete on observations begin insert into log values ('delete'); end",
        "create trigger d after delete on entity_access begin insert into log values ('access'); end",
        "update observations set supersedes = 888 where id = 9; delete from log",
        "insert into entity_access (entity_id) values (77)",
    )
    with adopted(database):
        pass

    assert rows(database, "log", "what", "1") == []
    assert {"a", "b", "c", "d"} <= statements(database).keys()


def test_an_index_of_a_documented_name_gets_its_documented_columns(spoil: Spoil, database: Path) -> None:
    spoil("drop index idx_obs_entity; create index idx_obs_entity on observations(content)")
    with adopted(database):
        pass

    assert "entity_id" in statements(database)["idx_obs_entity"]


def test_a_table_in_the_way_of_ours_is_told_and_nothing_changes(spoil: Spoil, database: Path) -> None:
    spoil("create table space_state (mine text)")
    before = statements(database)
    space = open_space(database)

    with pytest.raises(Exception, match=r"space_state already exists.*Nothing was changed"):
        space.graph()
    space.close()
    assert statements(database) == before
    assert list(database.parent.glob("*backup*")) == []
