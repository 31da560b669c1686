"""Tokens: how they are made and kept, what each allows over HTTP and TCP, and how soon they end."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.settings import BadSetting
from mcp_memory.tools.catalog import catalog
from mcp_memory.wire import access, tokens
from mcp_memory.wire.callers import Allowance, Denied
from tests.conftest import person
from tests.test_command import Run, no_settings_of_this_machine, run
from tests.wire.network import HELLO, PATIENCE, Line, Server, Toy, Web, call, real, remember, request, running

__all__ = ["no_settings_of_this_machine", "run"]  # fixtures
NOW = datetime(2026, 11, 19, 12, tzinfo=timezone.utc)
SCOPES = (("reader", ("read",)), ("writer", ("write",)), ("boss", ("admin",)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "secret" / "tokens.json"


@pytest.fixture
def secrets(file: Path) -> dict[str, str]:
    """A token for each scope."""
    return {name: tokens.create(str(file), name, scopes, "", NOW)[1] for name, scopes in SCOPES}


@pytest.fixture
def server(tmp_path: Path, file: Path, secrets: dict[str, str]) -> Iterator[Server]:
    with running(real(tmp_path / "memory.db", "http", "--auth-token-file", str(file), "--audit", "calls")) as server:
        yield server


def with_token(server: Server, secret: str) -> Web:
    return Web(server, Authorization=f"Bearer {secret}")


def create_ada(web: Web) -> Any:
    return web.modern("tools/call", name="create_entities", arguments={"entities": [person("Ada")]})


# ── the command and the file ─────────────────────────────────────────────────────────────────────


def test_a_token_is_shown_once_and_only_its_hash_is_kept(run: Run, file: Path) -> None:
    code, printed, said = run("--auth-token-file", file, "token", "create", "laptop", "--scopes", "read,write")
    secret = printed.strip()
    listed = run("--auth-token-file", file, "token", "list")[1]

    assert code == 0
    assert secret.startswith(tokens.PREFIX) and len(secret) > 45
    assert secret not in said + listed + file.read_text(encoding="utf-8")
    assert "laptop  read, write, without an end" in listed
    assert tokens.read_tokens(str(file))[0].sha256 == tokens.hashed(secret)


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
def test_only_its_owner_may_read_the_file(file: Path, secrets: dict[str, str]) -> None:
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(file.parent).st_mode) == 0o700


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["create", "laptop"], "There is a token named laptop already"),
        (["create", "a b"], "A token cannot be named 'a b'"),
        (["create", "new", "--scopes", "root"], "--scopes takes some of read, write, admin"),
        (["create", "new", "--expires", "soon"], "it must be a length such as 30d, 12h or 8w, or a date"),
        (["create", "new", "--expires", "2020-01-01"], "is over already"),
        (["revoke", "nobody"], "There is no token named nobody"),
        (["burn"], "mcp-memory token takes: create NAME, list, or revoke NAME."),
    ],
)
def test_a_mistake_changes_no_token(run: Run, file: Path, arguments: list[str], complaint: str) -> None:
    run("--auth-token-file", file, "token", "create", "laptop")
    before = file.read_bytes()

    code, _, complained = run("--auth-token-file", file, "token", *arguments)

    assert code == 2
    assert complaint in complained
    assert file.read_bytes() == before


def test_a_file_with_one_plain_token_is_not_turned_into_a_list(run: Run, tmp_path: Path) -> None:
    plain = tmp_path / "token"
    plain.write_text("a-plain-token\n", encoding="utf-8")

    code, _, complained = run("--auth-token-file", plain, "token", "create", "laptop")

    assert (code, plain.read_text(encoding="utf-8")) == (2, "a-plain-token\n")
    assert "Name another file" in complained


@pytest.mark.parametrize(
    ("expires", "end"),
    [("90m", "2026-11-19T13:30:00Z"), ("30d", "2026-12-19T12:00:00Z"), ("2026-12-31", "2026-12-31T00:00:00Z")],
)
def test_a_token_may_have_an_end(file: Path, expires: str, end: str) -> None:
    made, _ = tokens.create(str(file), "guest", ("read",), expires, NOW)

    assert made.expires == end


@pytest.mark.parametrize(
    "text",
    [
        "",
        "two words",
        '{"tokens": 7}',
        '{"tokens": [{"name": "a", "scopes": ["root"], "sha256": "00"}]}',
        '{"tokens": [{"name": "a", "scopes": ["read"], "sha256": "00"}]}',
        '{"tokens": [{"name": "a", "scopes": ["read"], "sha256": "' + "0" * 64 + '", "expires": "soon"}]}',
        '{"tokens": [], "more": 1}',
    ],
)
def test_a_file_that_holds_something_else_is_refused_at_the_start(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(BadSetting):
        access.Access(token_file=str(file))


# ── scopes ───────────────────────────────────────────────────────────────────────────────────────


def test_tools_need_the_scope_of_what_they_do() -> None:
    tools = catalog("full").values()

    assert {tool.name for tool in tools if tool.scope == "admin"} == {"compact", "migrate", "undo"}
    assert all(tool.scope == ("write" if tool.writes else "read") for tool in tools if tool.scope != "admin")


def test_each_scope_allows_what_it_says_and_no_more(server: Server, secrets: dict[str, str]) -> None:
    allowed = {}
    for name, secret in secrets.items():
        with with_token(server, secret) as web:
            read = web.modern("tools/call", name="open_nodes", arguments={"names": ["Ada"]})
            compact = web.modern("tools/call", name="compact", arguments={})
            allowed[name] = (read.status, create_ada(web).status, compact.status)

    assert allowed == {"reader": (200, 403, 403), "writer": (200, 200, 403), "boss": (200, 200, 200)}


def test_a_refusal_says_which_scope_is_wanted(server: Server, secrets: dict[str, str]) -> None:
    with with_token(server, secrets["reader"]) as web:
        refused = create_ada(web)

    assert refused.headers["www-authenticate"] == (
        'Bearer realm="mcp-memory", error="insufficient_scope", scope="read write"'
    )
    assert "create_entities needs a token with the scope write" in refused.message["error"]["message"]


@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25"])
def test_a_session_allows_no_more_than_its_token(server: Server, secrets: dict[str, str], version: str) -> None:
    writing = call(1, "create_entities", entities=[person("Ada")])
    with with_token(server, secrets["reader"]) as web, with_token(server, secrets["boss"]) as boss:
        key = web.shake_hands(version)
        assert web.post(writing).status == 403
        if version == "2025-03-26":  # a batch is no way around
            (said,) = web.post(b"[" + writing + b"]").message
            assert said["result"]["isError"] and "scope write" in said["result"]["content"][0]["text"]
        # The id of a session is worth nothing to the owner of another token, however mighty.
        assert boss.post(request("ping"), Mcp_Session_Id=key, MCP_Protocol_Version=version).status == 404
        assert json.loads(web.post(call(2, "graph_stats")).message["result"]["content"][0]["text"])["entities"] == 0


def test_a_token_is_shown_what_it_may_call_and_told_no_more(server: Server, secrets: dict[str, str]) -> None:
    offered: dict[str, list[set[str]]] = {}
    for name, secret in secrets.items():
        with with_token(server, secret) as web, with_token(server, secret) as session:
            session.shake_hands()
            lists = [web.modern("tools/list").message, session.post(request("tools/list")).message]
            offered[name] = [{tool["name"] for tool in said["result"]["tools"]} for said in lists]
            assert offered[name][0] == offered[name][1]
            prompts = {each["name"] for each in web.modern("prompts/list").message["result"]["prompts"]}
            skill = web.modern("resources/read", uri="skill://memory/SKILL.md").message["result"]["contents"][0]["text"]
            saves = [
                "Save" in web.modern("server/discover").message["result"]["instructions"],
                "tidy-up" in prompts,
                "`create_entities`" in skill,
            ]
            assert saves == [name != "reader"] * 3, name

    by_scope = {level: {tool.name for tool in catalog().values() if tool.level <= level} for level in (1, 2, 3)}
    assert [offered[name][0] for name in ("reader", "writer", "boss")] == list(by_scope.values())


def test_over_tcp_the_same_scopes_hold(tmp_path: Path, file: Path, secrets: dict[str, str]) -> None:
    writing = call(1, "create_entities", entities=[person("Ada")])
    with running(real(tmp_path / "memory.db", "tcp", "--auth-token-file", str(file))) as server:
        with Line(server, secrets["reader"].encode() + b"\n") as reader:
            refused = reader.ask(writing)["result"]
            assert refused["isError"] and "scope write" in refused["content"][0]["text"]
            assert "isError" not in reader.ask(call(2, "graph_stats"))["result"]
            listed = reader.ask(request("tools/list", 3))["result"]["tools"]
            assert all(tool["annotations"]["readOnlyHint"] for tool in listed)
        with Line(server, secrets["writer"].encode() + b"\n") as writer:
            assert "isError" not in writer.ask(writing)["result"]
            assert writer.ask(call(3, "compact"))["result"]["isError"]


def test_the_history_tells_whose_token_wrote(tmp_path: Path, server: Server, secrets: dict[str, str]) -> None:
    with with_token(server, secrets["writer"]) as web:
        assert create_ada(web).status == 200
    _, said = server.end()

    import apsw

    origins = apsw.Connection(str(tmp_path / "memory.db")).execute("select distinct origin from change").get
    assert origins == "modern/9 http as writer"
    assert 'called tool=create_entities by="modern/9 http as writer" outcome=ok ms=' in said


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────


def wait_for(holds: Any) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_revoked_token_is_refused_while_the_server_runs_and_its_streams_end(
    server: Server, file: Path, secrets: dict[str, str]
) -> None:
    with with_token(server, secrets["reader"]) as web, with_token(server, secrets["reader"]) as listener:
        stream = listener.modern("subscriptions/listen", "s", notifications={})
        assert stream.event()["method"] == "notifications/subscriptions/acknowledged"

        tokens.revoke(str(file), "reader")

        (ended,) = stream.messages()
        assert ended["id"] == "s"
        wait_for(lambda: web.modern("tools/list").status == 401)
        assert 'error="invalid_token"' in web.modern("tools/list").headers["www-authenticate"]
    with with_token(server, secrets["writer"]) as other:
        assert other.modern("tools/list").status == 200


def test_a_tcp_connection_ends_with_its_token(tmp_path: Path, file: Path, secrets: dict[str, str]) -> None:
    greeting = secrets["writer"].encode() + b"\n"
    with running(Toy(tmp_path, "tcp", "--auth-token-file", str(file))) as server, Line(server, greeting) as line:
        line.ask(remember(1, "Ada"))
        tokens.revoke(str(file), "writer")
        (ended,) = line.rest()
        assert "expired or was revoked" in ended["error"]["message"]


def test_a_token_holds_until_its_end_and_not_a_moment_longer(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    made, secret = tokens.create(str(file), "guest", ("read",), "1h", NOW)
    door = access.Access(token_file=str(file))
    monkeypatch.setattr(time, "time", lambda: made.until - 1)
    assert door.recognise(secret.encode()).name == "guest"

    monkeypatch.setattr(time, "time", lambda: made.until)
    with pytest.raises(Denied, match="expired"):
        door.recognise(b"Bearer " + secret.encode())


def test_a_broken_list_keeps_the_tokens_that_were_read_before(file: Path, secrets: dict[str, str]) -> None:
    door = access.Access(token_file=str(file))
    file.write_text('{"tokens": 7}', encoding="utf-8")

    assert "still hold" in door.refresh()
    assert door.recognise(secrets["reader"].encode()).name == "reader"
    assert door.refresh() == ""  # said once


def test_every_token_is_compared_by_its_hash_in_constant_time(
    monkeypatch: pytest.MonkeyPatch, file: Path, secrets: dict[str, str]
) -> None:
    compared = []

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return one == other

    monkeypatch.setattr(access, "compare_digest", watched)
    door = access.Access(token_file=str(file))
    for secret in (secrets["reader"], secrets["boss"]):
        door.recognise(secret.encode())
    with pytest.raises(Denied):
        door.recognise(b"x")

    assert compared == [(32, 32)] * 9  # all three each time, whichever was right


# ── how much ─────────────────────────────────────────────────────────────────────────────────────


def test_a_caller_may_ask_so_often_and_save_up_a_little() -> None:
    allowance = Allowance(rate=10, most=1)

    assert [allowance.take(100.0) for _ in range(21)] == [True] * 20 + [False]
    assert [allowance.take(100.15) for _ in range(2)] == [True, False]


def test_who_asks_too_often_is_told_to_wait(tmp_path: Path, file: Path, secrets: dict[str, str]) -> None:
    slow = ("--auth-token-file", str(file), "--rate-limit", "5")
    with running(Toy(tmp_path, "http", *slow)) as server:
        with with_token(server, secrets["reader"]) as greedy, with_token(server, secrets["writer"]) as other:
            answers = [greedy.modern("server/discover") for _ in range(30)]
            assert [answer.status for answer in answers[:10]] == [200] * 10
            refused = answers[-1]
            assert (refused.status, refused.headers["retry-after"]) == (429, "1")
            assert other.modern("server/discover").status == 200
        assert "refused status=429 reason=too_often address=127.0.0.1 by=reader" in server.end()[1]


def test_over_tcp_who_asks_too_often_is_answered_as_often_as_it_may(
    tmp_path: Path, file: Path, secrets: dict[str, str]
) -> None:
    slow = ("--auth-token-file", str(file), "--rate-limit", "50")
    with running(Toy(tmp_path, "tcp", *slow)) as server, Line(server, secrets["reader"].encode() + b"\n") as line:
        started = time.monotonic()
        line.send(*(request("ping", i) for i in range(130)))
        assert [line.receive()["id"] for _ in range(130)] == list(range(130))
        assert time.monotonic() - started > 0.4  # 100 at once, 30 more at 50 a second


def test_one_token_may_open_so_many_streams(tmp_path: Path, file: Path, secrets: dict[str, str]) -> None:
    few = ("--auth-token-file", str(file), "--max-parallel", "2")
    with running(Toy(tmp_path, "http", *few)) as server:
        webs = [with_token(server, secrets["reader"]) for _ in range(3)]
        statuses = [web.modern("subscriptions/listen", "s", notifications={}).status for web in webs]
        assert statuses == [200, 200, 429]
        with with_token(server, secrets["writer"]) as other:
            assert other.modern("subscriptions/listen", "s", notifications={}).status == 200
        for web in webs:
            web.connection.close()

        def is_free() -> bool:
            with with_token(server, secrets["reader"]) as again:
                return again.modern("subscriptions/listen", "s", notifications={}).status == 200

        wait_for(is_free)


def test_beyond_this_computer_nobody_listens_without_a_token_unless_told_so(tmp_path: Path) -> None:
    from mcp_memory.settings import read

    beyond = ["--settings", os.devnull, "--transport", "http", "--bind", "0.0.0.0:0"]
    with pytest.raises(BadSetting, match="--allow-unauthenticated"):
        access.access_for(read(beyond, {}).settings)

    assert access.access_for(read([*beyond, "--allow-unauthenticated"], {}).settings).is_open
    assert not access.access_for(read([*beyond, "--auth-token", "x" * 20], {}).settings).is_open


@pytest.mark.parametrize(
    "where",
    [
        ("--bind", "0.0.0.0:0"),
        ("--bind", "[::]:0"),
        ("--public-url", "https://memory.example/mcp"),
        ("--allowed-hosts", "memory.example"),
    ],
    ids=" ".join,
)
def test_where_strangers_can_try_a_token_of_ones_own_must_be_long(tmp_path: Path, where: tuple[str, str]) -> None:
    from mcp_memory.settings import read

    given = ["--settings", os.devnull, "--transport", "http"]
    plain = tmp_path / "token"
    for short in ("x", "nineteen-characters"):
        plain.write_text(short, encoding="utf-8")
        for option in (("--auth-token", short), ("--auth-token-file", str(plain))):
            assert not access.access_for(read([*given, *option], {}).settings).is_open
            with pytest.raises(BadSetting, match=f"has {len(short)} characters.*needs 20.*mcp-memory token create"):
                access.access_for(read([*given, *where, *option], {}).settings)

    assert not access.access_for(read([*given, *where, "--auth-token", "twenty-characters-ok"], {}).settings).is_open


def test_a_file_that_gets_a_short_token_while_the_server_runs_changes_nothing(tmp_path: Path) -> None:
    from mcp_memory.settings import read

    plain = tmp_path / "token"
    plain.write_text("a-token-of-some-length", encoding="utf-8")
    given = ["--settings", os.devnull, "--bind", "0.0.0.0:0", "--auth-token-file", str(plain)]
    running = access.access_for(read(given, {}).settings)
    plain.write_text("short", encoding="utf-8")

    assert "The tokens read before still hold" in running.refresh()
    assert running.recognise(b"Bearer a-token-of-some-length").name == "default"
    with pytest.raises(Denied):
        running.recognise(b"Bearer short")


def test_the_log_holds_no_secret(server: Server, secrets: dict[str, str]) -> None:
    with Web(server) as web:
        for given in ("Bearer mcpmem_forged-token-1", "Basic dXNlcjpwYXNzd29yZA==", None):
            assert web.post(request("initialize", **HELLO), Authorization=given).status == 401
    with with_token(server, secrets["writer"]) as web:
        create_ada(web)
        web.modern("tools/call", name="search_nodes", arguments={"query": "private matter"})
    said = server.end()[1]

    assert said.count("refused status=401 reason=unknown_token") == 2
    assert said.count("refused status=401 reason=no_token") == 1
    for hidden in ("forged", "dXNlcjpw", "Ada", "private", *secrets.values()):
        assert hidden not in said
