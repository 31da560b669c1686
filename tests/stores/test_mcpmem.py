"""The bytes of a journal: what the Rust server writes is what we write, and what is no record costs only itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcp_memory.stores.journal import mcpmem
from mcp_memory.stores.journal.mcpmem import BAD, LARGEST, TORN, Record, TooLarge

# Written by the Rust server: A with "hi", B, A-r->B, "x" to A, "hi" forgotten, A-r->B gone, B gone in a transaction.
EXAMPLE = bytes.fromhex(
    "4d43504d454d5631"
    "13000000 00 010041 010074 01000000 02006869"
    "0f000000 00 010042 010074 00000000"
    "0e000000 01 010041 010042 010072"
    "0f000000 02 010041 01000000 010078"
    "10000000 04 010041 01000000 02006869"
    "0e000000 05 010041 010042 010072"
    "05000000 06  08000000 03 010042  05000000 07"
)
EXAMPLE_RECORDS: list[Record] = [
    *mcpmem.create_entity("A", "t", ["hi"]),
    *mcpmem.create_entity("B", "t", []),
    mcpmem.create_relation("A", "B", "r"),
    *mcpmem.add_observations("A", ["x"]),
    *mcpmem.delete_observations("A", ["hi"]),
    mcpmem.delete_relation("A", "B", "r"),
    (mcpmem.BEGIN, b""),
    mcpmem.delete_entity("B"),
    (mcpmem.COMMIT, b""),
]
SAID = [
    (0, ("A", "t", ["hi"])),
    (0, ("B", "t", [])),
    (1, ("A", "B", "r")),
    (2, ("A", ["x"])),
    (4, ("A", ["hi"])),
    (5, ("A", "B", "r")),
    (6, ()),
    (3, ("B",)),
    (7, ()),
]

TEXT = st.text(max_size=8) | st.sampled_from(["", "\0\0\0", "Łódź", "🜁" * 3, "\x05\0\0\0\x06"])
RECORD: st.SearchStrategy[list[Record]] = st.one_of(
    st.builds(mcpmem.create_entity, TEXT, TEXT, st.lists(TEXT, max_size=3)),
    st.builds(lambda *triple: [mcpmem.create_relation(*triple)], TEXT, TEXT, TEXT),
    st.builds(mcpmem.add_observations, TEXT, st.lists(TEXT, max_size=3)),
    st.builds(lambda name: [mcpmem.delete_entity(name)], TEXT),
    st.builds(mcpmem.delete_observations, TEXT, st.lists(TEXT, max_size=3)),
    st.builds(lambda *triple: [mcpmem.delete_relation(*triple)], TEXT, TEXT, TEXT),
    st.sampled_from([[(mcpmem.BEGIN, b"")], [(mcpmem.COMMIT, b"")]]),
)
RECORDS = st.lists(RECORD, max_size=8).map(lambda groups: [record for group in groups for record in group])
VERSIONS = st.sampled_from([1, 2])

ENCODE: tuple[Callable[..., list[Record]], ...] = (
    mcpmem.create_entity,
    lambda *triple: [mcpmem.create_relation(*triple)],
    mcpmem.add_observations,
    lambda name: [mcpmem.delete_entity(name)],
    mcpmem.delete_observations,
    lambda *triple: [mcpmem.delete_relation(*triple)],
    lambda: [(mcpmem.BEGIN, b"")],
    lambda: [(mcpmem.COMMIT, b"")],
)


def said(data: bytes, version: int, at: int = 0) -> list[tuple[int, Any]]:
    return [(kind, fields) for kind, _, _, fields in mcpmem.scan(data, at, version)]


def records_in(data: bytes, version: int) -> list[tuple[int, Any]]:
    return [found for found in said(data, version) if found[0] not in (BAD, TORN)]


def test_the_example_is_written_byte_for_byte_and_read_back() -> None:
    assert mcpmem.MAGIC[1] + mcpmem.frame(EXAMPLE_RECORDS, 1) == EXAMPLE
    assert said(EXAMPLE, 1, at=8) == SAID


def test_version_two_adds_a_checksum_of_the_payload() -> None:
    assert mcpmem.MAGIC[2] == b"MCPMEMV2"
    assert mcpmem.frame(EXAMPLE_RECORDS[:1], 2) == bytes.fromhex("1700000000010041010074010000000200686971de5a74")
    assert mcpmem.frame([(mcpmem.BEGIN, b"")], 2) == bytes.fromhex("090000000600000000")
    assert said(mcpmem.frame(EXAMPLE_RECORDS, 2), 2) == SAID


@given(RECORDS, VERSIONS)
@settings(max_examples=150, deadline=None)
def test_what_was_written_is_read(records: list[Record], version: int) -> None:
    found = list(mcpmem.scan(mcpmem.frame(records, version), 0, version))

    assert [end - start for _, start, end, _ in found] == [len(mcpmem.frame([one], version)) for one in records]
    assert [kind for kind, *_ in found] == [kind for kind, _ in records]
    again = [record for kind, _, _, fields in found for record in ENCODE[kind](*fields)]
    assert again == records


@given(RECORDS, VERSIONS, st.data())
@settings(max_examples=100, deadline=None)
def test_any_prefix_is_whole_records_and_perhaps_one_torn(records: list[Record], version: int, data: Any) -> None:
    whole = mcpmem.frame(records, version)
    prefix = whole[: data.draw(st.integers(0, len(whole)))]
    found = list(mcpmem.scan(prefix, 0, version))

    complete = [one for one in mcpmem.scan(whole, 0, version) if one[2] <= len(prefix)]
    assert found[: len(complete)] == complete
    assert [kind for kind, *_ in found[len(complete) :]] == ([TORN] if complete_length(complete) < len(prefix) else [])


def complete_length(found: list[mcpmem.Found]) -> int:
    return found[-1][2] if found else 0


@given(RECORDS, VERSIONS, st.binary(max_size=80), RECORDS)
@settings(max_examples=200, deadline=None)
def test_rubbish_costs_no_record_before_it(
    records: list[Record], version: int, rubbish: bytes, more: list[Record]
) -> None:
    good = mcpmem.frame(records, version)
    found = list(mcpmem.scan(good + rubbish + mcpmem.frame(more, version), 0, version))

    expected = list(mcpmem.scan(good, 0, version))
    assert found[: len(expected)] == expected
    covered = 0
    for _, start, end, _ in found:  # every byte is told of exactly once
        assert start == covered < end
        covered = end
    assert covered == len(good + rubbish) + len(mcpmem.frame(more, version))


@given(st.binary(max_size=300), VERSIONS)
@example(b"\x00" * 300, 1)
@example(b"\x05\x00\x00\x00\x00" * 40, 1)
@settings(max_examples=200, deadline=None)
def test_no_bytes_make_reading_fail(data: bytes, version: int) -> None:
    list(mcpmem.scan(data, 0, version))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("offset", range(19))
def test_behind_a_damaged_record_the_others_are_found(version: int, offset: int) -> None:
    """The second record is struck, anywhere: also in its length and in its kind."""
    first, second, *rest = [mcpmem.frame([record], version) for record in EXAMPLE_RECORDS[:4]]
    struck = bytearray(second)
    place = offset % len(second)
    struck[place] ^= 0xFF
    found = records_in(first + bytes(struck) + b"".join(rest), version)

    lengths_struck = offset % len(second) < 4
    assert SAID[0] in found and SAID[3] in found
    if version == 2:  # a record whose length alone is wrong is no loss
        assert found == [SAID[0], *SAID[2:4]] or (lengths_struck and found == SAID[:4])


def test_a_kind_from_the_future_is_left_out_and_reading_goes_on() -> None:
    data = mcpmem.frame([EXAMPLE_RECORDS[0], (9, b"new"), EXAMPLE_RECORDS[1]], 2)

    assert [kind for kind, _ in said(data, 2)] == [0, BAD, 0]
    assert said(mcpmem.frame([EXAMPLE_RECORDS[0], (9, b"new")], 2), 2)[-1] == (BAD, ("no record is of kind 9",))


def test_bytes_behind_the_content_of_a_record_are_ignored() -> None:
    kind, payload = EXAMPLE_RECORDS[0]

    assert records_in(mcpmem.frame([(kind, payload + b"more")], 1), 1) == [SAID[0]]


def test_a_long_stretch_of_nothing_is_passed_quickly_and_what_follows_is_found() -> None:
    data = mcpmem.frame(EXAMPLE_RECORDS[:1], 1) + bytes(3_000_000) + mcpmem.frame(EXAMPLE_RECORDS[1:4], 1)

    assert records_in(data, 1) == SAID[:4]


def test_what_no_record_can_hold_is_split_or_refused() -> None:
    texts = [f"{number:05}" * 5000 for number in range(60)]  # 25,000 bytes each, 1.5 MB together
    for records in (mcpmem.create_entity("A", "t", texts), mcpmem.add_observations("A", texts)):
        data = mcpmem.frame(records, 2)
        found = list(mcpmem.scan(data, 0, 2))

        assert len(found) == 2
        assert all(end - start <= LARGEST for _, start, end, _ in found)
        assert [text for *_, fields in found for text in fields[-1]] == texts
    with pytest.raises(TooLarge, match="65,536 bytes"):
        mcpmem.create_entity("A", "t", ["x" * 65_536])
    with pytest.raises(TooLarge, match="says the same thing twice"):
        mcpmem.create_entity("A", "t", [*texts, texts[0]])
    assert len(mcpmem.create_entity("A", "t", ["x" * 65_535])) == 1
