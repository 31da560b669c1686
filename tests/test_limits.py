"""Limits that hold whoever asks: no input takes memory or time without end, and no path leads out of its roots.

`bench/hostile.py` measures the same at full size; here each is as small as tells it."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import msgspec
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.facts import MemoryFault
from mcp_memory.server import main
from mcp_memory.settings import BadSetting
from mcp_memory.space import Space
from mcp_memory.tools.catalog import catalog
from mcp_memory.wire import tokens
from mcp_memory.wire.jsonrpc import MOST_BYTES
from tests.conftest import Caller, person
from tests.crash.harness import Server
from tests.wire.toy import Client

DEEP = "[" * 10_000 + "]" * 10_000
DEEP_OBJECT = '{"a":' * 10_000 + "1" + "}" * 10_000
POSIX = os.name == "posix"


# ── nested without end, through every door ───────────────────────────────────────────────────────


@pytest.mark.parametrize("depth", [100, 800, 950, 1_000, 10_000])
@pytest.mark.parametrize(
    "params",
    [
        '{"name":"read_graph","arguments":%s}',
        '{"name":"create_entities","arguments":{"entities":%s}}',
        '{"name":"create_entities","arguments":{"entities":[],"x":%s,"y":"\\u0000"}}',
        '{"name":"create_entities","arguments":{"entities":[{"name":"x","observations":null}],"z":%s}}',
        '{"name":"read_graph","arguments":{"x":%s,"as_of":"1"}}',
        '{"name":"read_graph","_meta":{"progressToken":%s}}',
        '{"name":"read_graph","_meta":{"io.modelcontextprotocol/clientInfo":{"name":%s}}}',
        '{"name":"create_entities","arguments":{"entities":[]},"_meta":{"mcp-memory/requestKey":%s}}',
        '{"name":%s}',
        '{"uri":%s,"ref":%s,"notifications":%s}',
    ],
)
@pytest.mark.parametrize("method", ["tools/call", "initialize", "resources/read", "completion/complete", "prompts/get"])
def test_a_request_of_any_depth_is_answered_under_its_id(method: str, params: str, depth: int) -> None:
    client = Client(tools=catalog())
    nested = "[" * depth + "]" * depth

    (answer,) = client.line(
        '{"jsonrpc":"2.0","id":7,"method":"%s","params":%s}' % (method, params.replace("%s", nested))  # noqa: UP031
    )

    assert answer["id"] == 7
    assert answer.get("error", {}).get("code") != -32603
    assert "inside the server" not in json.dumps(answer)
    assert client.result("ping") == {}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", DEEP_OBJECT),
        ("b.jsonl", f'{{"type":"entity","name":"x","entityType":"t","observations":[],"more":{DEEP}}}'),
        ("c.jsonl", f'{{"type":"entity","name":"x","entityType":"t","observations":{DEEP}}}'),
        ("d.mcphistory", f'{{"format":"mcp-memory history","version":1,"floor":0,"x":{DEEP}}}\n'),
        (
            "e.mcphistory",
            f'{{"format":"mcp-memory history","version":1,"floor":0}}\n{{"seq":1,"changes":{DEEP}}}\n{{}}\n',
        ),
        ("f.mcphistory", f'{{"format":"mcp-memory history","version":1,"floor":0}}\n{DEEP_OBJECT}\n'),
    ],
)
def test_a_file_that_is_nested_without_end_is_skipped_or_refused(
    name: str, content: str, keep: Caller, database: Path
) -> None:
    path = database.parent / name
    path.write_text(content)

    answer = keep.desk.call(keep.desk.tools["migrate"], msgspec.json.encode({"source_path": str(path)}))

    assert "inside the server" not in (answer.text or "")
    assert keep("graph_stats")["entities"] == 0
    if path.suffix == ".jsonl":
        space = open_space(path)
        try:
            assert space.graph().entity_count == 0
        except MemoryFault as fault:
            assert "not a JSONL memory file" in str(fault)
        finally:
            space.close()


@pytest.mark.parametrize("content", [f"profile = {DEEP}", f"profile = {DEEP_OBJECT}", "a." * 1_500 + "b = 1"])
def test_settings_that_are_nested_without_end_are_refused(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "settings.toml").write_text(content)

    assert main(["--settings", str(tmp_path / "settings.toml"), "stats"]) == 2
    assert str(tmp_path / "settings.toml") in capsys.readouterr().err


@pytest.mark.parametrize("content", [DEEP_OBJECT, f'{{"tokens":{DEEP}}}', f'{{"tokens":[{{"name":{DEEP_OBJECT}}}]}}'])
def test_a_list_of_tokens_that_is_nested_without_end_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text(content)

    with pytest.raises(BadSetting, match="is no list of tokens"):
        tokens.read_tokens(str(tmp_path / "tokens.json"))


# ── large ────────────────────────────────────────────────────────────────────────────────────────


def peak_mb(server: Server) -> float:
    """The most memory there ever was in use; 0 where nobody tells."""
    if sys.platform != "linux":
        return 0.0
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def test_the_longest_line_is_answered_and_a_longer_one_is_not_kept(tmp_path: Path) -> None:
    with Server(tmp_path / "memory.db") as server:
        server.call("create_entities", entities=[person("Ada")])
        before = peak_mb(server)
        found = server.call("open_nodes", names=["Ada"], padding="x" * (MOST_BYTES - 300))
        assert found["entities"][0]["name"] == "Ada"
        assert peak_mb(server) - before < 8 * 16

        before = peak_mb(server)
        assert server.process.stdin is not None
        for _ in range(100):
            server.process.stdin.write(b"x" * (1 << 20))
        server.process.stdin.write(b"\n")
        assert server.call("open_nodes", names=["Ada"])["entities"]
        assert peak_mb(server) - before < 16
        server.close()


@pytest.mark.parametrize("name", ["memory.db", "memory.mcpmem"])
def test_an_import_takes_memory_by_its_size_and_no_more(name: str, tmp_path: Path) -> None:
    count = 20_000
    source = tmp_path / "source.jsonl"
    lines = [
        {"type": "entity", "name": f"n{i}", "entityType": "T", "observations": [f"seen {i}"]} for i in range(count)
    ]
    source.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    with Server(tmp_path / name, "--roots", str(tmp_path)) as server:
        server.call("create_entities", entities=[person("Ada")])
        before = peak_mb(server)
        assert server.call("migrate", source_path=str(source))["entities_imported"] == count
        assert peak_mb(server) - before < 32 + count * 4000 / 2**20
        assert server.call("open_nodes", names=["n7"])["entities"][0]["observations"] == ["seen 7"]
        server.close()


PATTERNS = [
    "(a+)+$" + "a" * 400, "(" * 250 + ")" * 250, ".*" * 200, "%_" * 200, '"' * 499, "NEAR(" * 80, "a* OR " * 80,
    "\\" * 500, "e" * 500, "e " * 249, "[[:alpha:]]" * 40, "(?=" * 160, "\u0301" * 500, "İ" * 500, "ﷺ" * 500,
]  # fmt: skip


@pytest.mark.parametrize("tool", ["search_nodes", "search_semantic", "search_reflections", "history"])
def test_a_query_that_looks_like_a_pattern_is_a_text_and_costs_no_more(tool: str, many: Caller) -> None:
    many(tool, query="warm")
    began = time.monotonic()
    for query in PATTERNS:
        many(tool, query=query)

    assert time.monotonic() - began < 60


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Caller:
    """Entities that those patterns would be slow on."""
    space: Space = open_space(tmp_path_factory.mktemp("many") / "memory.db")
    call = Caller(space)
    for start in range(0, 1000, 50):
        told = [person(f"{'a' * 40} {i} e", "a" * 1000 + "!", "e " * 500) for i in range(start, start + 50)]
        call("create_entities", entities=told)
    return call


# ── paths ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that lies where nobody may read."""
    path = tmp_path_factory.mktemp("outside") / "secret.jsonl"
    path.write_text('{"type":"entity","name":"secret","entityType":"t","observations":[]}\n')
    return path


def ways_out(root: Path, secret: Path) -> dict[str, str]:
    """A path for each trick; those with links make them."""
    (root / "down").mkdir()
    (root / "link.jsonl").symlink_to(secret)
    (root / "folder").symlink_to(secret.parent, target_is_directory=True)
    (root / "chain.jsonl").symlink_to(root / "link.jsonl")
    up = os.path.relpath(secret, root)
    return {
        "absolute": str(secret),
        "up": str(root / up),
        "up from a folder": str(root / "down" / ".." / up),
        "up from nothing": str(root / "nothing" / ".." / up),
        "a link": str(root / "link.jsonl"),
        "a chain of links": str(root / "chain.jsonl"),
        "through a linked folder": str(root / "folder" / secret.name),
        "a root's name and more": str(root) + "-beside/" + secret.name,
        "another's home": "~root/secret.jsonl",
        "a file address": f"file://{secret}",
        "a NUL": f"{root}/x\0/../../{secret}",
    }


TRICKS = [
    "absolute", "up", "up from a folder", "up from nothing", "a link", "a chain of links", "through a linked folder",
    "a root's name and more", "another's home", "a file address", "a NUL",
]  # fmt: skip


@pytest.mark.skipif(not POSIX, reason="making links needs a privilege on Windows")
@pytest.mark.parametrize("trick", TRICKS)
def test_no_path_leads_out_of_the_roots(trick: str, keep: Caller, database: Path, outside: Path) -> None:
    beside = Path(f"{database.parent}-beside")
    beside.mkdir()
    (beside / outside.name).write_bytes(outside.read_bytes())

    said = keep.refusal("migrate", source_path=ways_out(database.parent, outside)[trick])

    assert "lies outside" in said or "cannot be read" in said or "NUL" in said
    assert keep("read_graph")["entities"] == []
    assert sorted(one.name for one in outside.parent.iterdir()) == [outside.name]


@pytest.mark.skipif(not POSIX, reason="making links needs a privilege on Windows")
def test_what_is_kept_aside_does_not_follow_a_link_out(keep: Caller, database: Path, outside: Path) -> None:
    source = database.parent / "source.jsonl"
    source.write_text("no line\n")
    Path(f"{source}.quarantine").symlink_to(outside)
    before = outside.read_bytes()

    assert keep("migrate", source_path=str(source))["quarantine"] is None
    assert outside.read_bytes() == before


@pytest.mark.skipif(not POSIX, reason="there are no named pipes in folders on Windows")
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_refused_at_once(kind: str, keep: Caller, database: Path) -> None:
    place = database.parent / f"{kind}.jsonl"
    os.mkfifo(place) if kind == "pipe" else place.mkdir()

    assert "no file that could be read" in keep.refusal("migrate", source_path=str(place))


def test_every_argument_that_is_a_path_is_known_here() -> None:
    """A new one must be confined, and tried above."""
    found = {
        (tool.name, name)
        for tool in catalog("full").values()
        for name, kind in tool.schema["properties"].items()
        if kind.get("type") == "string" and any(word in name.lower() for word in ("path", "file", "folder", "dir"))
        if name != "direction"
    }

    assert found == {("migrate", "source_path")}
