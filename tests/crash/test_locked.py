"""Another program keeps the file locked: reads go on, a write waits, and gives up in plain words after a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from mcp_memory.stores.sqlite import connection, store
from tests.conftest import Caller
from tests.conftest import Refused as Failed
from tests.crash.harness import Refused, Server, names_in


@contextmanager
def held(path: Path, how: str) -> Iterator[apsw.Connection]:
    """A plain SQLite program in the middle of a transaction of its own."""
    other = apsw.Connection(str(path))
    try:
        other.set_busy_timeout(5000)
        other.execute(f"begin {how}")
        yield other
    finally:
        other.close()


@pytest.mark.parametrize("how", ["immediate", "exclusive"])
def test_a_write_waits_for_a_lock_of_seconds_while_reads_go_on(how: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Server(path) as writer:
        writer.call("create_entities", entities=[{"name": "Ada"}])
        with held(path, how) as other, Server(path) as reader:
            began = time.monotonic()
            bob = writer.send("create_entities", entities=[{"name": "Bob"}])
            assert reader.call("open_nodes", names=["Ada", "Bob"])["entities"][0]["name"] == "Ada"
            looked = time.monotonic() - began
            threading.Timer(3.0, other.close).start()
            writer.outcome(bob)
            waited = time.monotonic() - began
            assert [one["name"] for one in reader.call("read_graph")["entities"]] == ["Ada", "Bob"]
        assert writer.close()[0] == 0

    assert looked < 3.0 <= waited
    assert names_in(path) == ["Ada", "Bob"]


def test_a_write_gives_up_after_fifteen_seconds_and_the_next_one_goes_through(tmp_path: Path) -> None:
    """With the real patience, and with a lock that keeps everybody out: it takes as long as it says."""
    path = tmp_path / "memory.db"
    with Server(path) as server:
        server.call("create_entities", entities=[{"name": "Ada"}])
        with held(path, "exclusive"):
            began = time.monotonic()
            with pytest.raises(Refused, match="locked by another program") as refused:
                server.call("create_entities", entities=[{"name": "Bob"}])
            waited = time.monotonic() - began
            assert [one["name"] for one in server.call("read_graph")["entities"]] == ["Ada"]
        server.call("create_entities", entities=[{"name": "Cy"}])
        assert server.close()[0] == 0

    assert refused.value.retryable and "again" in str(refused.value)
    assert waited > 14
    assert names_in(path) == ["Ada", "Cy"]


def test_a_lock_that_stays_is_told_about_and_costs_nothing(keep: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (connection, store):
        monkeypatch.setattr(module, "BUSY_MILLISECONDS", 100)
    monkeypatch.setattr(store, "DEADLINE_SECONDS", 0.5)
    path = Path(keep.space.store.path)  # type: ignore[attr-defined]
    keep("create_entities", entities=[{"name": "Ada"}])
    keep.space.close()
    with held(path, "immediate"):
        answer = keep.desk.call(keep.desk.tools["create_entities"], b'{"entities":[{"name":"Bob"}]}')
        assert answer.is_error
        assert answer.text is not None and '"code":"store_busy","retryable":true' in answer.text
        assert "locked by another program" in keep.refusal("create_entities", entities=[{"name": "Bob"}])
        with pytest.raises(Failed):
            keep("get_entity", name="Bob")
        assert keep("get_entity", name="Ada")["name"] == "Ada"

    keep("create_entities", entities=[{"name": "Bob"}])
    assert names_in(path) == ["Ada", "Bob"]
