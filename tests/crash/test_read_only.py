"""A file or a folder that may not be written is read, writes are refused in plain words, and both go on when it may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import STORES
from tests.crash.harness import Refused, Server, names_in
from tests.crash.places import forbidden, obedient


@pytest.fixture(params=STORES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "memory"
    folder.mkdir()
    path = folder / str(request.param)
    with Server(path) as server:
        server.call("create_entities", entities=[{"name": "Ada"}])
        server.close()
    yield path
    folder.chmod(0o755)


def names(server: Server) -> list[str]:
    return [one["name"] for one in server.call("read_graph")["entities"]]


def refusal(server: Server) -> Refused:
    with pytest.raises(Refused) as refused:
        server.call("create_entities", entities=[{"name": "Bob"}])
    assert names(server) == ["Ada"]
    return refused.value


def may_be_written_in_place(path: Path) -> bool:
    """A journal only grows: it asks nothing of its folder."""
    return path.suffix == ".mcpmem"


@pytest.mark.parametrize("what", ["file", "folder", "both"])
def test_what_may_not_be_written_is_read_and_written_again_as_soon_as_it_may(path: Path, what: str) -> None:
    places = {"file": [path], "folder": [path.parent], "both": [path, path.parent]}[what]
    with forbidden(*places), Server(path, command=obedient()) as server:
        assert names(server) == ["Ada"]
        if what != "folder" or not may_be_written_in_place(path):
            told = refusal(server)
            assert (told.code, told.retryable) == ("store_read_only", False)
            assert "may not be written" in str(told)
            assert refusal(server).code == "store_read_only"
        for place in places:
            place.chmod(0o755)
        server.call("create_entities", entities=[{"name": "Bob"}])
        assert names(server) == ["Ada", "Bob"]
        assert server.close()[0] == 0

    assert names_in(path) == ["Ada", "Bob"]


def test_writes_that_were_acknowledged_before_a_crash_are_read_where_nothing_may_be_written(path: Path) -> None:
    with Server(path) as server:
        server.call("create_entities", entities=[{"name": "Bob"}])
        server.kill()
    for beside in path.parent.iterdir():
        if beside.suffix.endswith("-shm"):
            beside.unlink()

    with forbidden(*path.parent.iterdir(), path.parent), Server(path, command=obedient()) as server:
        assert names(server) == ["Ada", "Bob"]


def test_a_reader_of_a_forbidden_folder_sees_what_others_write_there(path: Path) -> None:
    with forbidden(path, path.parent), Server(path, command=obedient()) as server:
        assert names(server) == ["Ada"]
        for place in (path, path.parent):
            place.chmod(0o755)
        with Server(path) as other:
            other.call("create_entities", entities=[{"name": "Bob"}])
            assert names(server) == ["Ada", "Bob"]


def test_a_memory_that_is_not_there_and_cannot_be_made_is_told_about(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with Server(tmp_path / "in" / "memory.db", command=obedient()) as server:
            with pytest.raises(Refused, match="cannot be made"):
                server.call("create_entities", entities=[{"name": "Ada"}])
            tmp_path.chmod(0o755)
            server.call("create_entities", entities=[{"name": "Ada"}])
    finally:
        tmp_path.chmod(0o755)

    assert names_in(tmp_path / "in" / "memory.db") == ["Ada"]
