"""One table of a TOML file, edited in place."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.clients.text import Broken
from mcp_memory.clients.tomltext import parse, rendered, statements, with_table, without_table

KEYS = ("mcp_servers", "memory")
ENTRY = {"command": "/path/to/mcp-memory", "args": ["--profile", "core"], "env": {"A": "b"}}
TABLE = """\
[mcp_servers.memory]
command = "/path/to/mcp-memory"
args = ["--profile", "core"]
env = { A = "b" }
"""

FILE = '''\
# how I like it
model = "gpt-5" # the good one
notes = """
[mcp_servers.memory]
not a table = at all
"""

[mcp_servers.git] # keep
command = "git-mcp"
args = [
  "[mcp_servers.memory]", # in an array
]

# for later
[profiles."a.b"]
x = 1
'''


def test_a_new_table_comes_at_the_end_and_the_rest_stays_byte_for_byte() -> None:
    made = with_table(FILE, KEYS, ENTRY)

    assert made == FILE + "\n" + TABLE
    assert without_table(made, KEYS) == FILE


@pytest.mark.parametrize("text", ["", "a = 1", "a = 1\n", "\n"])
def test_whatever_the_end_of_the_file_looks_like(text: str) -> None:
    made = with_table(text, KEYS, ENTRY)

    assert tomllib.loads(made) == {**tomllib.loads(text), "mcp_servers": {"memory": ENTRY}}
    assert made.endswith(TABLE)


OLD = """\
[a]
x = 1

[mcp_servers.memory] # the official one
command = "npx"
args = [
  "-y",
  "server-memory",
]

[mcp_servers.memory.env]
MEMORY_FILE_PATH = "m.jsonl"

# about b
[b]
y = 2

[mcp_servers.memory.tools.read_graph]
approval = "ask"
"""


def test_an_old_table_is_replaced_where_it_stands_with_its_subtables() -> None:
    made = with_table(OLD, KEYS, ENTRY)

    assert made.startswith("[a]\nx = 1\n\n" + TABLE)
    assert "# about b\n[b]\ny = 2\n" in made
    assert tomllib.loads(made) == {"a": {"x": 1}, "b": {"y": 2}, "mcp_servers": {"memory": ENTRY}}


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers]\nmemory = { command = "x" }\ngit = { command = "y" }\n',
        '[mcp_servers]\nmemory.command = "x"\nmemory.args = []\ngit.command = "y"\n',
        'mcp_servers."memory".command = "x"\nmcp_servers.git.command = "y"\n',
        '[ mcp_servers . \'memory\' ]\r\ncommand = "x"\r\n[mcp_servers.git]\r\ncommand = "y"\r\n',
    ],
)
def test_a_table_is_found_however_it_is_written(text: str) -> None:
    assert tomllib.loads(without_table(text, KEYS)) == {"mcp_servers": {"git": {"command": "y"}}}
    assert tomllib.loads(with_table(text, KEYS, ENTRY)) == {"mcp_servers": {"git": {"command": "y"}, "memory": ENTRY}}


def test_statements_know_what_they_are_about() -> None:
    assert [(s.path, s.is_header) for s in statements(FILE)] == [
        (("model",), False),
        (("notes",), False),
        (("mcp_servers", "git"), True),
        (("mcp_servers", "git", "command"), False),
        (("mcp_servers", "git", "args"), False),
        (("profiles", "a.b"), True),
        (("profiles", "a.b", "x"), False),
    ]
    assert [s.path for s in statements("[[x.y]]\na = {b = 1}\n")] == [("x", "y"), ("x", "y", "a")]


def test_what_is_broken_is_told_with_its_place() -> None:
    with pytest.raises(Broken) as fault:
        parse("a = 1\nb = \n")

    assert (fault.value.line, fault.value.column) == (2, 5)


@settings(max_examples=50)
@given(st.recursive(st.text() | st.integers() | st.booleans(), lambda i: st.lists(i) | st.dictionaries(st.text(), i)))
def test_what_is_written_is_read_the_same(value: object) -> None:
    assert tomllib.loads(f"x = {rendered(value)}") == {"x": value}
