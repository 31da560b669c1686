"""Another program keeps the file locked: reads go on, a write waits, and gives up in plain words after a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from tests.conftest import STORES, Caller
from tests.conftest import Refused as Failed
from tests.crash.harness import Gone, Refused, Server, locked, names_in


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
    monkeypatch.setattr(keep.space, "patience", 0.5)
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


@pytest.mark.parametrize("name", STORES)
def test_pings_are_answered_and_a_waiting_write_can_be_withdrawn(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with Server(path) as server:
        server.call("create_entities", entities=[{"name": "Ada"}])
        with locked(path):
            waiting = server.send("create_entities", entities=[{"name": "Bob"}])
            behind = server.send("read_graph")
            pings = [server.ping() for _ in range(3)]
            server.withdraw(waiting)
            told = server.outcome(behind)
        server.call("create_entities", entities=[{"name": "Cy"}])
        assert server.close()[0] == 0
        with pytest.raises(Gone):  # what was withdrawn gets no answer
            server.outcome(waiting)

    assert min(pings) < 1.0
    assert [one["name"] for one in told["entities"]] == ["Ada"]
    assert names_in(path) == ["Ada", "Cy"]


@pytest.mark.parametrize("name", STORES)
def test_a_write_that_waited_and_those_behind_it_come_through_in_their_order(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with Server(path) as server:
        server.call("create_entities", entities=[{"name": "Ada"}])
        with locked(path):
            asked = [server.send("create_entities", entities=[{"name": f"n{number}"}]) for number in range(5)]
            asked.append(server.send("read_graph"))
            server.ping()
        said = [server.outcome(one) for one in asked]
        assert server.close()[0] == 0

    assert [one["name"] for one in said[-1]["entities"]] == ["Ada", "n0", "n1", "n2", "n3", "n4"]
    assert names_in(path) == ["Ada", "n0", "n1", "n2", "n3", "n4"]


def test_a_new_file_that_another_program_holds_is_waited_for_without_deafness(tmp_path: Path) -> None:
    """Opening it has to write: its tables."""
    path = tmp_path / "memory.db"
    apsw.Connection(str(path)).execute("pragma user_version = 1")
    with Server(path) as server:
        with locked(path):
            first = server.send("create_entities", entities=[{"name": "Ada"}])
            pings = [server.ping() for _ in range(3)]
        server.outcome(first)
        assert server.close()[0] == 0

    assert min(pings) < 1.0
    assert names_in(path) == ["Ada"]
