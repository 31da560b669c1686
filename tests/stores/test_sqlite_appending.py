"""A plan is made before the lock is taken; what others wrote meanwhile is never overlooked."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.changes import Entry
from mcp_memory.space import Space
from mcp_memory.stores.sqlite import SqliteStore
from tests.conftest import Caller


def between_plan_and_write(space: Space, monkeypatch: pytest.MonkeyPatch, happens: object) -> None:
    """Let something happen after the next plan was made and before it is written."""
    store = space.store
    assert isinstance(store, SqliteStore)
    append = store.append

    def later(entry: Entry) -> bool:
        monkeypatch.setattr(store, "append", append)
        assert callable(happens)
        happens()
        return append(entry)

    monkeypatch.setattr(store, "append", later)


def test_a_plan_that_was_overtaken_is_made_anew(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = open_space(database), open_space(database)
    call, call_other = Caller(one), Caller(other)
    call("create_entities", entities=[{"name": "Ada"}])
    call_other("read_graph")
    between_plan_and_write(
        one,
        monkeypatch,
        lambda: call_other("create_entities", entities=[{"name": "Bob", "observations": ["sings"]}]),
    )

    call("create_entities", entities=[{"name": "Bob", "observations": ["plays chess"]}])

    assert call("open_nodes", names=["Bob"])["entities"][0]["observations"] == ["sings", "plays chess"]
    assert one.check() == [] and other.check() == []


def test_a_plan_that_finds_the_file_locked_waits_as_every_write(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = open_space(database)
    call = Caller(space)
    call("create_entities", entities=[{"name": "Ada"}])
    holder = apsw.Connection(str(database))
    between_plan_and_write(space, monkeypatch, lambda: holder.execute("begin immediate"))
    waited = []

    def let_go(seconds: float, so_far: float) -> bool:
        waited.append(holder.in_transaction)
        holder.execute("rollback")
        return True

    monkeypatch.setattr("mcp_memory.space.pause", let_go)

    call("add_observations", name="Ada", observations=["is patient"])

    assert waited == [True]
    assert call("get_entity", name="Ada")["observations"] == ["is patient"]
    assert space.check() == []


def test_what_changes_nothing_does_not_need_the_lock(database: Path) -> None:
    space = open_space(database)
    call = Caller(space)
    call("create_entities", entities=[{"name": "Ada", "observations": ["sings"]}])
    space.settle()
    holder = apsw.Connection(str(database))
    holder.execute("begin immediate")

    assert call("add_observations", name="Ada", observations=["sings"])["entity"]["observations"] == ["sings"]

    holder.execute("rollback")
    assert space.check() == []
