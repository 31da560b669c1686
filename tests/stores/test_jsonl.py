"""The official server's file as a store: what stands in it, what is read from it, what it refuses."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stores.asking import Asked, Refused, closing_all, entity_line, relation_line


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.jsonl"


# ── what is written ──────────────────────────────────────────────────────────────────────────────────


def test_the_file_has_entities_first_then_relations_and_no_newline_at_the_end(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada", observations=("likes tea", "lives in Łódź"))
    memory.relate("Ada", "Bob")
    memory.create("Bob")

    assert path.read_bytes() == b"\n".join(
        [entity_line("Ada", "likes tea", "lives in Łódź"), entity_line("Bob"), relation_line("Ada", "Bob")]
    )
    assert memory.is_sound()


def test_the_new_file_stands_there_when_the_answer_is_given(path: Path) -> None:
    memory = Asked(path)

    for number in range(5):
        memory.create(str(number))
        assert path.read_bytes().endswith(entity_line(str(number)))


def test_what_is_deleted_leaves_the_file(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada", "Bob", "Eve", observations=("one", "two"))
    memory.relate("Ada", "Bob")
    memory.relate("Bob", "Eve")
    memory("delete_observations", deletions=[{"entityName": "Eve", "observations": ["one"]}])
    memory("delete_entities", entityNames=["Ada"])

    assert path.read_bytes().split(b"\n") == [
        entity_line("Bob", "one", "two"),
        entity_line("Eve", "two"),
        relation_line("Bob", "Eve"),
    ]
    memory("delete_entities", entityNames=["Bob", "Eve"])
    assert path.read_bytes() == b""
    assert memory.is_sound()


def test_a_missing_end_is_no_line_until_somebody_creates_it(path: Path) -> None:
    Asked(path).relate("Ada", "Bob")
    assert path.read_bytes() == relation_line("Ada", "Bob")

    memory = Asked(path)
    assert memory.names() == []
    memory.create("Bob")

    assert path.read_bytes() == entity_line("Bob") + b"\n" + relation_line("Ada", "Bob")
    assert memory.is_sound()


def test_a_call_that_changes_nothing_writes_nothing(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada")
    before = memory.version()
    memory.create("Ada")

    assert memory.version() == before


def test_every_file_is_later_than_the_one_it_replaced(path: Path) -> None:
    memory = Asked(path)
    path.write_bytes(entity_line("Ada"))
    future = time.time_ns() + 10**12
    os.utime(path, ns=(future, future))
    memory.create("Bob")

    assert path.stat().st_mtime_ns > future
    assert memory.names() == ["Ada", "Bob"]


def test_the_folder_is_created_when_something_is_written(tmp_path: Path) -> None:
    memory = Asked(tmp_path / "not" / "yet" / "memory.jsonl")
    assert memory.names() == []
    assert list(tmp_path.iterdir()) == []

    memory.create("Ada")
    assert memory.path.read_bytes() == entity_line("Ada")


def test_compacting_writes_the_official_bytes(path: Path) -> None:
    path.write_bytes(b'\n{ "name": "Ada", "type": "entity", "entityType": "t", "observations": [] }\r\n\r\n')
    memory = Asked(path)
    memory.store.compact()

    assert path.read_bytes() == entity_line("Ada")
    assert memory.is_sound()


# ── what is read ─────────────────────────────────────────────────────────────────────────────────────

TEXT = st.text(max_size=12) | st.sampled_from(["\u2028", "a\u2029b", "\x7f", "\x00", "\r", "\n", "\x0b\x1c", "\\", '"'])
ENTITIES = st.dictionaries(TEXT, st.lists(TEXT, max_size=3), max_size=6)


@given(ENTITIES, st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=4, unique=True))
@settings(max_examples=60, deadline=None)
def test_what_was_written_is_read_by_the_next_process(
    entities: dict[str, list[str]], relations: list[tuple[str, str, str]]
) -> None:
    lines = [entity_line(name, *texts) for name, texts in entities.items()]
    lines += [relation_line(*relation) for relation in relations]
    with tempfile.TemporaryDirectory() as folder, closing_all():
        path = Path(folder, "memory.jsonl")
        path.write_bytes(b"\n".join(lines))
        memory = Asked(path)
        memory.store.compact()  # whatever is in the file is held, whatever the limits of calls are
        # JSON has two spellings of some characters; the next reading tells whether they are the same text.
        told = Asked(path)("read_graph")

        assert memory.is_sound()
    assert told["entities"] == [{"name": n, "entityType": "t", "observations": o} for n, o in entities.items()]
    assert told["relations"] == [{"from": f, "to": t, "relationType": r} for f, t, r in relations]


CALLS = st.lists(
    st.tuples(st.sampled_from(["create", "relate", "observe", "forget", "delete"]), *[st.sampled_from("abcde")] * 3),
    max_size=14,
)


@given(CALLS)
@settings(max_examples=40, deadline=None)
def test_after_any_calls_the_file_says_what_the_space_says(calls: list[tuple[str, str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder, closing_all():
        path = Path(folder, "memory.jsonl")
        memory = Asked(path)
        for verb, one, other, word in calls:
            match verb:
                case "create":
                    memory.create(one, other, observations=(word,))
                case "relate":
                    memory.relate(one, other, word)
                case "observe" if one in memory.names():
                    memory.observe(one, word, other)
                case "forget":
                    memory("delete_observations", deletions=[{"entityName": one, "observations": [word]}])
                case "delete":
                    memory("delete_entities", entityNames=[one])

        assert Asked(path)("read_graph") == memory("read_graph")
        assert memory.is_sound()


def test_a_missing_file_and_an_empty_one_are_an_empty_memory(path: Path) -> None:
    memory = Asked(path)
    assert memory("read_graph") == {"entities": [], "relations": []}
    path.touch()

    assert memory("read_graph") == {"entities": [], "relations": []}
    assert memory.is_sound()


def test_only_a_line_feed_ends_a_line(path: Path) -> None:
    path.write_bytes(b"\r\n".join([entity_line("a\u2028b", "c\x85d\u2029"), b"  ", entity_line("e")]))

    assert Asked(path).names() == ["a\u2028b", "e"]
    assert Asked(path).texts("a\u2028b") == ["c\x85d\u2029"]


def test_a_byte_order_mark_is_no_part_of_the_first_line(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + entity_line("Ada"))

    assert Asked(path).names() == ["Ada"]


def test_limits_do_not_apply_to_what_is_in_the_file_already(path: Path) -> None:
    path.write_bytes(entity_line("", "x" * 100_000) + b"\n" + entity_line("n" * 5000) + b"\n" + relation_line("", ""))
    memory = Asked(path)
    memory.create("Ada")

    assert Asked(path).names() == ["", "n" * 5000, "Ada"]
    assert Asked(path).texts("") == ["x" * 100_000]
    assert memory.is_sound()


def test_what_another_program_wrote_is_seen_by_the_next_call(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada")
    path.write_bytes(entity_line("Ada", "by hand") + b"\n" + entity_line("Bob"))
    assert memory.texts("Ada") == ["by hand"]

    path.write_bytes(entity_line("Eve"))
    memory.create("Dan")
    assert memory.names() == ["Eve", "Dan"]
    assert memory.is_sound()


def test_nothing_is_news_after_ones_own_writes(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada")
    graph = memory.space.graph()
    memory.create("Bob")
    memory.space.catch_up()

    assert memory.store.news_since(graph) == []
    assert memory.space.graph() is graph


def test_a_graph_of_an_older_version_is_not_taken_for_one_of_the_version_that_was_compacted(path: Path) -> None:
    path.write_bytes(entity_line("Ada"))
    memory = Asked(path)
    graph = memory.space.graph()
    path.write_bytes(entity_line("Eve") + b"\n" + entity_line("Ada"))

    memory.store.compact()  # another process wrote before it took the lock

    assert memory.store.news_since(graph) is None
    memory.create("Dan")
    assert memory.names() == ["Eve", "Ada", "Dan"]
    assert memory.is_sound()


# ── what the format cannot hold ──────────────────────────────────────────────────────────────────────


def test_what_has_no_place_in_the_file_is_refused_before_anything_is_written(path: Path) -> None:
    memory = Asked(path, "full")
    ada = {"name": "Ada", "entityType": "t", "observations": ["one"]}
    memory("create_entities", entities=[ada, {**ada, "name": "Bob"}])
    memory.relate("Ada", "Bob")
    before = memory.version()
    relation = memory("search_relations", **{"from": "Ada"})["relations"][0]["id"]
    context = {"from": "Ada", "to": "Bob", "relationType": "met", "context": "at sea"}
    for tool, arguments, what in (
        ("create_entities", {"entities": [{**ada, "status": "archivado"}]}, "status 'archivado'"),
        ("add_observations", {"name": "Ada", "observations": ["two"], "kind": "decision"}, "kind 'decision'"),
        ("end_relation", {"relation_id": relation}, "ended relations"),
        ("create_relations", {"relations": [context]}, "context of a relation"),
    ):
        with pytest.raises(Refused, match=f"{what}.*SQLite.*mcp-memory import"):
            memory(tool, **arguments)

    assert memory.version() == before
    assert memory.is_sound()


def test_the_automatic_context_of_an_inverse_relation_is_let_go(path: Path) -> None:
    memory = Asked(path, "full")
    memory.create("box", "lid")
    memory.relate("box", "lid", "contiene")

    assert path.read_bytes().split(b"\n")[2:] == [
        relation_line("box", "lid", "contiene"),
        relation_line("lid", "box", "parte_de"),
    ]
    assert memory.is_sound()


# ── keeping watch ────────────────────────────────────────────────────────────────────────────────────


def test_the_check_sees_a_file_that_changed_under_the_same_stamp(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada")
    stamp = path.stat()
    with path.open("r+b") as file:  # in place, so that the inode stays
        file.write(entity_line("Eva"))
    os.utime(path, ns=(stamp.st_mtime_ns, stamp.st_mtime_ns))

    assert any("differs" in finding.text for finding in memory.store.check(False))
    assert all(finding.repaired for finding in memory.store.check(True))
    assert memory.names() == ["Eva"]
    assert memory.is_sound()


def test_the_check_sees_and_removes_what_a_dead_process_left(path: Path) -> None:
    memory = Asked(path)
    memory.create("Ada")
    path.with_name("memory.jsonl.mcp-memory.tmp").write_bytes(b"half")

    assert [finding.repaired for finding in memory.store.check(False)] == [False]
    assert [finding.repaired for finding in memory.store.check(True)] == [True]
    assert memory.beside() == set()
    assert memory.is_sound()


def test_what_a_dead_process_left_is_removed_by_the_next_one(path: Path) -> None:
    path.write_bytes(entity_line("Ada"))
    path.with_name("memory.jsonl.mcp-memory.tmp").write_bytes(b"half")
    memory = Asked(path)

    assert memory.names() == ["Ada"]
    assert memory.beside() == set()


def test_what_a_dead_process_left_is_written_over(path: Path) -> None:
    memory = Asked(path)
    memory.names()
    path.with_name("memory.jsonl.mcp-memory.tmp").write_bytes(b"half")
    memory.create("Ada")

    assert memory.names() == ["Ada"]
    assert memory.beside() == set()


def test_a_closed_store_opens_again_by_itself(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    memory = Asked(path)
    memory.create("Ada")
    memory.store.close()
    memory.create("Bob")

    assert memory.names() == ["Ada", "Bob"]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
