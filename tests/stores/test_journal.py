"""A journal as a store: what is appended to it, how others see it, what it refuses, and what compacting leaves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.changes import Entry
from mcp_memory.stores import wholefile
from mcp_memory.stores.filelock import FileLock
from mcp_memory.stores.journal import JournalStore, mcpmem
from mcp_memory.stores.store import StoreFault
from tests.stores.asking import Asked, Refused
from tests.stores.test_mcpmem import EXAMPLE, EXAMPLE_RECORDS

V2 = mcpmem.MAGIC[2]
ADA = mcpmem.create_entity("Ada", "t", ["likes tea"])
BOB = mcpmem.create_entity("Bob", "t", [])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.mcpmem"


def records(path: Path) -> list[tuple[int, Any]]:
    data = path.read_bytes()
    version = 1 if data.startswith(mcpmem.MAGIC[1]) else 2
    return [(kind, fields) for kind, _, _, fields in mcpmem.scan(data, 8, version)]


def journal(*groups: list[mcpmem.Record], version: int = 2) -> bytes:
    return mcpmem.MAGIC[version] + mcpmem.frame([record for group in groups for record in group], version)


# ── what is written ──────────────────────────────────────────────────────────────────────────────


def test_one_change_is_one_record_and_several_are_a_transaction(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada", observations=("likes tea",))
    assert path.read_bytes() == journal(ADA)

    memory.create("Bob", "Eve")
    assert records(path)[1:] == [(6, ()), (0, ("Bob", "t", [])), (0, ("Eve", "t", [])), (7, ())]
    assert memory.is_sound()


def test_a_call_is_one_write_and_stands_there_when_it_is_answered(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Asked(path)
    written: list[int] = []
    write = os.write

    def counted(file: int, data: Any) -> int:
        written.append(len(data))
        return write(file, data)

    memory.create("first")
    monkeypatch.setattr(os, "write", counted)
    memory.create(*map(str, range(20)))
    assert len(written) == 1
    assert len(records(path)) == 1 + 22

    memory.create("first")  # nothing new is nothing written
    assert len(written) == 1


def test_every_verb_has_its_record(path: Path) -> None:
    memory = Asked(path)
    memory.create("A", observations=("hi",))
    memory.create("B")
    memory.relate("A", "B", "r")
    memory.observe("A", "x")
    memory("delete_observations", deletions=[{"entityName": "A", "observations": ["hi"]}])
    memory("delete_relations", relations=[{"from": "A", "to": "B", "relationType": "r"}])
    memory("delete_entities", entityNames=["B"])

    assert records(path) == [
        (0, ("A", "t", ["hi"])),
        (0, ("B", "t", [])),
        (1, ("A", "B", "r")),
        (2, ("A", ["x"])),
        (4, ("A", ["hi"])),
        (5, ("A", "B", "r")),
        (3, ("B",)),
    ]
    assert memory.is_sound()


def test_an_old_journal_stays_what_it_is_until_it_is_compacted(path: Path) -> None:
    path.write_bytes(EXAMPLE)
    memory = Asked(path)
    memory.create("C")
    assert path.read_bytes() == EXAMPLE + mcpmem.frame(mcpmem.create_entity("C", "t", []), 1)

    memory.store.compact()
    assert path.read_bytes() == journal(mcpmem.create_entity("A", "t", ["x"]), mcpmem.create_entity("C", "t", []))
    assert memory.names() == ["A", "C"]
    assert memory.is_sound()


def test_a_missing_file_and_an_empty_one_are_an_empty_memory_that_can_be_written(path: Path) -> None:
    memory = Asked(path)
    assert memory.names() == []
    assert not path.exists()
    path.touch()
    assert memory.names() == []

    memory.create("Ada", observations=("likes tea",))
    assert path.read_bytes() == journal(ADA)
    assert memory.is_sound()


def test_what_cannot_be_said_in_one_record_is_written_anew_in_its_place(path: Path) -> None:
    memory = Asked(path, "full")
    memory.create("Ada", "Bob", observations=("one",))
    memory.relate("Ada", "Bob")
    memory("create_entities", entities=[{"name": "Ada", "entityType": "Poet", "observations": []}])
    again = Asked(path, "full")

    assert again("read_graph") == memory("read_graph")
    assert again.names() == ["Ada", "Bob"]
    assert again("get_entity", name="Ada")["entityType"] == "Poet"
    assert memory.is_sound() and again.is_sound()


def test_large_facts_are_split_and_larger_ones_refused(path: Path) -> None:
    memory = Asked(path)
    texts = [f"{number:04}" * 15_000 for number in range(30)]  # 60,000 bytes each, 1.8 MB together
    memory.create("Ada", observations=tuple(texts))
    before = memory.version()
    with pytest.raises(Refused, match=r"no place for a text of 65,536 bytes.*mcp-memory import"):
        memory.create("Bob", observations=("x" * 65_536,))

    assert memory.version() == before
    assert Asked(path).texts("Ada") == texts
    memory.store.compact()
    assert Asked(path).texts("Ada") == texts
    assert memory.is_sound()


def test_what_has_no_place_in_a_journal_is_refused_before_anything_is_written(path: Path) -> None:
    memory = Asked(path, "full")
    ada = {"name": "Ada", "entityType": "t", "observations": ["one"]}
    memory("create_entities", entities=[ada, {**ada, "name": "Bob"}])
    memory.relate("Ada", "Bob")
    before = memory.version()
    relation = memory("search_relations", **{"from": "Ada"})["relations"][0]["id"]
    for tool, arguments, what in (
        ("create_entities", {"entities": [{**ada, "status": "archivado"}]}, "status 'archivado'"),
        ("add_observations", {"name": "Ada", "observations": ["two"], "kind": "decision"}, "kind 'decision'"),
        ("end_relation", {"relation_id": relation}, "ended relations"),
    ):
        with pytest.raises(Refused, match=f"{what}.*SQLite.*mcp-memory import"):
            memory(tool, **arguments)

    assert memory.version() == before
    memory.relate("Ada", "Bob", "contiene")
    assert records(path)[-4:-1] == [(6, ()), (1, ("Ada", "Bob", "contiene")), (1, ("Bob", "Ada", "parte_de"))]
    assert memory.is_sound()


CALLS = st.lists(
    st.tuples(st.sampled_from(["create", "retype", "relate", "observe", "forget", "delete", "compact"]))
    .flatmap(lambda verb: st.tuples(st.just(verb[0]), *[st.sampled_from("abcd")] * 3)),
    max_size=16,
)  # fmt: skip


@given(CALLS)
@settings(max_examples=60, deadline=None)
def test_after_any_calls_two_processes_and_the_file_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, str, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("calls") / "memory.mcpmem"
    writer, reader = Asked(path), Asked(path)
    for number, (verb, one, other, word) in enumerate(calls):
        do(writer if number % 3 else reader, verb, one, other, word)
        if number % 2:
            assert reader("read_graph")["entities"] == writer("read_graph")["entities"]

    told = writer("read_graph")
    for memory in (reader, Asked(path)):
        again = memory("read_graph")
        assert again["entities"] == told["entities"]
        assert sorted(map(str, again["relations"])) == sorted(map(str, told["relations"]))
        assert memory.is_sound()
        memory.space.close()
    writer.space.close()


def do(memory: Asked, verb: str, one: str, other: str, word: str) -> None:
    match verb:
        case "create":
            memory.create(one, other, observations=(word, other, word))
        case "retype":
            if one in memory.names():
                full = Asked(memory.path, "full")
                full("create_entities", entities=[{"name": one, "entityType": word, "observations": [other]}])
                full.space.close()
        case "relate":
            memory.relate(one, other, word)
        case "observe" if one in memory.names():
            memory.observe(one, word, other, word)
        case "forget":
            memory("delete_observations", deletions=[{"entityName": one, "observations": [word]}])
        case "delete":
            memory("delete_entities", entityNames=[one])
        case "compact":
            memory.store.compact()


def test_what_another_program_wrote_with_a_nul_is_found_by_its_name_and_can_be_deleted(path: Path) -> None:
    """No call writes one, but what is shown can be asked for and let go."""
    nul = "a\0b"
    person, link = mcpmem.create_entity(nul, "t", ["x\0y", "z"]), mcpmem.create_relation(nul, "Bob", nul)
    path.write_bytes(journal(ADA, BOB, person, [link]))
    memory = Asked(path, "full")
    assert memory("get_entity", name=nul)["observations"] == ["x\0y", "z"]
    assert memory("batch_get_entities", names=[nul])["entities"] == [memory("open_nodes", names=[nul])["entities"][0]]
    assert memory("describe_entity", name=nul)["degree"] == 1
    assert [one["name"] for one in memory("get_neighbors", name=nul)["entities"]] == [nul, "Bob"]
    with pytest.raises(Refused, match="NUL"):
        memory("add_observations", name=nul, observations=["w"])

    memory("delete_observations", deletions=[{"entityName": nul, "observations": ["x\0y"]}])
    memory("delete_relations", relations=[{"from": nul, "to": "Bob", "relationType": nul}])
    assert memory("merge_entities", source=nul, target="Ada")["addedObservations"] == 1
    assert memory.names() == ["Ada", "Bob"]
    path.write_bytes(journal(person))
    assert memory("delete_entities", entityNames=[nul])["deleted"] == [nul]
    assert memory.names() == []
    assert memory.is_sound()


# ── other processes ──────────────────────────────────────────────────────────────────────────────


def test_news_of_others_are_read_on_without_loading_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Asked(path), Asked(path)
    one.create("Ada")
    assert other.names() == ["Ada"]
    graph = other.space.graph()
    monkeypatch.setattr(JournalStore, "load", None)
    one.create("Bob")
    one.relate("Ada", "Bob")
    one("delete_entities", entityNames=["Ada"])

    assert other.names() == ["Bob"]
    other.create("Eve")
    assert one.names() == ["Bob", "Eve"]
    assert other.space.graph() is graph
    monkeypatch.undo()
    assert one.is_sound() and other.is_sound()


def test_ids_stay_what_they_were_when_another_process_compacts(path: Path) -> None:
    one, other = Asked(path, "full"), Asked(path, "full")
    one.create("gone", "Ada", "Bob")
    one.relate("Ada", "Bob")
    one("delete_entities", entityNames=["gone"])
    before = one("search_relations")["relations"]
    at = one.space.graph()["Ada"].created_at
    other.store.compact()
    other.relate("Bob", "Ada")

    assert one("search_relations")["relations"][0] == before[0]
    assert one.space.graph()["Ada"].created_at == at
    assert one.is_sound() and other.is_sound()


def test_a_file_put_in_its_place_is_seen_also_when_it_is_longer(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada")
    path.write_bytes(journal(BOB, mcpmem.create_entity("Eve", "t", ["x" * 100])))  # in place: the same inode

    assert memory.names() == ["Bob", "Eve"]
    path.unlink()
    assert memory.names() == []
    memory.create("Dan")
    assert Asked(path).names() == ["Dan"]
    assert memory.is_sound()


def test_a_program_that_takes_no_lock_is_not_written_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Asked(path)
    memory.create("Ada", observations=("likes tea",))
    append = JournalStore._append

    def overtaken(store: JournalStore, written: list[mcpmem.Record]) -> None:
        with path.open("ab") as file:
            file.write(mcpmem.frame(BOB, 2))
        append(store, written)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(JournalStore, "_append", overtaken)
        with pytest.raises(Refused, match="store_busy"):
            memory.create("Eve")
    assert path.read_bytes() == journal(ADA, BOB)
    memory.create("Eve")
    assert memory.names() == ["Ada", "Bob", "Eve"]
    assert memory.is_sound()


def test_a_lock_kept_by_others_is_waited_for_and_then_told(path: Path) -> None:
    memory = Asked(path, patience=0.05)
    other = FileLock(f"{path}.lock")
    assert other.acquire(0)
    with pytest.raises(Refused, match='"code":"store_busy","retryable":true'):
        memory.create("Bob")

    other.close()
    memory.create("Bob")
    assert memory.names() == ["Bob"]


# ── durability, compacting, closing ──────────────────────────────────────────────────────────────


def test_sync_flushes_before_the_answer_and_normal_in_the_quiet_moment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(wholefile, "flush_to_disk", lambda file: flushed.append("file"))
    monkeypatch.setattr("mcp_memory.stores.journal.appending.flush_to_disk", lambda file: flushed.append("tape"))
    monkeypatch.setattr(wholefile.WholeFile, "flush_name", lambda self: flushed.append("name"))
    strict = Asked(path, durability="sync")
    strict.create("Ada")
    strict.create("Bob")
    assert flushed == ["tape", "name", "tape"]

    flushed.clear()
    memory = Asked(path)
    memory.create("Eve")
    memory.space.close()
    assert flushed == ["file", "name"]


def test_compacting_leaves_what_is_true_and_no_stale_file_is_appended_to(path: Path) -> None:
    memory = Asked(path)
    stale = path.with_name("memory.mcpmem.mcp-memory.tmp")
    for number in range(50):
        memory.create(str(number))
        memory("delete_entities", entityNames=[str(number)])
    memory.create("Ada", observations=("likes tea",))
    stale.write_bytes(journal(BOB))
    memory.store.compact()

    assert path.read_bytes() == journal(ADA)
    assert memory.beside() == set()
    memory.store.compact()
    assert path.read_bytes() == journal(ADA)
    assert memory.is_sound()


def test_an_unfinished_new_version_is_told_and_removed(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada")
    path.with_name("memory.mcpmem.mcp-memory.tmp").write_bytes(b"half")

    assert [finding.repaired for finding in memory.store.check(False)] == [False]
    assert [finding.repaired for finding in memory.store.check(True)] == [True]
    assert memory.beside() == set()


def test_a_closed_store_opens_again_by_itself(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    memory = Asked(path)
    memory.create("Ada")
    memory.space.close()
    memory.create("Bob")

    assert memory.names() == ["Ada", "Bob"]
    assert caplog.records == []


def test_a_plan_made_on_another_graph_is_not_written_down(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada")
    fresh = JournalStore(path)
    with pytest.raises(StoreFault, match="load it first"), fresh.begin():
        fresh.write([Entry(1, "", [])])
    fresh.load()
    with pytest.raises(StoreFault, match="does not follow"), fresh.begin():
        fresh.write([Entry(7, "", [])])

    assert path.read_bytes() == journal(mcpmem.create_entity("Ada", "t", []))


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_behind_a_link_the_target_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "memory.mcpmem", tmp_path / "link.mcpmem"
    link.symlink_to(real)
    through, direct = Asked(link), Asked(real)
    through.create("Ada")
    direct.create("Bob")
    through.store.compact()
    through.create("Eve")

    assert link.is_symlink()
    assert direct.names() == ["Ada", "Bob", "Eve"]
    assert {file.name for file in (tmp_path / "real").iterdir()} == {"memory.mcpmem", "memory.mcpmem.lock"}


def test_the_records_of_the_example_are_those_of_the_reference() -> None:
    assert journal(EXAMPLE_RECORDS, version=1) == EXAMPLE
