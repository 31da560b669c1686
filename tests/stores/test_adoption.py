"""Every shape in which the Python predecessor left a database becomes a space, with everything in it."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.facts import Entity, Observation, Reflection, Relation
from mcp_memory.graph import Graph
from mcp_memory.space import CHANGES_PER_ENTRY, Space
from mcp_memory.stores.sqlite.schema import VERSION
from tests.stores.predecessor import LAST_IDS, ROWS, SHAPES, Row, build, fill, held, insert, lay, rows_of, vector
from tests.stores.schema_reading import reading, rows, statements

USAGE = (
    "entity_access",
    "entity_access_log",
    "co_occurrences",
    "search_events",
    "search_results",
    "implicit_feedback",
)


@contextmanager
def adopted(path: Path) -> Iterator[Space]:
    """The space that a file becomes; nothing may be wrong with it, nor with what a second open finds."""
    for _ in range(2):
        space = open_space(path)
        assert [finding.text for finding in space.check()] == []
        space.close()
    space = open_space(path)
    yield space
    space.close()


def known(path: Path) -> dict[str, list[Row]]:
    """What this database was given, by table."""
    with reading(path) as connection:
        return {table: rows_of(connection, table) for table in held(connection)}


def told(content: dict[str, list[Row]]) -> Graph:
    """The graph that these rows tell, with the documented default wherever a column did not exist yet."""
    graph = Graph()
    for row in content["entities"]:
        observations = [
            Observation(
                seen["id"],
                seen["content"],
                seen["created_at"],
                seen.get("kind", "generic"),
                seen.get("supersedes"),
                seen.get("superseded_at"),
                seen.get("similarity_flag", 0),
            )
            for seen in content["observations"]
            if seen["entity_id"] == row["id"]
        ]
        graph.insert(Entity(**{"status": "activo", **row, "observations": observations}))
    for row in content["relations"]:
        ends = (row["from_entity"], row["to_entity"], row["relation_type"])
        graph.keep(Relation(row["id"], *ends, row["created_at"], row.get("context"), row.get("ended_at")))
    for row in content.get("reflections", []):
        graph.remember(Reflection(**row))
    return graph


# ── every shape ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", SHAPES)
def test_every_fact_of_every_shape_is_there_as_it_was(shape: str, database: Path) -> None:
    build(database, shape)
    expected = told(known(database))

    with adopted(database) as space:
        graph = space.graph()
        assert list(graph.by_id.values()) == list(expected.by_id.values())
        assert list(graph.relations.values()) == list(expected.relations.values())
        assert list(graph.reflections.values()) == list(expected.reflections.values())


@pytest.mark.parametrize("shape", SHAPES)
def test_the_schema_of_every_shape_becomes_that_of_a_new_file(shape: str, database: Path, tmp_path: Path) -> None:
    build(database, shape)
    with adopted(database):
        pass
    new = tmp_path / "new.db"
    with adopted(new):
        pass

    assert statements(database) == statements(new)


@pytest.mark.parametrize("shape", SHAPES)
def test_usage_trials_and_tuned_values_of_every_shape_stay_as_they_were(shape: str, database: Path) -> None:
    build(database, shape)
    before = known(database)
    with adopted(database):
        pass

    for table in USAGE:
        given = before.get(table, [])
        names = list(ROWS[table][0])
        assert rows(database, table, *names) == [tuple(row[name] for name in names) for row in given]
    tuned = {(row["key"], row["value"]) for row in before["db_metadata"]}
    after = {key: value for key, value in rows(database, "db_metadata", "key", "value") if key != "space_id"}
    assert set(after.items()) == tuned | {("schema_version", str(VERSION))}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_vector_stays_and_is_compared_by_cosine(shape: str, database: Path) -> None:
    build(database, shape)
    before = known(database)
    with adopted(database):
        pass

    for table in ("entity_embeddings", "reflection_embeddings"):
        given = [(row["rowid"], row["embedding"]) for row in before.get(table, [])]
        assert rows(database, table, "rowid", "embedding") == given
    with reading(database) as connection:
        for table in ("entity_embeddings", "reflection_embeddings"):
            nearest = f"select distance from {table} where embedding match ? and k = 1"
            # Twice as long, same direction: only the cosine calls that the same.
            for rowid, embedding in connection.execute(f"select rowid, embedding from {table}").fetchall():
                longer = connection.execute("select vec_add(?, ?)", (embedding, embedding)).get
                assert rowid and abs(connection.execute(nearest, (longer,)).get) < 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_no_id_is_given_again_not_even_that_of_a_row_deleted_last(shape: str, database: Path) -> None:
    build(database, shape)
    with reading(database) as connection:
        before = dict(connection.execute("select name, seq from sqlite_sequence where name in (?, ?, ?, ?, ?)",
                                         tuple(LAST_IDS)))  # fmt: skip

    with adopted(database) as space:
        graph = space.graph()
        with reading(database) as connection:
            after = dict(connection.execute("select name, seq from sqlite_sequence"))

    assert {table: after[table] for table in before} == before == {table: LAST_IDS[table] for table in before}
    assert (graph.next_entity, graph.next_observation, graph.next_relation) == (91, 901, 81)


# ── what the state becomes ───────────────────────────────────────────────────────────────────────


def test_the_feed_begins_with_the_whole_state_and_is_projected(database: Path) -> None:
    build(database)

    with adopted(database) as space:
        feed = list(space.store.feed() or ())
        replayed = Graph()
        replayed.apply(feed)
        assert {entry.tool for entry in feed} == {"adopt"}
        assert list(replayed.by_id.values()) == list(space.graph().by_id.values())
        assert space.store.behind() == 0
        end = feed[-1].seq
        state = dict(rows(database, "space_state", "key", "value"))
        assert (state["feed_floor"], state["projected_seq"]) == (end, end)


def test_a_large_state_becomes_several_entries(database: Path) -> None:
    with closing(lay(database)) as connection, connection:
        for entity in (1, 2, 3):
            insert(connection, "entities", {"id": entity, "name": f"e{entity}"})
            connection.executemany(
                "insert into observations (entity_id, content) values (?, ?)",
                [(entity, f"o{number}") for number in range(CHANGES_PER_ENTRY // 2)],
            )

    with adopted(database) as space:
        feed = list(space.store.feed() or ())
        assert [(entry.seq, entry.part, len(entry.changes)) for entry in feed] == [(1, 0, 1), (2, 1, 1), (3, 2, 1)]
        assert space.graph().observation_count == CHANGES_PER_ENTRY // 2 * 3


def test_stale_full_text_is_made_again_from_the_facts(database: Path) -> None:
    build(database)
    with adopted(database):
        pass

    assert rows(database, "entity_fts", "rowid", "name", "entity_type", "obs_text") == [
        (1, "Ada", "Persona", "likes\nwater 水"),
        (2, "Proyecto Ñandú 🦤", "Proyecto", 'empezó en enero | con "comillas"'),
        (5, "Sesion: 2025-01-03", "Sesion", ""),
        (6, "empty", "Generic", ""),
    ]
    assert rows(database, "reflection_fts", "rowid", "content") == [
        (row["id"], row["content"]) for row in ROWS["reflections"]
    ]


def test_an_adopted_space_goes_on_where_the_predecessor_stopped(database: Path) -> None:
    from tests.conftest import Caller

    build(database)
    with adopted(database) as space:
        call = Caller(space)
        call("add_observations", name="Ada", observations=["likes milk"])
        call("create_relations", relations=[{"from": "Ada", "to": "empty", "relationType": "knows"}])

        assert [seen.id for seen in space.graph()["Ada"].observations] == [1, 4, 9, 901]
        assert max(space.graph().relations) == 81
        assert [finding.text for finding in space.check()] == []


def test_an_empty_database_of_the_predecessor_becomes_an_empty_space(database: Path) -> None:
    lay(database).close()

    with adopted(database) as space:
        assert space.graph().seq == 0
        assert list(space.graph().by_id) == []


def test_a_file_is_adopted_once(database: Path) -> None:
    build(database)
    with adopted(database):
        pass

    assert len(list(database.parent.glob("*.backup"))) == 1


# ── without sqlite-vec ───────────────────────────────────────────────────────────────────────────


def test_without_sqlite_vec_the_vectors_wait_untouched_until_it_is_there(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(database)
    with monkeypatch.context() as patched:
        patched.setattr(importlib.util, "find_spec", lambda name: None)
        with adopted(database) as space:
            assert list(space.graph().by_id.values()) == list(told(ROWS).by_id.values())
        assert "cosine" not in statements(database)["reflection_embeddings"]

    with adopted(database):
        assert "cosine" in statements(database)["reflection_embeddings"]
    assert rows(database, "reflection_embeddings", "rowid", "embedding") == [
        (row["rowid"], row["embedding"]) for row in ROWS["reflection_embeddings"]
    ]


def test_vectors_of_nothing_are_dropped(database: Path) -> None:
    with closing(lay(database)) as connection:
        fill(connection)
        insert(connection, "entity_embeddings", {"rowid": 77, "embedding": vector(1)})
        insert(connection, "reflection_embeddings", {"rowid": 78, "embedding": vector(2)})
    with adopted(database):
        pass

    assert [rowid for (rowid, _) in rows(database, "entity_embeddings", "rowid", "1")] == [1, 2, 5]
    assert [rowid for (rowid, _) in rows(database, "reflection_embeddings", "rowid", "1")] == [1, 2, 4]


# ── the builder itself ───────────────────────────────────────────────────────────────────────────


def test_the_shapes_differ_as_the_predecessor_differed(tmp_path: Path) -> None:
    """Each step leaves another schema, and none of them is ours."""
    found = []
    for number, shape in enumerate(SHAPES):
        lay(tmp_path / f"{number}.db", shape).close()
        found.append(statements(tmp_path / f"{number}.db"))

    assert all(one != other for one, other in pairwise(found))
    assert not any("change" in names for names in found)
    assert re.search(r"created_at.*status", found[-1]["entities"])  # a column that came later stands last
