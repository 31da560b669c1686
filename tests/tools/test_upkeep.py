"""Space is given back without losing a fact, in every store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.errand import Cancelled, Errand
from mcp_memory.space import Space
from mcp_memory.stores.journal import mcpmem
from mcp_memory.tools.registry import REGISTRY
from tests.conftest import Caller, link, person


def facts(call: Caller) -> Any:
    graph = call("read_graph")
    return graph["entities"], graph["relations"]


def test_compacting_loses_nothing_and_gives_back_space(call: Caller, memory_file: Path) -> None:
    for start in range(0, 300, 50):
        call("create_entities", entities=[person(f"{i}", "x" * 1000) for i in range(start, start + 50)])
    call("create_relations", relations=[link(f"{i}", "next", f"{i + 1}") for i in range(299)])
    for start in range(0, 250, 50):
        call("delete_entities", entityNames=[f"{i}" for i in range(start, start + 50)])
    before = facts(call)

    answer = call("compact")

    assert (answer["success"], answer["message"]) == (True, "Log compacted successfully")
    assert 0 < answer["bytesAfter"] <= answer["bytesBefore"]
    assert facts(call) == before
    assert len(before[0]) == 50
    assert call("compact")["bytesAfter"] == answer["bytesAfter"] == memory_file.stat().st_size


def test_after_compacting_ids_and_writing_go_on(call: Caller) -> None:
    call("create_entities", entities=[person("Ada"), person("Bob"), person("Cy")])
    call("create_relations", relations=[link("Ada", "knows", "Bob"), link("Bob", "knows", "Cy")])
    call("delete_entities", entityNames=["Ada"])

    call("compact")

    assert [relation["id"] for relation in call("search_relations")["relations"]] == [2]
    call("create_entities", entities=[person("Dee", "new")])
    assert call("get_entity", name="Dee") == person("Dee", "new")


def test_an_empty_memory_can_be_compacted(call: Caller) -> None:
    assert call("compact")["success"] is True
    assert facts(call) == ([], [])


def test_a_journal_of_version_1_is_said_to_leave_older_servers_behind(tmp_path: Path) -> None:
    path = tmp_path / "memory.mcpmem"
    path.write_bytes(mcpmem.MAGIC[1] + mcpmem.frame(mcpmem.create_entity("Ada", "Person", []), 1))
    space = open_space(path)
    call = Caller(space)

    assert "--journal-version 1" in call("compact")["note"]
    assert path.read_bytes().startswith(mcpmem.MAGIC[2])
    assert "note" not in call("compact")
    assert space.check() == []
    space.close()


def test_compacting_tells_that_it_began_and_can_be_called_off(space: Space) -> None:
    told: list[str] = []
    space.call(REGISTRY["compact"], (), errand=Errand(lambda done, total, message: told.append(message)))
    unwanted = Errand()
    unwanted.cancel()

    assert told[0] == "compacting"
    with pytest.raises(Cancelled):
        space.call(REGISTRY["compact"], (), errand=unwanted)


def test_a_database_that_is_written_anew_tells_how_far_it_is_and_may_be_called_off(
    sqlite_space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_memory.stores.sqlite.store.STEPS_BETWEEN_LOOKS", 100)
    call = Caller(sqlite_space)
    for start in range(0, 150, 50):
        call("create_entities", entities=[person(f"{i}", "x" * 1000) for i in range(start, start + 50)])
    before = facts(call)
    told: list[int] = []

    def look(done: int, total: int | None, message: str) -> None:
        told.append(done)
        if len(told) > 5:
            errand.cancel()

    errand = Errand(look)
    with pytest.raises(Cancelled):
        sqlite_space.call(REGISTRY["compact"], (), errand=errand)

    assert told[:6] == sorted(told[:6]) and len(told) == 6
    assert facts(call) == before
    call("create_entities", entities=[person("new")])
    assert call("compact")["success"] is True


def test_a_reader_elsewhere_neither_stops_compacting_nor_is_stopped(keep: Caller, database: Path) -> None:
    keep("create_entities", entities=[{"name": f"n{number}", "observations": ["x" * 500]} for number in range(50)])
    keep("delete_entities", entityNames=[f"n{number}" for number in range(40)])
    keep.space.store.settle()
    reader = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("begin")
    before = reader.execute("select count(*) from entities").get

    assert keep("compact")["success"] is True
    assert reader.execute("select count(*) from entities").get == before == 10
    reader.close()
    assert keep("compact")["bytesAfter"] == database.stat().st_size
