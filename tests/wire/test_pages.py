"""Beside /mcp: alive, ready, and what was counted - which never tells what anybody wrote."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from mcp_memory.wire.meters import BOUNDS, Meters
from tests.conftest import person
from tests.wire.network import PATIENCE, Server, Web, real, running

TOKEN = "a-token-of-some-length"
# A line of Prometheus' text form.
SAMPLE = re.compile(r'[a-z_]+(\{([a-z]+="[^"\\\n]*",?)+\})? -?[0-9.e+-]+')


def ready(web: Web) -> None:
    until = time.monotonic() + PATIENCE
    while web.ask("GET", None, "/readyz").status != 200:
        assert time.monotonic() < until
        time.sleep(0.02)


def samples(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in lines), lines
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def metrics(web: Web) -> tuple[str, dict[str, float]]:
    answer = web.ask("GET", None, "/metrics")
    assert (answer.status, answer.kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    text = answer.body.decode()
    return text, samples(text)


def test_a_server_is_alive_at_once_and_ready_when_the_memory_is_there(tmp_path: Path) -> None:
    with running(real(tmp_path / "memory.db", "http")) as server, Web(server) as web:
        assert web.ask("GET", None, "/healthz").body == b"alive\n"
        ready(web)
        assert web.ask("GET", None, "/readyz").body == b"ready\n"
        head = web.ask("HEAD", None, "/healthz")
        assert (head.status, head.body) == (200, b"")


def test_a_server_that_cannot_open_its_memory_is_alive_but_not_ready(tmp_path: Path) -> None:
    broken = tmp_path / "memory.db"
    broken.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with running(real(broken, "http")) as server, Web(server) as web:
        time.sleep(0.2)
        assert web.ask("GET", None, "/healthz").status == 200
        unready = web.ask("GET", None, "/readyz")
        assert (unready.status, unready.body) == (503, b"not ready: the memory is being loaded\n")


def test_calls_are_counted_by_tool_and_outcome_and_their_time_in_a_histogram(tmp_path: Path) -> None:
    with running(real(tmp_path / "memory.db", "http")) as server, Web(server) as web:
        ada = person("Ada Lovelace", "a private matter")
        web.modern("tools/call", name="create_entities", arguments={"entities": [ada]})
        for _ in range(3):
            web.modern("tools/call", name="open_nodes", arguments={"names": ["Ada Lovelace"]})
        web.modern("tools/call", name="open_nodes", arguments={"names": 7})
        web.modern("tools/call", name='made_up"}evil', arguments={})
        web.modern("tools/call", name="search_nodes", arguments={"query": "private"})

        text, counted = metrics(web)

    assert counted['mcp_memory_calls_total{tool="open_nodes",outcome="ok"}'] == 3
    assert counted['mcp_memory_calls_total{tool="open_nodes",outcome="error"}'] == 1
    assert counted['mcp_memory_call_seconds_count{tool="open_nodes"}'] == 4
    assert counted['mcp_memory_call_seconds_bucket{tool="open_nodes",le="+Inf"}'] == 4
    assert 0 < counted['mcp_memory_call_seconds_sum{tool="open_nodes"}'] < 10
    assert (counted["mcp_memory_entities"], counted["mcp_memory_observations"]) == (1, 1)
    assert counted["mcp_memory_feed_sequence"] == 1
    queues = ("feed_lag", "worker_queue", "connections", "embedding_queue", "flag_queue")
    assert {f"mcp_memory_{name}" for name in queues} <= counted.keys()
    for word in ("Ada", "Lovelace", "private", "made_up", "evil", "Person", "modern"):
        assert word not in text


def test_buckets_hold_what_took_no_longer_than_they_say() -> None:
    meters = Meters()
    for seconds in (BOUNDS[0], BOUNDS[0] * 1.01, 100.0):
        meters.called("t", seconds, False)

    counted = samples(meters.text({}).decode())

    totals = [counted[f'mcp_memory_call_seconds_bucket{{tool="t",le="{bound}"}}'] for bound in (*BOUNDS, "+Inf")]
    assert totals == [1, *[2] * (len(BOUNDS) - 1), 3]


@pytest.fixture
def guarded(tmp_path: Path) -> Server:
    return real(tmp_path / "memory.db", "http", "--auth-token", TOKEN)


def test_only_health_is_open_to_strangers(guarded: Server) -> None:
    with running(guarded) as server, Web(server) as web:
        ready(web)
        assert web.ask("GET", None, "/healthz").status == 200
        assert web.ask("GET", None, "/metrics").status == 401
        web.headers["Authorization"] = f"Bearer {TOKEN}"
        _, counted = metrics(web)
        assert counted['mcp_memory_refused_total{reason="no_token"}'] == 1
        for path in ("/healthz", "/readyz", "/metrics"):
            assert web.ask("GET", None, path, Host="evil.example").status == 403
            assert web.ask("POST", b"{}", path).status == 404
