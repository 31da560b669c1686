"""Lines that cannot be read, or not be written back: they cost only themselves, and nothing is lost."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.stores.lines import read_lines
from mcp_memory.stores.store import StoreDamaged
from tests.stores.asking import Asked, Refused, entity_line, relation_line

ADA, BOB = entity_line("Ada", "likes tea"), entity_line("Bob")
BAD = {
    "no JSON": b'{"type":"entity","name":"Eve',
    "no object": b"[1,2]",
    "no type": b'{"name":"Eve","entityType":"t","observations":[]}',
    "unknown type": b'{"type":"mood","name":"Eve"}',
    "no name": b'{"type":"entity","entityType":"t","observations":[]}',
    "observations that are no list": b'{"type":"entity","name":"Eve","entityType":"t","observations":"tea"}',
    "an observation that is no text": b'{"type":"entity","name":"Eve","entityType":"t","observations":[1]}',
    "a relation without an end": b'{"type":"relation","from":"Ada","relationType":"knows"}',
    "a control character": b'{"type":"entity","name":"E\x01","entityType":"t","observations":[]}',
    "depth": b"[" * 100_000,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.jsonl"


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_line_is_kept_aside_and_the_rest_is_served(path: Path, bad: bytes) -> None:
    path.write_bytes(b"\n".join([ADA, bad, BOB]))
    memory = Asked(path)

    assert memory.names() == ["Ada", "Bob"]
    assert memory.quarantine() == [bad]
    assert path.read_bytes().split(b"\n") == [ADA, bad, BOB]
    memory.create("Eve")
    assert path.read_bytes().split(b"\n") == [ADA, BOB, entity_line("Eve")]
    assert memory.quarantine() == [bad]
    assert memory.is_sound()


# What is no character: how it stands in a line, and what is served.
MENDED = {
    "half of a surrogate pair": (rb"cut \ud83d", "cut \ufffd"),
    "the other half": (rb"\uDE00 cut", "\ufffd cut"),
    "two first halves": (rb"\ud83d\ud83d\ude00", "\ufffd😀"),
    "invalid UTF-8": (b"t\xe9l\xe9phone", "t\ufffdl\ufffdphone"),
    "half a surrogate pair as bytes": (b"\xed\xa0\xbd.", "\ufffd\ufffd\ufffd."),
    "beside what only looks like it": (rb"C:\\ud83d \ud83d \\\ud83d", "C:\\ud83d \ufffd \\\ufffd"),
}


@pytest.mark.parametrize(("raw", "text"), MENDED.values(), ids=MENDED)
def test_a_line_with_what_is_no_character_is_served_without_it_and_kept_as_it_was(
    path: Path, raw: bytes, text: str
) -> None:
    line = b'{"type":"entity","name":"Eve","entityType":"t","observations":["first","%s"]}' % raw
    path.write_bytes(ADA + b"\n" + line)
    memory = Asked(path)

    assert memory.texts("Eve") == ["first", text]
    assert path.read_bytes().split(b"\n") == [ADA, line]
    memory.create("Bob")
    assert path.read_bytes().split(b"\n") == [ADA, entity_line("Eve", "first", text), BOB]
    assert memory.quarantine() == [line]
    assert memory.is_sound()


def test_an_entity_without_a_type_is_a_generic_one(path: Path) -> None:
    path.write_bytes(b'{"type":"entity","name":"Eve","observations":["sings"]}')
    memory = Asked(path)
    memory.create("Bob")

    assert path.read_bytes().split(b"\n") == [entity_line("Eve", "sings", entity_type="Generic"), BOB]
    assert memory.beside() == set()
    assert memory.is_sound()


@given(st.lists(st.binary(max_size=30) | st.sampled_from([ADA, BOB, ADA[:-3], b'{"type":'])))
@settings(max_examples=200, deadline=None)
def test_no_bytes_at_all_break_the_reading(lines: list[bytes]) -> None:
    reading = read_lines(b"\n".join(lines))

    assert ("Ada" in reading.entities) == (ADA in b"\n".join(lines).removeprefix(b"\xef\xbb\xbf").split(b"\n"))


def test_a_bad_line_is_kept_and_reported_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_bytes(ADA + b"\nnonsense\nnonsense")
    memory = Asked(path)
    memory.names()
    path.write_bytes(ADA + b"\nnonsense\n" + BOB)
    assert memory.names() == ["Ada", "Bob"]
    assert Asked(path).names() == ["Ada", "Bob"]

    assert memory.quarantine() == [b"nonsense"]
    told = [record for record in caplog.records if "line 2 is not served" in record.getMessage()]
    assert [(record.name, record.levelno) for record in told] == [("mcp_memory", logging.WARNING)] * 2  # two stores


def test_a_cut_off_quarantine_does_not_swallow_the_next_line(path: Path) -> None:
    path.with_name("memory.jsonl.quarantine").write_bytes(b"older\nhal")
    path.write_bytes(ADA + b"\nhalf")
    memory = Asked(path)
    memory.names()

    assert memory.quarantine() == [b"older", b"hal", b"half"]


def test_a_line_with_keys_of_its_own_is_served_and_kept_before_they_are_dropped(path: Path) -> None:
    rich = b'{"type":"entity","name":"Ada","entityType":"t","observations":["one"],"colour":"red"}'
    path.write_bytes(rich)
    memory = Asked(path)
    assert memory.texts("Ada") == ["one"]
    assert memory.beside() == set()

    memory.create("Bob")
    assert path.read_bytes() == entity_line("Ada", "one") + b"\n" + BOB
    assert memory.quarantine() == [rich]
    assert memory.is_sound()


def test_missing_observations_are_none(path: Path) -> None:
    path.write_bytes(b'{"type":"entity","name":"Ada","entityType":"t"}')
    memory = Asked(path)

    assert memory.texts("Ada") == []
    assert memory.is_sound()


def test_lines_of_one_name_become_one_entity_and_the_later_line_is_kept(path: Path) -> None:
    again = entity_line("Ada", "likes tea", "sings", "sings", entity_type="other")
    path.write_bytes(b"\n".join([ADA, BOB, again]))
    memory = Asked(path)

    assert memory.texts("Ada") == ["likes tea", "sings"]
    memory.create("Eve")
    assert path.read_bytes().split(b"\n")[0] == entity_line("Ada", "likes tea", "sings")
    assert memory.quarantine() == [again]
    assert memory.is_sound()


def test_equal_observations_of_one_line_are_all_kept(path: Path) -> None:
    path.write_bytes(entity_line("Ada", "tea", "tea"))
    memory = Asked(path)
    memory.create("Bob")

    assert path.read_bytes() == entity_line("Ada", "tea", "tea") + b"\n" + BOB


def test_equal_relations_become_one(path: Path) -> None:
    path.write_bytes(b"\n".join([relation_line("Ada", "Bob"), ADA, relation_line("Ada", "Bob")]))
    memory = Asked(path)
    memory.create("Bob")

    assert path.read_bytes().split(b"\n") == [ADA, BOB, relation_line("Ada", "Bob")]
    assert memory.is_sound()


NOT_OURS = {
    "a SQLite database": b"SQLite format 3\0" + b"\0" * 100,
    "a binary journal": b"MCPMEMV1\0\0\0\1",
    "text in UTF-16": '\ufeff{"type":"entity"}'.encode("utf-16-le"),
    "a binary file": b"{\0}\0",
    "a gzip archive": b"\x1f\x8b\x08",
    "text without": b'{\n  "name": "demo",\n  "type": "module"\n}\n',
    "text without a single line": b'{"entities":[{"type":"entity"}],"relations":[]}',
}


@pytest.mark.parametrize(("what", "content"), NOT_OURS.items(), ids=NOT_OURS)
def test_a_file_that_is_something_else_is_told_and_left_alone(path: Path, what: str, content: bytes) -> None:
    path.write_bytes(content)
    memory = Asked(path)

    with pytest.raises(StoreDamaged, match=what):
        memory.space.graph()
    with pytest.raises(Refused, match="store_damaged"):
        memory.create("Ada")
    assert path.read_bytes() == content
    assert memory.beside() == set()


def test_the_service_resumes_when_the_right_file_is_back(path: Path) -> None:
    path.write_bytes(ADA)
    memory = Asked(path)
    memory.names()
    path.write_bytes(NOT_OURS["a SQLite database"])
    with pytest.raises(Refused, match="SQLite database"):
        memory.create("Bob")

    path.write_bytes(ADA)
    memory.create("Bob")
    assert memory.names() == ["Ada", "Bob"]
    assert memory.is_sound()


def test_the_check_sees_bad_lines_that_were_not_kept(path: Path) -> None:
    path.write_bytes(ADA + b"\nnonsense")
    memory = Asked(path)
    memory.names()
    path.with_name("memory.jsonl.quarantine").unlink()

    assert [finding.text for finding in memory.store.check(False)] == [
        f"line 2 of {path} is not served: JSON is malformed: invalid character (byte 4)",
        f"1 bad lines of {path} are not kept in {path}.quarantine",
    ]
    assert [finding.outcome for finding in memory.store.check(True)] == [f"moved to {path}.quarantine"]
    assert memory.quarantine() == [b"nonsense"]
    assert memory.is_sound()
