"""Another file comes under the name of an open one: no acknowledged write goes where nobody looks any more."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.changes import EntityCreated, Plan
from mcp_memory.graph import Graph
from mcp_memory.stores.store import StoreBusy
from tests.crash.harness import Refused, Server, names_in


def memory_with(path: Path, *names: str) -> Path:
    with Server(path) as server:
        server.call("create_entities", entities=[{"name": name} for name in names])
        server.close()
    return path


def remember(server: Server, name: str) -> None:
    server.call("create_entities", entities=[{"name": name}])


def names(server: Server) -> list[str]:
    return [one["name"] for one in server.call("read_graph")["entities"]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return memory_with(tmp_path / "other.db", "other", "world")


@pytest.mark.parametrize("first", ["read", "write"])
def test_a_server_goes_on_in_the_file_that_bears_the_name(first: str, path: Path, other: Path) -> None:
    with Server(path) as server:
        remember(server, "Ada")
        os.replace(other, path)
        if first == "read":
            assert names(server) == ["other", "world"]
        remember(server, "Bob")
        server.kill()

    assert names_in(path) == ["other", "world", "Bob"]


def test_a_file_moved_away_takes_everything_with_it_that_was_written_to_it(path: Path, other: Path) -> None:
    away = path.with_name("away.db")
    with Server(path) as server:
        remember(server, "Ada")
        os.rename(path, away)
        os.rename(other, path)
        assert names(server) == ["other", "world"]

        assert names_in(away) == ["Ada"]
        assert server.close()[0] == 0
    assert names_in(path) == ["other", "world"]


def test_several_servers_meet_again_in_the_new_file(path: Path, other: Path) -> None:
    with Server(path) as one, Server(path) as two, Server(path) as three:
        remember(one, "Ada")
        assert names(two) == names(three) == ["Ada"]
        os.replace(other, path)
        remember(two, "from two")
        remember(one, "from one")
        remember(three, "from three")
        remember(two, "from two again")
        expected = ["other", "world", "from two", "from one", "from three", "from two again"]
        assert names(one) == names(two) == names(three) == expected
        for server in (one, two, three):
            server.kill()

    assert names_in(path) == expected


def test_a_server_that_only_ends_leaves_nothing_beside_the_new_file(path: Path, other: Path) -> None:
    with Server(path) as server:
        remember(server, "Ada")
        os.replace(other, path)
        assert server.close()[0] == 0

    assert [file.name for file in path.parent.iterdir()] == ["memory.db"]
    assert names_in(path) == ["other", "world"]


def test_a_removed_file_is_begun_anew(path: Path) -> None:
    with Server(path) as server:
        remember(server, "Ada")
        path.unlink()
        remember(server, "Bob")
        server.kill()

    assert names_in(path) == ["Bob"]


def test_a_damaged_file_is_left_behind_with_all_that_belongs_to_it(path: Path, other: Path) -> None:
    for number in range(20):
        memory_with(path, *(f"{number} {i}" for i in range(50)))
    with Server(path) as server:
        remember(server, "Ada")
        server.kill()
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with Server(path) as server:
        with pytest.raises(Refused):
            names(server)
        os.replace(other, path)
        remember(server, "Bob")
        server.kill()

    assert names_in(path) == ["other", "world", "Bob"]


def test_a_file_replaced_during_a_write_refuses_the_write(path: Path, other: Path) -> None:
    def planner(graph: Graph) -> Plan:
        if other.exists():
            os.replace(other, path)
        return Plan([EntityCreated(graph.next_entity, "Ada", "Thing")])

    memory_with(path, "before")
    space = open_space(path)
    with pytest.raises(StoreBusy, match="was replaced"):
        space.commit(planner)
    assert [one.name for one in space.graph().entities()] == ["other", "world"]
    space.commit(planner)
    assert [finding.text for finding in space.check()] == []
    space.close()

    assert names_in(path) == ["other", "world", "Ada"]


def test_a_copy_of_the_file_is_a_file_of_its_own(path: Path) -> None:
    with Server(path) as server:
        remember(server, "Ada")
        server.close()
        copy = path.with_name("copy.db")
        shutil.copyfile(path, copy)
    with Server(path) as server, Server(copy) as twin:
        remember(server, "Bob")
        os.replace(copy, path)
        remember(server, "Eve")
        remember(twin, "Zoe")
        server.kill()
        twin.kill()

    assert names_in(path) == ["Ada", "Eve"]
