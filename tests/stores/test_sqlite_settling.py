"""Projections and checkpoints in quiet moments, several of which may come at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.changes import EntityCreated, Plan, RelationCreated
from mcp_memory.facts import PLACEHOLDER
from mcp_memory.stores import passagemap
from mcp_memory.stores.sqlite import store
from tests.conftest import Caller


def test_two_threads_may_settle_and_checkpoint_at_once(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHECKPOINT_BYTES", 0)
    space = open_space(database)
    call = Caller(space)
    written = threading.Event()

    def settle() -> int:
        rounds = 0
        while not written.is_set() or not rounds:
            space.store.settle()
            rounds += 1
        return rounds

    with ThreadPoolExecutor(3) as threads:
        settling = [threads.submit(settle) for _ in range(3)]
        for number in range(20):
            call(
                "create_entities", entities=[{"name": f"{number}.{i}", "observations": ["x" * 900]} for i in range(30)]
            )
        written.set()

    assert all(each.result() for each in settling)
    space.settle()
    assert space.check() == []
    space.close()


def test_a_placeholder_is_filled_whatever_names_its_memory_holds(keep: Caller) -> None:
    """A name with a NUL cannot come in through a call, but an older version let one in from a file."""
    strange = [
        EntityCreated(1, "ghost\0", "t"),
        EntityCreated(2, "3", "t"),
        EntityCreated(3, "ghost", "t", PLACEHOLDER),
    ]
    keep.space.commit(lambda graph: Plan([*strange, RelationCreated(1, 1, 3, "sees")]))
    keep("create_entities", entities=[{"name": "ghost", "observations": ["boo"]}])
    keep.space.settle()

    assert keep.space.store.behind() == 0
    assert keep("search_relations")["relations"] == [
        {"id": 1, "from": "ghost\0", "to": "ghost", "relationType": "sees"}
    ]


@pytest.mark.parametrize("what", ["snapshot", "passages"])
def test_what_is_written_while_something_long_is_made_for_the_next_start_still_reaches_the_disk_in_time(
    what: str, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LARGE", 1)
    monkeypatch.setattr(store, "LONGEST_UNFLUSHED", 0.0)
    monkeypatch.setattr(passagemap, "LARGE", 1)
    space = open_space(database, model="none")
    space._settler._tidy = lambda: None
    call = Caller(space)
    home = space.store
    assert isinstance(home, store.SqliteStore)
    call("create_entities", entities=[{"name": f"P{n}", "observations": ["said something"]} for n in range(50)])
    call("search_semantic", query="what was said")
    space.settle()
    monkeypatch.setattr(space._settler, "wake", lambda: None)  # nobody else brings anything to the disk
    flushed: list[int] = []
    flush = home._file.flush

    def counted() -> None:
        flushed.append(1)
        flush()

    monkeypatch.setattr(home._file, "flush", counted)
    breath = store.SqliteStore.give_way
    breaths: list[int] = []

    def busy(self: store.SqliteStore) -> None:
        call("add_observations", name="P1", observations=[f"and then {len(breaths)}"])
        before = len(flushed)
        breath(self)
        breaths.append(len(flushed) - before)

    monkeypatch.setattr(store.SqliteStore, "give_way", busy)
    if what == "snapshot":
        home._snapshot_seq = -1
        home._take_snapshot()
    else:
        space.graph()._passages = None
        call("search_semantic", query="what was said")
        space._keep_passages()

    assert breaths and all(breaths)
    space.close()
