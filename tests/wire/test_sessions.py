"""Two sessions of one client bear one name, and what one of them was shown is not used by the other."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from mcp_memory.assembly import open_space
from tests.conftest import Caller, person
from tests.wire.network import Web, real, running

NEWEST = "2025-11-25"


def opened(file: Path) -> list[tuple[Any, ...]]:
    """Who used what, as the log has it."""
    with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return connection.execute(
            "select e.name, f.session_id from implicit_feedback f join entities e on e.id = f.entity_id"
        ).fetchall()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    space = open_space(tmp_path / "memory.db")
    Caller(space)("create_entities", entities=[person("Ada", "plays the violin"), person("Bob", "violin maker")])
    space.close()
    return tmp_path / "memory.db"


def test_what_one_session_was_shown_another_of_the_same_client_does_not_use(file: Path) -> None:
    with running(real(file, "http", "--model", "none")) as server, Web(server) as one, Web(server) as other:
        one.shake_hands(NEWEST)
        other.shake_hands(NEWEST)
        one.call("search_semantic", query="who plays the violin")
        other.call("open_nodes", names=["Ada"])
        one.call("open_nodes", names=["Bob"])

    ((name, session),) = opened(file)
    assert name == "Bob" and " http 127.0.0.1 #" in session


def test_the_history_names_the_client_and_not_its_session(file: Path) -> None:
    with running(real(file, "http", "--model", "none")) as server, Web(server) as web:
        web.shake_hands(NEWEST)
        web.call("create_entities", entities=[person("Cy")])
        said = web.call("history", name="Cy").message["result"]["structuredContent"]

    assert " http 127.0.0.1" in repr(said) and " #" not in repr(said)
