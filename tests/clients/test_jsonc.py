"""JSON with comments, edited in place: what an edit is not about stays byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.clients.jsonc import parse, with_item, with_value, without
from mcp_memory.clients.text import Broken

KEYS = ("mcpServers", "memory")
ENTRY = {"command": "mcp-memory"}

COMMENTED = """\
// what this is for
{
    /* two
       lines */
    "mcpServers": { // ours
        "git": { "command": "git-mcp" }, // keep
        // nothing after this
    },
    "other": [1, 2,], // "not": {a comment}
}
"""


def test_comments_and_order_stay_and_the_entry_comes_in_the_manner_of_its_neighbours() -> None:
    made = with_value(COMMENTED, KEYS, ENTRY)

    assert made == COMMENTED.replace(
        "}, // keep\n", '}, // keep\n        "memory": {\n            "command": "mcp-memory"\n        },\n'
    )
    assert without(made, KEYS) == COMMENTED


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "mcpServers": {\n    "memory": {\n      "command": "mcp-memory"\n    }\n  }\n}\n'),
        ("{}", '{\n  "mcpServers": {\n    "memory": {\n      "command": "mcp-memory"\n    }\n  }\n}'),
        ('{"a": 1}\n', '{"a": 1, "mcpServers": {"memory": {"command": "mcp-memory"}}}\n'),
        (
            '{\n\t"mcpServers": {}\n}',
            '{\n\t"mcpServers": {\n\t\t"memory": {\n\t\t\t"command": "mcp-memory"\n\t\t}\n\t}\n}',
        ),
        (
            '{\r\n  "a": 1 // one\r\n}\r\n',
            '{\r\n  "a": 1, // one\r\n  "mcpServers": {\r\n    "memory": {\r\n      "command": "mcp-memory"\r\n'
            "    }\r\n  }\r\n}\r\n",
        ),
        (
            '{\n  "mcpServers": { // none yet\n  }\n}',
            '{\n  "mcpServers": { // none yet\n    "memory": {\n      "command": "mcp-memory"\n    }\n  }\n}',
        ),
        (
            '{\n  "mcpServers": {\n    "memory": {"command": "old", "args": []}, "b": {}\n  }\n}',
            '{\n  "mcpServers": {\n    "memory": {\n      "command": "mcp-memory"\n    }, "b": {}\n  }\n}',
        ),
    ],
)
def test_an_entry_fits_in_wherever_it_comes(before: str, after: str) -> None:
    assert with_value(before, KEYS, ENTRY) == after
    assert parse(after).value["mcpServers"]["memory"] == ENTRY


def test_of_two_keys_of_one_name_the_last_is_meant() -> None:
    assert with_value('{"a": 1, "a": 2}', ["a"], 3) == '{"a": 1, "a": 3}'


def test_a_list_gets_an_item_more_and_loses_it_again() -> None:
    before = '{\n  "hooks": {\n    "SessionStart": [\n      {"a": 1} // first\n    ]\n  }\n}\n'
    made = with_item(before, ["hooks", "SessionStart"], {"b": 2})

    assert parse(made).value == {"hooks": {"SessionStart": [{"a": 1}, {"b": 2}]}}
    assert '{"a": 1}, // first' in made
    assert without(made, ["hooks", "SessionStart"], 1) == before


def test_containers_that_were_made_for_an_entry_go_with_it_and_no_others() -> None:
    assert parse(without(with_value('{"x": 1}', KEYS, ENTRY), KEYS, emptied=1)).value == {"x": 1}
    assert parse(without(with_value('{"x": 1}', KEYS, ENTRY), KEYS)).value == {"x": 1, "mcpServers": {}}
    assert parse(without('{"mcpServers": {"memory": 1, "b": 2}}', KEYS, emptied=1)).value == {"mcpServers": {"b": 2}}


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', (3, 3), "a comma or } is expected"),
        ('{"a": }', (1, 7), "a value is expected"),
        ('{\n  "a": [1, 2\n', (3, 1), "it ends too early"),
        ("{'a': 1}", (1, 2), "a name in quotation marks"),
        ('{"a" 1}', (1, 6), "a colon is expected"),
        ('{"a": 1} x', (1, 10), "something after the end"),
        ("[1]", (1, 1), "it must be an object"),
        ('{"a": "b\nc"}', (1, 7), "a value is expected"),
        ('{"a": 01}', (1, 8), "a comma or }"),
        ("{" + '"a":{' * 300, (1, 1), "nested too deeply"),
    ],
)
def test_what_is_broken_is_told_with_its_place(text: str, place: tuple[int, int], what: str) -> None:
    with pytest.raises(Broken) as fault:
        parse(text)

    assert what in str(fault.value)
    if "nested" not in what:
        assert (fault.value.line, fault.value.column) == place


@pytest.mark.parametrize(("text", "what"), [('{"a": 1,}', "no comma"), ('// hello\n{"a": 1}', "no comments")])
def test_a_strict_client_is_not_given_what_it_cannot_read(text: str, what: str) -> None:
    assert parse(text).value == {"a": 1}
    with pytest.raises(Broken, match=what):
        parse(text, lenient=False)


def test_a_way_through_something_that_is_no_object_is_refused() -> None:
    with pytest.raises(Broken, match="line 2, column 17: mcpServers must be an object"):
        with_value('{\n  "mcpServers": []\n}', KEYS, ENTRY)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text('ab"\\/{}[],:é \n', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc{/", max_size=3), inner, max_size=3),
    max_leaves=8,
)
GAPS = st.sampled_from(["", " ", "\n", "\n\t", "// {\n", "/* } */", "  /*\n,*/ ", "\r\n  "])


@st.composite
def documents(draw: Any) -> str:
    """An object as somebody may have written it, gaps and comments wherever they are allowed."""

    def gap() -> str:
        return str(draw(GAPS))

    def written(value: Any) -> str:
        if isinstance(value, dict):
            members = [f"{gap()}{json.dumps(key)}{gap()}:{gap()}{written(each)}{gap()}" for key, each in value.items()]
            comma = "," + gap() if members and draw(st.booleans()) else ""
            return "{" + ",".join(members) + comma + gap() + "}"
        if isinstance(value, list):
            return "[" + ",".join(f"{gap()}{written(each)}{gap()}" for each in value) + gap() + "]"
        return json.dumps(value)

    servers = draw(st.dictionaries(st.text("abc", min_size=1, max_size=3), PLAIN, max_size=3))
    rest = draw(st.dictionaries(st.text("xyz", min_size=1, max_size=3), PLAIN, max_size=3))
    whole = rest | ({"mcpServers": servers} if draw(st.booleans()) else {})
    return f"{draw(GAPS)}{written(whole)}{draw(GAPS)}"


@given(documents())
def test_whatever_the_file_looks_like_the_entry_goes_in_and_comes_out_and_nothing_else_changes(text: str) -> None:
    before = parse(text).value
    made = with_value(text, KEYS, ENTRY)

    after = parse(made).value
    assert after.pop("mcpServers") == {**before.get("mcpServers", {}), "memory": ENTRY}
    assert after == {key: value for key, value in before.items() if key != "mcpServers"}
    assert parse(without(made, KEYS, emptied=0 if "mcpServers" in before else 1)).value == before
    kept = iter(made)  # every character that was there is still there, in its order; only space may have gone
    assert all(character in kept for character in text if not character.isspace())
