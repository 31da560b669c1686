"""What the doctor finds in a database that somebody has been at, and what of it can be repaired."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.facts import MemoryFault
from mcp_memory.safekeeping import back_up
from mcp_memory.server import main
from mcp_memory.stores.sqlite.connection import load_vectors
from tests.conftest import Caller, Refused, link, person
from tests.test_undo import facts


@pytest.fixture
def damaged(database: Path) -> Callable[[str], None]:
    """A memory with a past, in which somebody has run this SQL."""
    space = open_space(database)
    call = Caller(space)
    call("create_entities", entities=[person("Ada", "likes tea", "plays chess"), person("Bob")])
    call("create_relations", relations=[link("Ada", "knows", "Bob")])
    call("delete_observations", name="Ada", observations=["likes tea"])
    call("create_entities", entities=[person("Cy")])
    call("delete_entities", entityNames=["Cy"])
    space.close()

    def run(statement: str) -> None:
        with closing(apsw.Connection(str(database))) as connection:
            load_vectors(connection)
            connection.execute(statement)

    return run


def doctor(path: Path, *options: str) -> tuple[int, str]:
    import io
    from contextlib import redirect_stdout

    said = io.StringIO()
    with redirect_stdout(said):
        code = main(["-f", str(path), "doctor", *options])
    return code, said.getvalue()


REPAIRABLE = {
    "an observation was altered by hand": (
        "update observations set content = 'likes rum' where content = 'plays chess'",
        "the feed replayed differs from the store",
    ),
    "a relation was deleted by hand": ("delete from relations", "the feed replayed differs from the store"),
    "an entity is missing from full text": ("delete from entity_fts where rowid = 1", "stale full text"),
    "a row belongs to no entity": (
        "pragma foreign_keys = off; insert into observations (entity_id, content) values (99, 'lost')",
        "refers to a missing row of entities",
    ),
    "what stood before an entry was lost": (
        "update change set was = null where seq = 3",
        "what stood before is told wrongly: entry 3",
    ),
    "the index by entity lost a row": (
        "delete from change_subject where entity_id = 1 and seq = 3",
        "the index of the history by entity differs",
    ),
    "the index by entity knows too much": (
        "insert into change_subject values (2, 3)",
        "the index of the history by entity differs",
    ),
    "the name of who is gone was lost": ("delete from gone_entity", "1 entities of the history have no name"),
    "the tables are said to lag behind what they hold": (
        "update space_state set value = 1 where key = 'projected_seq'",
        "what follows from the feed cannot be read",
    ),
    "the full text was dropped": ("drop table entity_fts", "virtual table entity_fts is missing"),
    "a table of facts was dropped": (
        "pragma foreign_keys = off; drop table observations",
        "no such table: observations",
    ),
    "an index was dropped": ("drop index idx_rel_from", "index idx_rel_from is missing"),
    "the record of searches was dropped": ("drop table search_events", "table search_events is missing"),
    "what the file says of itself was lost": ("delete from db_metadata", "db_metadata does not say its schema_version"),
    "how far the tables are was lost": ("delete from space_state", "what follows from the feed cannot be read"),
    "a vector belongs to no entity": (
        "insert into entity_embeddings (rowid, embedding) values (77, zeroblob(1536))",
        "vectors belong to no entity",
    ),
}


@pytest.mark.parametrize("what", REPAIRABLE)
def test_what_follows_from_the_feed_is_found_and_repaired(
    what: str, damaged: Callable[[str], None], database: Path
) -> None:
    statement, told = REPAIRABLE[what]
    healthy = open_space(database)
    before = facts(healthy.graph())
    healthy.close()
    damaged(statement)

    code, said = doctor(database)
    assert (code, told in said, "What to do: doctor --repair" in said) == (1, True, True), said
    code, said = doctor(database, "--repair")
    assert (code, "repaired: " in said) == (0, True), said

    assert doctor(database) == (0, f"{database}: everything is as it should be.\n")
    mended = open_space(database)
    assert facts(mended.graph()) == before
    assert Caller(mended)("history", name="Cy")["calls"][0]["tool"] == "delete_entities"
    mended.close()


def test_a_copy_is_kept_before_tables_are_made_anew(damaged: Callable[[str], None], database: Path) -> None:
    damaged("update observations set content = 'written by hand'")

    assert doctor(database, "--repair")[0] == 0

    (copy,) = database.parent.glob("memory.db.before-repair-*.backup")
    with closing(apsw.Connection(str(copy))) as connection:
        assert connection.execute("select content from observations").get == "written by hand"


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("delete from change where seq = 3", "the feed is not in order: entry 4 follows entry 2"),
        ("update change set body = x'93' where seq = 3", "Entry 3 of this memory's history cannot be read"),
        ("update change set part = 1 where seq = 3", "call 2 has a piece that is of another call"),
        ("update change set part = 2 where seq = 3", "call 1 has piece 2 where piece 0 belongs"),
        ("update change set tool = cast(x'c8c8' as text) where seq = 3", "the entry after 2 cannot be read"),
        ("update change set body = 7 where seq = 3", "Entry 3 of this memory's history cannot be read"),
    ],
)
def test_a_damaged_feed_is_found_and_left_alone(
    statement: str, told: str, damaged: Callable[[str], None], database: Path
) -> None:
    damaged(statement)

    code, said = doctor(database, "--repair")

    assert (code, told in said, "mcp-memory restore FILE" in said) == (1, True, True), said
    assert list(database.parent.glob("*.backup")) == []


PLAIN = {"memory.jsonl": ("line 1 of", "run mcp-memory import"), "memory.mcpmem": ("bytes ", "what is not served")}


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_not_served_of_a_plain_file_is_told_and_moved_aside_when_asked(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    space = open_space(path)
    Caller(space)("create_entities", entities=[person("Ada", "likes tea")])
    Caller(space)("create_entities", entities=[person("Bob")])
    space.close()
    content = bytearray(path.read_bytes())
    content[20:28] = b"\xff\xff{garba"
    path.write_bytes(bytes(content))
    told, remedy = PLAIN[name]

    code, said = doctor(path)
    assert (code, told in said, f"{path}.quarantine" in said, remedy in said) == (1, True, True, True), said
    with pytest.raises(MemoryFault, match=r"is not in order: .*not served"):
        back_up(str(path))
    code, said = doctor(path, "--repair")
    assert (code, f"moved to {path}.quarantine: " in said, "repaired" in said) == (0, True, False), said
    assert "What to do: what is not served is kept in" in said

    assert doctor(path) == (0, f"{path}: everything is as it should be.\n")
    again = open_space(path)
    assert [one.name for one in again.graph().entities()] == ["Bob"]
    again.close()


def test_a_file_of_a_newer_version_asks_for_one(damaged: Callable[[str], None], database: Path) -> None:
    damaged("update db_metadata set value = '99' where key = 'schema_version'")

    code, said = doctor(database, "--repair")

    assert (code, "What to do: upgrade mcp-memory." in said, "restore" in said) == (1, True, False), said


def test_a_history_that_cannot_be_read_is_refused_in_words(damaged: Callable[[str], None], database: Path) -> None:
    damaged("update change set tool = cast(x'c8c8' as text) where seq = 3")
    space = open_space(database)

    with pytest.raises(Refused, match="is damaged"):
        Caller(space)("history")

    space.close()


def test_findings_come_as_json_for_a_program(damaged: Callable[[str], None], database: Path) -> None:
    damaged("delete from relations")

    code, said = doctor(database, "--json")
    found = json.loads(said)

    assert (code, found["ok"], found["file"]) == (1, False, str(database))
    assert {"text", "repaired", "remedy"} == set(found["findings"][0])
    assert json.loads(doctor(database, "--json", "--repair")[1])["ok"] is True
    assert json.loads(doctor(database, "--json")[1]) == {"file": str(database), "ok": True, "findings": []}
