"""Clients that mean harm: each gets the right status, memory stays bounded, and others hardly notice.

Who notices is asked of a well-behaved client in a process of its own (`witness.py`), which keeps asking meanwhile."""

from __future__ import annotations

import contextlib
import functools
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.assembly import open_space
from mcp_memory.wire import tokens
from mcp_memory.wire.jsonrpc import MOST_BYTES
from mcp_memory.wire.news import MOST_WATCHED
from tests.conftest import Caller, link, person
from tests.wire.network import PATIENCE, Server, Toy, Web, call, real, request, running
from tests.wire.test_http_wire import House as HouseOfTests
from tests.wire.test_http_wire import Raw, in_house, post
from tests.wire.test_tokens import NOW

pytestmark = pytest.mark.alone

TOKEN = "a-token-of-some-length"
BEARER = f"Authorization: Bearer {TOKEN}\r\n"
WITNESS = Path(__file__).with_name("witness.py")
MOST_P99 = 0.05
MOST_GROWTH_MB = 64
HALF_OPEN = 10_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("hostile") / "memory.db"
    # Without a model: loading one is no growth that an attack causes.
    options = ("--auth-token", TOKEN, "--rate-limit", "1000000", "--model", "none")
    with running(real(file, "http", *options)) as server:
        with Web(server, Authorization=f"Bearer {TOKEN}") as web:
            web.modern("tools/call", name="create_entities", arguments={"entities": [person("Ada")]})
        yield server


class Noticed(AssertionError):
    """Others had to wait."""


def on_a_quiet_machine(attack: Callable[..., None]) -> Callable[..., None]:
    """Others may have had to wait for the machine and not for us: then the attack is repeated, twice at most."""

    @functools.wraps(attack)
    def attacks(**fixtures: Any) -> None:
        for _ in range(2):
            try:
                return attack(**fixtures)
            except Noticed as noticed:
                print(noticed)
        return attack(**fixtures)

    return attacks


@contextmanager
def witnessed(server: Server, token: str = TOKEN) -> Iterator[dict[str, Any]]:
    """While this lasts a witness asks; what it saw is there at the end. It must have been answered rightly."""
    seen: dict[str, Any] = {}
    before = server.resident_mb()
    witness = subprocess.Popen(
        [sys.executable, str(WITNESS), str(server.port), token], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert witness.stdin and witness.stdout
    try:
        assert witness.stdout.readline() == b"ready\n"
        yield seen
        growth = server.resident_mb() - before
        out, _ = witness.communicate(timeout=PATIENCE)
    finally:
        witness.kill()
        witness.wait()
        witness.stdin.close()
        witness.stdout.close()
    seen |= json.loads(out) | {"growth": growth}
    print(f"\n{seen['calls']} calls, p50 {seen['p50'] * 1e3:.1f} ms, p99 {seen['p99'] * 1e3:.1f} ms, {growth:+.1f} MB")
    assert seen["bad"] == 0


@contextmanager
def others_hardly_notice(server: Server) -> Iterator[None]:
    """The witness must have been answered soon, and memory have stayed."""
    with witnessed(server) as seen:
        yield
    assert seen["calls"] > 20
    if seen["p99"] >= MOST_P99:
        raise Noticed(f"p99 was {seen['p99'] * 1e3:.0f} ms")
    if seen["came"]:
        assert sorted(seen["came"])[len(seen["came"]) // 2] < 2.0
    assert seen["growth"] < MOST_GROWTH_MB


def again_and_again(least: int = 3) -> Iterator[int]:
    """An attack goes on long enough to be noticed."""
    until = time.monotonic() + 0.5
    number = 0
    while number < least or time.monotonic() < until:
        yield number
        number += 1


def refused(server: Server, data: bytes, size: int = 1 << 30) -> int:
    """The status of what comes back when a client sends this for as long as it may."""
    with Raw(server) as raw:
        with contextlib.suppress(OSError):
            while data and size > 0:
                raw.send(data)
                size -= len(data)
        with contextlib.suppress(OSError):
            return raw.receive()[0]
    return -1  # cut off


# ── connections ──────────────────────────────────────────────────────────────────────────────────


def most_open() -> int:
    """How many connections this process may hold."""
    try:
        import resource
    except ImportError:
        return 400
    return min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 4000)


@on_a_quiet_machine
def test_ten_thousand_half_open_connections_keep_nobody_out(server: Server) -> None:
    held: list[socket.socket] = []
    most = most_open()
    with others_hardly_notice(server):
        for number in range(HALF_OPEN):
            with contextlib.suppress(OSError):
                one = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
                held.append(one)
                if number % 3:  # some say nothing at all, some a part of a head, some a part of a body
                    one.send(post("server/discover", 1, BEARER if number % 2 else "")[: 40 if number % 2 else -9])
            if len(held) >= most:
                held.pop(0).close()
        time.sleep(0.2)
    for one in held:
        one.close()


def test_a_silent_stranger_makes_room_for_who_comes_and_a_client_does_not(tmp_path: Path) -> None:
    few = Toy(tmp_path, "http", "--max-connections", "3")
    with running(few) as server, Web(server) as known, contextlib.ExitStack() as strangers:
        assert known.modern("server/discover").status == 200
        for _ in range(2):
            strangers.enter_context(Raw(server))
        time.sleep(0.4)
        with Web(server) as newcomer, Web(server) as another:
            assert newcomer.modern("server/discover").status == 200
            assert another.modern("server/discover").status == 200
            assert known.modern("server/discover").status == 200
            with Raw(server) as too_many:
                too_many.send(post("server/discover"))
                assert too_many.receive()[0] == 503


def test_who_asks_whether_the_server_is_alive_has_not_shown_a_token_and_makes_room(tmp_path: Path) -> None:
    few = Toy(tmp_path, "http", "--max-connections", "3", "--auth-token", TOKEN)
    asking = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with running(few) as server, contextlib.ExitStack() as strangers:
        for _ in range(3):
            stranger = strangers.enter_context(Raw(server))
            stranger.send(asking)
            assert stranger.receive()[0] == 200
        time.sleep(0.4)
        with Web(server, Authorization=f"Bearer {TOKEN}") as newcomer:
            assert newcomer.modern("server/discover").status == 200
            strangers.enter_context(Raw(server)).send(asking)
            assert newcomer.modern("server/discover").status == 200


def test_a_connection_whose_token_was_revoked_makes_room_too(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    gone = tokens.create(str(file), "gone", ("read",), "", NOW)[1]
    stays = tokens.create(str(file), "stays", ("read",), "", NOW)[1]
    few = Toy(tmp_path, "http", "--max-connections", "1", "--auth-token-file", str(file))
    with running(few) as server, Web(server, Authorization=f"Bearer {gone}") as before:
        assert before.modern("server/discover").status == 200
        tokens.revoke(str(file), "gone")
        until = time.monotonic() + PATIENCE
        while True:
            with Web(server, Authorization=f"Bearer {stays}") as newcomer, contextlib.suppress(OSError):
                if newcomer.modern("server/discover").status == 200:
                    break
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_head_that_trickles_in_is_given_up_soon() -> None:
    async def talk(house: HouseOfTests) -> None:
        await house.send(b"POST /mcp HTTP/1.1\r\nHost: local")
        house.later(9)
        assert not house.connection.is_lingering
        await house.send(b"host\r\nX-Slow: y")
        house.later(11)
        assert (await house.rest()).startswith(b"HTTP/1.1 408 ")

    in_house("http", talk)


# ── bodies and heads ─────────────────────────────────────────────────────────────────────────────


@on_a_quiet_machine
def test_bodies_of_seventeen_mebibytes_are_refused_and_not_kept(server: Server) -> None:
    size = MOST_BYTES + (1 << 20)
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{BEARER}"
    announced = f"{head}Content-Length: {size}\r\n\r\n".encode()
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()
    piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    with others_hardly_notice(server):
        for _ in again_and_again():
            assert refused(server, announced, 1) == 413
            assert refused(server, announced.replace(BEARER.encode(), b""), 1) == 401
            with Raw(server) as raw:
                with contextlib.suppress(OSError):
                    raw.send(chunked)
                    for _ in range(size // 65_536):
                        raw.send(piece)
                with contextlib.suppress(OSError):
                    assert raw.receive()[0] == 413


@on_a_quiet_machine
def test_a_body_of_single_bytes_takes_no_more_memory_than_its_bytes(server: Server) -> None:
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{BEARER}"
    with others_hardly_notice(server), Raw(server) as raw:
        raw.send(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in again_and_again(10):
            raw.send(b"1\r\nx\r\n" * 20_000)
        raw.send(b"0\r\n\r\n")
        assert raw.receive()[0] == 400


def test_large_bodies_that_never_end_are_bounded_all_together(server: Server) -> None:
    part = b"x" * (12 << 20)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{BEARER}"
        f"Content-Length: {len(part) + 9}\r\n\r\n"
    ).encode()
    before = server.resident_mb()
    raws = [Raw(server) for _ in range(16)]
    statuses = []
    for raw in raws:
        with contextlib.suppress(OSError):
            raw.send(head)
            raw.send(part)
        raw.socket.settimeout(0.05)
        with contextlib.suppress(OSError):
            statuses.append(raw.receive()[0])
    assert 503 in statuses
    assert server.resident_mb() - before < 128 + MOST_GROWTH_MB
    for raw in raws:
        raw.__exit__()
    with Web(server, Authorization=f"Bearer {TOKEN}") as web:
        assert web.modern("tools/list").status == 200


@pytest.mark.parametrize(
    "line", [b"A: b\r\n", b"X-Flood: " + b"y" * 500 + b"\r\n", b"Host: localhost\r\n"], ids=["tiny", "long", "same"]
)
@on_a_quiet_machine
def test_a_flood_of_headers_is_refused(server: Server, line: bytes) -> None:
    with others_hardly_notice(server):
        for _ in again_and_again():
            with Raw(server) as raw:
                with contextlib.suppress(OSError):
                    raw.send(b"POST /mcp HTTP/1.1\r\n" + line * (1_000_000 // len(line)))
                with contextlib.suppress(OSError):
                    assert raw.receive()[0] == 431


@on_a_quiet_machine
def test_a_flood_of_tiny_requests_is_answered_in_turns(server: Server) -> None:
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with others_hardly_notice(server), Raw(server) as raw:
        for _ in again_and_again():
            raw.send(ask * 2000)
            for _ in range(2000):
                assert raw.receive()[0] == 200


# ── clients that do not read ─────────────────────────────────────────────────────────────────────


@on_a_quiet_machine
def test_listeners_that_never_read_cost_little_and_others_hear(server: Server) -> None:
    uri = "memory://knowledge-graph"
    asking = post("subscriptions/listen", 1, BEARER, notifications={"resourceSubscriptions": [uri]})
    deaf = [socket.socket() for _ in range(40)]
    for one in deaf:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", server.port))
        one.sendall(asking)
    with Web(server, Authorization=f"Bearer {TOKEN}") as writer, Web(server, Authorization=f"Bearer {TOKEN}") as hearer:
        stream = hearer.modern("subscriptions/listen", "s", notifications={"resourceSubscriptions": [uri]})
        assert stream.event()["method"] == "notifications/subscriptions/acknowledged"
        with others_hardly_notice(server):
            for number in range(400):
                entities = [person(f"n{number}")]
                assert (
                    writer.modern("tools/call", name="create_entities", arguments={"entities": entities}).status == 200
                )
            assert stream.event()["params"]["uri"] == uri
    for one in deaf:
        one.close()


@on_a_quiet_machine
def test_many_listeners_to_one_large_entity_in_many_spellings_cost_each_write_little(server: Server) -> None:
    name = "Much is known"
    entity = person(name, *(f"{number} " + "x" * 1900 for number in range(40)))
    spellings = ["".join(each) for each in product(*((letter, f"%{ord(letter):02x}") for letter in name[:7]))]
    uris = [f"memory://entity/{spelling}{name[7:].replace(' ', '%20')}" for spelling in spellings[:MOST_WATCHED]]
    asking = post("subscriptions/listen", 1, BEARER, notifications={"resourceSubscriptions": uris})
    with Web(server, Authorization=f"Bearer {TOKEN}") as writer, contextlib.ExitStack() as listeners:
        assert writer.modern("tools/call", name="create_entities", arguments={"entities": [entity]}).status == 200
        for _ in range(60):
            listeners.enter_context(Raw(server)).send(asking)
        hearer = listeners.enter_context(Web(server, Authorization=f"Bearer {TOKEN}"))
        stream = hearer.modern("subscriptions/listen", "s", notifications={"resourceSubscriptions": uris[-1:]})
        assert stream.event()["method"] == "notifications/subscriptions/acknowledged"
        with others_hardly_notice(server):
            for number in range(50):
                entities = [person(f"unrelated {number}")]
                assert (
                    writer.modern("tools/call", name="create_entities", arguments={"entities": entities}).status == 200
                )
                time.sleep(0.02)
        arguments = {"name": name, "observations": ["and this"]}
        assert writer.modern("tools/call", name="add_observations", arguments=arguments).status == 200
        assert stream.event()["params"]["uri"] == uris[-1]


@on_a_quiet_machine
def test_large_answers_that_nobody_reads_are_bounded(server: Server) -> None:
    entities = [person(f"large {number}", *("x" * 1900 for _ in range(50))) for number in range(10)]
    with Web(server, Authorization=f"Bearer {TOKEN}") as web:
        assert web.modern("tools/call", name="create_entities", arguments={"entities": entities}).status == 200
    asking = post("tools/call", 1, BEARER, name="read_graph", arguments={})
    with contextlib.ExitStack() as raws:
        greedy = [raws.enter_context(Raw(server)) for _ in range(6)]
        with others_hardly_notice(server):
            for raw in greedy:
                raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                raw.send(asking * 20)
            time.sleep(0.5)


# ── tokens that ask for much ─────────────────────────────────────────────────────────────────────

GREEDY = 16
LONG_READ: dict[str, Any] = {
    "name": "find_all_paths",
    "arguments": {"from": "n0", "to": "n999", "maxDepth": 16, "maxPaths": 1000},
}


@pytest.fixture
def tangle(tmp_path: Path) -> Iterator[Server]:
    """A memory with so many ways through it that to find them takes a while."""
    space = open_space(tmp_path / "memory.db")
    call = Caller(space)
    names = [f"n{number}" for number in range(1000)]
    for start in range(0, len(names), 50):
        call("create_entities", entities=[person(name) for name in names[start : start + 50]])
    ends = [(here, (here * factor + 1) % 1000) for factor in (3, 7, 11, 13) for here in range(1000)]
    links = [link(names[here], "knows", names[there]) for here, there in ends if here != there]
    for start in range(0, len(links), 50):
        call("create_relations", relations=links[start : start + 50])
    call("create_entities", entities=[person("Ada")])
    assert space.check() == []
    space.close()
    file = tmp_path / "tokens.json"
    secrets = {name: tokens.create(str(file), name, ("read",), "", NOW)[1] for name in ("greedy", "modest")}
    options = ("--auth-token-file", str(file), "--rate-limit", "1000000", "--model", "none")
    with running(real(tmp_path / "memory.db", "http", *options)) as server:
        server.secrets = secrets
        yield server


@on_a_quiet_machine
def test_whoever_asks_for_long_reads_all_at_once_keeps_itself_waiting(tangle: Server) -> None:
    greedy, modest = tangle.secrets["greedy"], tangle.secrets["modest"]
    asking = post("tools/call", 1, f"Authorization: Bearer {greedy}\r\n", **LONG_READ)
    with contextlib.ExitStack() as raws:
        asks = [raws.enter_context(Raw(tangle)) for _ in range(GREEDY)]

        def answered(raw: Raw) -> float:
            started = time.perf_counter()
            raw.send(asking)
            assert raw.receive()[0] == 200
            return time.perf_counter() - started

        answered(asks[0])
        with witnessed(tangle, modest) as quiet:
            time.sleep(1.0)
        alone = sorted(answered(asks[0]) for _ in range(9))[4]
        with witnessed(tangle, modest) as attacked, ThreadPoolExecutor(GREEDY) as threads:
            until = time.monotonic() + 2.0
            list(threads.map(lambda raw: [answered(raw) for _ in iter(lambda: time.monotonic() < until, False)], asks))
        # Whatever the machine does beside: others wait for one of these calls, seldom for a few, and not for all.
        print(f"one such call alone: {alone * 1e3:.1f} ms")
        assert min(quiet["calls"], attacked["calls"]) > 5
        if attacked["p50"] >= quiet["p50"] + 3 * alone or attacked["p99"] >= max(
            MOST_P99, quiet["p99"] + GREEDY / 2 * alone
        ):
            raise Noticed(f"p50 was {attacked['p50'] * 1e3:.0f} ms, p99 {attacked['p99'] * 1e3:.0f} ms")


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────


def test_whoever_begins_sessions_without_end_loses_only_its_own(tmp_path: Path) -> None:
    from mcp_memory.wire.streamable import MOST_OF_ONE_CALLER

    file = tmp_path / "tokens.json"
    greedy = tokens.create(str(file), "greedy", ("read",), "", NOW)[1]
    modest = tokens.create(str(file), "modest", ("read",), "", NOW)[1]
    hello: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}}
    with (
        running(Toy(tmp_path, "http", "--auth-token-file", str(file))) as server,
        Web(server, Authorization=f"Bearer {modest}") as other,
        Web(server, Authorization=f"Bearer {greedy}") as web,
    ):
        other.shake_hands()
        first = web.shake_hands()
        del web.headers["Mcp-Session-Id"]
        for _ in range(MOST_OF_ONE_CALLER):
            assert web.post(request("initialize", **hello)).status == 200
        assert web.post(request("ping"), Mcp_Session_Id=first).status == 404
        assert other.post(request("ping")).status == 200
        assert other.post(call(1, "names")).status == 200
