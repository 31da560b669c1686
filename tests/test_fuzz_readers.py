"""Whatever bytes a file holds: the readers end soon, with facts or with a fault that a person can act on, and what
was in the file is still there."""

from __future__ import annotations

import struct
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.assembly import open_space
from mcp_memory.conversion import export_memory
from mcp_memory.errand import Errand
from mcp_memory.space import Space
from mcp_memory.stores.formats import format_of
from mcp_memory.stores.journal import mcpmem
from mcp_memory.stores.journal.reading import read
from mcp_memory.stores.store import StoreDamaged, StoreFault
from tests.conftest import Caller, link, person
from tests.test_undo import facts

COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck))
TEXT = st.text(max_size=12) | st.sampled_from(["Ada", "tea", "\x00", "\u2028", "x" * 5000])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
LINES = st.one_of(
    st.binary(max_size=60),
    ANYTHING.map(msgspec.json.encode),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["entity", "relation", "Entity", ""]) | ANYTHING},
        optional={
            "name": TEXT | ANYTHING,
            "entityType": TEXT | ANYTHING,
            "observations": st.lists(TEXT | ANYTHING, max_size=3) | ANYTHING,
            "from": TEXT | ANYTHING,
            "to": TEXT | ANYTHING,
            "relationType": TEXT | ANYTHING,
        },
    ).map(msgspec.json.encode),
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\n\n", b"", b"\r", "\u2028".encode()])
FILES = st.lists(st.tuples(LINES, ENDS), max_size=8).map(lambda parts: b"".join(b"".join(part) for part in parts))


def served(path: Path) -> Any:
    """The facts of a file, or the fault that says why there are none."""
    space = open_space(path)
    try:
        return facts(space.graph())
    except StoreFault as fault:
        assert str(path) in str(fault)
        return fault
    finally:
        space.close()


@settings(COMMON, max_examples=80)
@given(content=FILES)
def test_any_jsonl_file_is_served_or_refused_and_no_line_of_it_is_lost(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.jsonl"
        path.write_bytes(content)
        if format_of(str(path)) != "jsonl":
            return
        before = served(path)
        if isinstance(before, StoreFault):
            assert path.read_bytes() == content
            return
        space = open_space(path)
        Caller(space, "official")("create_entities", entities=[person("after all")])
        assert [finding.text for finding in space.check()] == []
        space.close()

        kept = path.read_bytes().split(b"\n")
        aside = Path(f"{path}.quarantine")
        kept += aside.read_bytes().split(b"\n") if aside.exists() else []
        lost = [
            line for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip() and line not in kept
        ]
        assert all(known_otherwise(line, kept) for line in lost), lost


def known_otherwise(line: bytes, kept: list[bytes]) -> bool:
    """Was it only written in another form, which says the same?"""
    said = msgspec.json.decode(line)
    return any(said == one or merged(said, one) for one in map(decoded, kept))


def decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return None


def merged(said: Any, one: Any) -> bool:
    return (
        isinstance(one, dict)
        and {key: value for key, value in said.items() if key in one and one[key] == value} == said
    )


@settings(COMMON, max_examples=200)
@given(content=st.binary(max_size=400) | FILES, version=st.sampled_from([1, 2]), begins=st.booleans())
def test_a_journal_of_any_bytes_is_told_apart_to_its_last_byte(content: bytes, version: int, begins: bool) -> None:
    data = mcpmem.MAGIC[version] + content if begins else content
    found = list(mcpmem.scan(data, 8, version))

    places = [(start, end) for _, start, end, _ in found]
    assert [start for start, _ in places] == [8, *(end for _, end in places)][: len(places)]
    assert not found or places[-1][1] == len(data)
    try:
        read(data, "2026-01-01 00:00:00", "x.mcpmem").content.graph()
    except StoreDamaged as fault:
        assert not begins and "not a journal" in str(fault)


PIECES = (
    b"\x06\x00\x00\x00\x02\x00",  # every sixth byte may begin a list that leads through the whole file
    b"\xf0\xff\x0f\x00\x02\x00\x00\xff\xff\xff\x7f\x00\x00",
    b"\x00\x00\x0f\x00\x02\x00\x00",
    b"\x05\x00\x00\x00\x06",
    struct.pack("<IB", 1 << 19, 2) + b"\x00\x00\xff\xff\xff\xff" + bytes(60),
)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("piece", PIECES)
def test_a_journal_that_was_made_to_be_slow_is_given_up_soon(piece: bytes, version: int) -> None:
    """Of 2 MB; each took from minutes to days where every place was tried to the end."""
    data = mcpmem.MAGIC[version] + piece * (2_000_000 // len(piece)) + bytes(500_000)
    began = time.monotonic()
    try:
        read(data, "2026-01-01 00:00:00", "x.mcpmem")
    except StoreDamaged as fault:
        assert "nearly nothing is a record" in str(fault) and "restore" in str(fault)
    assert time.monotonic() - began < 60


@pytest.fixture(scope="module")
def transcript(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("transcript")
    space = open_space(folder / "memory.db")
    call = Caller(space)
    call("create_entities", entities=[person("Ada", "likes tea"), person("Bob")])
    call("create_relations", relations=[link("Ada", "knows", "Bob")])
    call("delete_entities", entityNames=["Bob"])
    call("undo")
    export_memory(space, str(folder / "all.mcphistory"), Errand())
    space.close()
    return (folder / "all.mcphistory").read_bytes()


@settings(COMMON, max_examples=40)
@given(data=st.data())
def test_a_transcript_that_was_altered_anywhere_changes_nothing(transcript: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(transcript)))
    until = data.draw(st.integers(at, min(len(transcript), at + 40)))
    put = data.draw(st.binary(max_size=20) | LINES)
    altered = transcript[:at] + put + transcript[until:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.mcphistory"
        path.write_bytes(altered)
        space = open_space(Path(folder) / "memory.db", roots=(folder,))
        desk = Caller(space).desk
        answer = desk.call(desk.tools["migrate"], msgspec.json.encode({"source_path": str(path)}))
        if answer.is_error:
            assert "inside the server" not in (answer.text or "")
            assert space.graph().seq == 0
        assert [finding.text for finding in space.check()] == []
        space.close()


QUERIES = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.sampled_from('" * ( ) ^ NEAR AND OR NOT : - + .* % _ \\ tea Ada { } | [a-z]+ NEAR/2 rowid name:'.split())
    ).map(" ".join),
)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Space:
    space = open_space(tmp_path_factory.mktemp("searched") / "memory.db")
    call = Caller(space)
    call("create_entities", entities=[person("Ada", 'says "tea" (often) 100%_*'), person("Bob^2", "NEAR the AND gate")])
    space.settle()
    return space


@settings(COMMON, max_examples=80)
@given(query=QUERIES)
@pytest.mark.parametrize("tool", ["search_nodes", "search_semantic", "search_reflections", "history"])
def test_any_text_is_a_question_and_never_a_command(searched: Space, tool: str, query: str) -> None:
    desk = Caller(searched).desk

    answer = desk.call(desk.tools[tool], msgspec.json.encode({"query": query}))

    assert not answer.is_error or "NUL" in (answer.text or "") or "Query" in (answer.text or ""), answer.text


@settings(COMMON, max_examples=60)
@given(
    content=st.binary(max_size=200) | FILES, name=st.sampled_from(["a.db", "a.jsonl", "a.mcpmem", "a.mcphistory", "a"])
)
def test_any_file_can_be_named_to_migrate(content: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        space = open_space(Path(folder) / "memory.db", roots=(folder,))
        desk = Caller(space).desk

        answer = desk.call(desk.tools["migrate"], msgspec.json.encode({"source_path": str(path)}))

        assert "inside the server" not in (answer.text or "")
        assert path.read_bytes() == content
        assert [finding.text for finding in space.check()] == []
        space.close()
