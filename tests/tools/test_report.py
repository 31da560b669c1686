"""The report says what needs care, and neither it nor any analysis changes a byte."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from mcp_memory import care
from mcp_memory.assembly import open_space
from mcp_memory.changes import EntityRestored, ObservationFlagged, Plan
from mcp_memory.curation import curator
from mcp_memory.embedding.engine import Engine
from mcp_memory.facts import Entity, Observation
from mcp_memory.search.limbic import Use
from mcp_memory.search.times import seconds_of
from tests.conftest import Caller, person

LONG_AGO = "2020-02-29 23:59:59"


def restore(call: Caller, name: str, when: str, status: str = "activo", texts: tuple[str, ...] = ("a",)) -> None:
    def plan(graph: Any) -> Plan:
        first = graph.next_observation
        observations = [Observation(first + place, text, when) for place, text in enumerate(texts)]
        return Plan([EntityRestored(Entity(graph.next_entity, name, "Thing", status, when, when, observations))])

    call.space.commit(plan)


def stale(call: Caller, **arguments: Any) -> list[str]:
    return [one["entity_name"] for one in call("consolidation_report", **arguments)["stale_entities"]]


def test_nothing_is_nothing(call: Caller) -> None:
    report = call("consolidation_report")

    assert set(report["summary"].values()) == {0}
    assert [report[key] for key in report if key not in ("summary", "note")] == [[], [], [], []]


def test_what_is_new_or_archived_or_empty_is_not_stale(keep: Caller) -> None:
    keep("create_entities", entities=[person("New", "a")])
    restore(keep, "Old", LONG_AGO)
    restore(keep, "Older", "2019-01-01 00:00:00")
    restore(keep, "Archived", LONG_AGO, status="archivado")
    restore(keep, "Empty", LONG_AGO, texts=())

    assert stale(keep) == ["Older", "Old"]
    assert stale(keep, stale_days=1e6) == []
    assert keep("consolidation_report", limit=1)["summary"]["stale_entities_count"] == 2
    assert stale(keep, limit=1) == ["Older"]


def test_what_was_touched_again_is_not_stale(keep: Caller) -> None:
    restore(keep, "Old", LONG_AGO)
    keep("add_observations", name="Old", observations=["news"])

    assert stale(keep) == []


def test_what_a_search_showed_lately_is_not_stale(keep: Caller) -> None:
    restore(keep, "Old", LONG_AGO, texts=("plays the theremin",))
    assert stale(keep) == ["Old"]

    keep("search_semantic", query="who plays the theremin")
    keep.space.settle()

    assert stale(keep) == []


OPENING: list[tuple[str, dict[str, Any]]] = [
    ("open_nodes", {"names": ["Old"]}),
    ("get_entity", {"name": "Old"}),
    ("batch_get_entities", {"names": ["Old", "Nobody"]}),
    ("describe_entity", {"name": "Old"}),
    ("get_neighbors", {"name": "Old"}),
    ("create_relations", {"relations": [{"from": "New", "to": "Old", "relationType": "knows"}]}),
    ("add_reflection", {"target_type": "entity", "target_id": "Old", "content": "was it worth it?"}),
]


@pytest.mark.parametrize(("tool", "arguments"), OPENING)
def test_what_was_opened_lately_is_not_stale_without_any_search(
    database: Path, tool: str, arguments: dict[str, Any]
) -> None:
    space = open_space(database)
    call = Caller(space)
    restore(call, "Old", LONG_AGO)
    call("create_entities", entities=[person("New", "a")])
    assert stale(call) == ["Old"]

    call(tool, **arguments)

    assert stale(call) == []
    space.close()
    again = open_space(database)
    assert stale(Caller(again)) == []
    with apsw.Connection(str(database)) as tables:
        named = "select name, access_count from entity_access join entities on id = entity_id where name = 'Old'"
        assert tables.execute(named).fetchall() == [("Old", 1)]
    assert [finding.text for finding in again.check()] == []
    again.close()


def test_a_stale_entity_is_told_with_its_use(keep: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    restore(keep, "Little", LONG_AGO)
    restore(keep, "Much", LONG_AGO)
    then = seconds_of(LONG_AGO)
    assert then is not None
    uses = {"Little": Use(2, then, 1), "Much": Use(3, then, 1)}
    monkeypatch.setattr(type(keep.space.usage), "shown", lambda self: uses)

    (one,) = keep("consolidation_report")["stale_entities"]

    assert one.keys() >= {"entity_name", "entity_type", "last_accessed_days_ago", "access_count", "observation_count"}
    assert (one["entity_name"], one["entity_type"], one["access_count"], one["observation_count"]) == (
        "Little",
        "Thing",
        2,
        1,
    )
    assert one["last_accessed_days_ago"] > 2000


def test_flagged_observations_are_listed_until_they_are_replaced(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "poet", "a poet")])
    keep.space.commit(lambda graph: Plan([ObservationFlagged(1, 2, 1)]))
    flagged = keep("consolidation_report")["flagged_observations"]
    assert flagged == [{"entity_name": "Ada", "observation_text": "a poet", "similarity_flag": 1, "observation_id": 2}]

    keep("add_observations", name="Ada", observations=["a great poet"], supersedes=2)

    assert keep("consolidation_report")["summary"]["flagged_observations_count"] == 0


@pytest.mark.parametrize("given", [{"stale_days": -1}, {"limit": 0}, {"stale_days": "soon"}])
def test_arguments_without_sense_are_refused(call: Caller, given: Any) -> None:
    assert call.refusal("consolidation_report", **given)


READERS: list[tuple[str, dict[str, Any]]] = [
    ("consolidation_report", {}),
    ("analyze_entity_split", {"entity_name": "Large"}),
    ("propose_entity_split", {"entity_name": "Large"}),
    ("find_split_candidates", {}),
    ("find_duplicate_observations", {"entity_name": "Large"}),
    ("search_reflections", {"query": "sea"}),
]  # describe_entity notes that somebody opened it


def bytes_in(folder: Path) -> dict[str, str]:
    """Every file that holds facts; the index of the write-ahead log is working memory of SQLite."""
    files = sorted(file for file in folder.iterdir() if not file.name.endswith("-shm"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_who_looks_changes_no_byte(memory_file: Path) -> None:
    space = open_space(memory_file)
    call = Caller(space)
    texts = [f"{what} {word}" for what in ("sea", "sky", "sun") for word in "abcdefghijk"]
    call("create_entities", entities=[person("Large", *texts), person("Small", "b")])
    space.settle()
    call("find_duplicate_observations", entity_name="Large")  # whatever is made at the first use
    space.settle()
    before, seq = bytes_in(memory_file.parent), space.graph().seq

    for tool, arguments in READERS:
        call(tool, **arguments)
    space.settle()

    assert bytes_in(memory_file.parent) == before
    assert space.graph().seq == seq
    space.close()


def test_a_large_memory_is_looked_at_piece_by_piece_and_others_get_in_between(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curator, "PIECE", 2)
    space = open_space(database)
    call = Caller(space)
    call("create_entities", entities=[person(f"E{n}", "a") for n in range(7)])
    call("delete_entities", entityNames=["E3"])
    written = []

    def write() -> None:
        other = threading.Thread(target=call, args=("create_entities",), kwargs={"entities": [person("Late", "b")]})
        other.start()
        other.join(10)
        written.append(other.is_alive())

    monkeypatch.setattr(care, "pause", write)

    assert call("consolidation_report")["summary"]["total_entities"] == 7  # six, and the late one
    assert written and not any(written)
    space.close()


def test_a_report_waits_for_no_model(keep: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "encode", lambda *_: 1 / 0)
    texts = [f"{word} {what} {n}" for what in ("boats sail", "pianos sound") for n, word in enumerate("abcdefghijkl")]
    keep("create_entities", entities=[person("Ada", *texts)])

    (candidate,) = keep("consolidation_report")["split_candidates"]
    assert (candidate["entity_name"], candidate["num_topics"]) == ("Ada", 2)
    (analysis,) = keep("find_split_candidates")["candidates"]
    assert analysis["topics_by"] == "words"
