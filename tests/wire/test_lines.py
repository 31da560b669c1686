"""Chunks into lines, whatever the chunks are; and the id of a line that cannot be kept or read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.wire.jsonrpc import NULL, SEARCHED, as_text, encode, salvaged_id
from mcp_memory.wire.lines import Lines, TooLong


@given(st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.integers(1, 9))
def test_lines_come_out_as_they_went_in_however_they_are_cut(lines: list[bytes], size: int) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter = Lines()

    out = [line for at in range(0, len(stream), size) for line in splitter.feed(stream[at : at + size])]

    assert out == lines
    assert splitter.end() == []


def test_the_last_line_needs_no_end() -> None:
    splitter = Lines()

    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.feed(b"o") == []
    assert splitter.end() == [b"two"]


def test_line_separators_of_unicode_are_text() -> None:
    text = "a\u2028b\u0085c\x0bd".encode()

    assert Lines().feed(text + b"\n") == [text]


@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_line_over_the_limit_is_skipped_without_being_kept(size: int) -> None:
    splitter = Lines(most=20)
    stream = b"before\n" + b"x" * 500 + b"y\nafter\n"

    out: list[bytes | TooLong] = []
    kept = 0
    for at in range(0, len(stream), size):
        out += splitter.feed(stream[at : at + size])
        kept = max(kept, sum(map(len, splitter._parts)))

    before, skipped, after = out
    assert (before, after) == (b"before", b"after")
    assert isinstance(skipped, TooLong)
    assert skipped.head.startswith(b"xxx")
    assert skipped.tail.endswith(b"xy")
    assert kept <= 20 + size


def test_a_line_of_exactly_the_limit_is_a_line() -> None:
    splitter = Lines(most=20)
    out = [line for byte in b"x" * 20 + b"\n" for line in splitter.feed(bytes([byte]))]

    assert out == [b"x" * 20]


@pytest.mark.parametrize(
    ("line", "ident"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"\\ud800"}}', b"7"),
        (b'{"params":{"id":1,"x":[{"id":2}]},"id" : "a\\"}b" }', b'"a\\"}b"'),
        (b'{"params":{"text":"\\"id\\":3,"},"id":-4}', b"-4"),
        (b'{"id":5,"params":' + b"[" * 50_000, b"5"),
        (b'{"method":"id","id":6}', b"6"),
        (b'{"id":"\\ud800","x":1}', NULL),
        (b'{"id":8', NULL),
        (b'{"id":null,"x":nope}', NULL),
        (b'[{"id":9}]', NULL),
        (b"nonsense", NULL),
        (b'"' * 100_001, NULL),
        (b"", NULL),
    ],
)
def test_the_id_of_a_broken_request_is_found_where_it_can_be(line: bytes, ident: bytes) -> None:
    assert salvaged_id(line) == ident


JSON = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(JSON)
def test_an_object_as_text_reads_back_as_the_same_object(value: object) -> None:
    text = as_text(encode(value))

    assert json.loads(json.loads(text)) == value
    assert b"\n" not in text


def test_the_id_at_the_end_of_a_long_line_is_found() -> None:
    begun = b'{"method":"tools/call","params":{"name":"x","arguments":{"text":"' + b"a" * SEARCHED
    assert salvaged_id(begun + b'"}},"jsonrpc":"2.0","id":12}') == b"12"
    assert salvaged_id(begun, b'aaa"}},"jsonrpc":"2.0","id":"z"}\r') == b'"z"'
    assert salvaged_id(begun, b'aa\\"id\\":12}') == NULL
