"""Streams that break off: a client that shook hands comes back with the last id it saw and hears the rest, once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.wire.tape import KEPT_SECONDS, MOST_EVENTS, OVERHEAD, Shelf, Tape
from tests.wire.network import PATIENCE, Answer, Toy, Web, request, running

URI = "memory://knowledge-graph"
Event = tuple[str, str]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Toy]:
    toy = Toy(tmp_path, "http")
    with running(toy):
        yield toy


@pytest.fixture
def web(server: Toy) -> Iterator[Web]:
    with Web(server) as web:
        web.shake_hands()
        yield web


def events(answer: Answer, most: int = 1000) -> list[Event]:
    """Id and data of the events that come, up to so many."""
    found: list[Event] = []
    ident = data = ""
    while len(found) < most and (line := answer.response.readline().decode()):
        name, _, value = line.rstrip("\n").partition(":")
        if name == "id":
            ident = value.strip()
        elif name == "data":
            data = value.strip()
        elif not line.strip() and (ident or data):
            found.append((ident, data))
            ident = data = ""
    return found


def listening(server: Toy, web: Web, last: str | None = None) -> tuple[Web, Answer]:
    """A stream of the same client, on a connection of its own."""
    other = Web(server)
    other.headers = dict(web.headers)
    return other, other.ask("GET", **{"Last-Event-ID": last})


def broken_off(server: Toy, web: Web) -> list[Event]:
    """A long call whose connection breaks off after its first notice; the events until then."""
    answer = web.post(server.toil("long"))
    seen = events(answer, 2)
    answer.response.close()
    web.connection.close()
    return seen


def test_every_event_of_a_session_has_an_id_and_the_first_is_only_that(server: Toy, web: Web) -> None:
    server.gate.touch()
    primed, *progress, reply = events(web.post(server.toil("long")))

    assert primed == ("p1.0", "")
    assert [ident for ident, _ in (*progress, reply)] == ["p1.1", "p1.2"]
    assert '"id":"long"' in reply[1]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18"])
def test_older_revisions_get_no_event_without_a_message(server: Toy, version: str) -> None:
    server.gate.touch()
    with Web(server) as web:
        web.shake_hands(version)
        assert [ident for ident, _ in events(web.post(server.toil("long")))] == ["p1.1", "p1.2"]


def test_the_stateless_revision_has_no_ids(server: Toy) -> None:
    server.gate.touch()
    arguments = {"name": "Toil", "steps": 1, "gate": str(server.gate)}
    with Web(server) as web:
        answer = web.modern("tools/call", "long", meta={"progressToken": 1}, name="toil", arguments=arguments)
        assert {ident for ident, _ in events(answer)} == {""}


def test_a_client_that_comes_back_gets_its_answer(server: Toy, web: Web) -> None:
    seen = broken_off(server, web)
    other, rest = listening(server, web, seen[-1][0])
    server.gate.touch()

    (reply,) = events(rest)

    assert reply[0] == "p1.2" and '"steps":1' in reply[1]
    assert other.call("names").message["result"]["structuredContent"] == {"names": ["Toil"]}
    other.connection.close()


def test_an_answer_that_was_given_while_nobody_listened_is_kept(server: Toy, web: Web) -> None:
    broken_off(server, web)
    server.gate.touch()
    with Web(server) as other:
        other.headers = dict(web.headers)
        until = time.monotonic() + PATIENCE
        while other.call("names").message["result"]["structuredContent"] != {"names": ["Toil"]}:
            assert time.monotonic() < until
    for last, expected in (("p1.0", ["p1.1", "p1.2"]), ("p1.1", ["p1.2"]), ("p1.2", [])):
        again, rest = listening(server, web, last)
        assert [ident for ident, _ in events(rest)] == expected
        again.connection.close()


def test_a_client_may_come_back_before_its_old_connection_is_noticed_to_be_dead(server: Toy, web: Web) -> None:
    first = web.post(server.toil("long"))
    seen = events(first, 2)
    other, rest = listening(server, web, seen[-1][0])
    server.gate.touch()

    assert [ident for ident, _ in events(rest)] == ["p1.2"]
    with contextlib.suppress(OSError, HTTPException):
        assert b"p1.2" not in first.response.read()  # an answer goes out once
    other.connection.close()


def test_what_happened_between_two_streams_is_told_on_the_second(server: Toy, web: Web) -> None:
    web.post(request("resources/subscribe", uri=URI))
    first, news = listening(server, web)
    assert events(news, 1) == [("g1.0", "")]
    with Web(server) as writer:
        writer.modern("tools/call", name="remember", arguments={"name": "Ada"})
        (told,) = events(news, 1)
        assert told[0] == "g1.1"
        first.connection.close()
        time.sleep(0.05)
        writer.modern("tools/call", name="remember", arguments={"name": "Bob"})
        second, news = listening(server, web)
        assert [ident for ident, _ in events(news, 2)] == ["g2.0", "g2.1"]
        # Who saw nothing of the first stream gets its event again.
        third, news = listening(server, web, "g1.0")
        assert events(news, 2)[1] == ("g3.1", told[1])
    for each in (second, third):
        each.connection.close()


@pytest.mark.parametrize("last", ["p9.1", "g1.1", "7", "x", "p1", "p1.99999999999999"])
def test_an_id_that_nobody_gave_begins_an_ordinary_stream(server: Toy, web: Web, last: str) -> None:
    other, news = listening(server, web, last)

    assert events(news, 1) == [("g1.0", "")]
    other.connection.close()


def test_another_session_cannot_hear_what_was_not_meant_for_it(server: Toy, web: Web) -> None:
    broken_off(server, web)
    server.gate.touch()
    with Web(server) as stranger:
        stranger.shake_hands()
        other, news = listening(server, stranger, "p1.0")
        assert events(news, 1) == [("g1.0", "")]
        other.connection.close()


def test_who_comes_back_too_often_loses_its_first_streams_and_not_its_last(server: Toy, web: Web) -> None:
    streams = [listening(server, web) for _ in range(20)]

    assert events(streams[0][1]) == [("g1.0", "")]  # ended
    assert events(streams[-1][1], 1) == [("g20.0", "")]
    for other, _ in streams:
        other.connection.close()


# ── the tape ─────────────────────────────────────────────────────────────────────────────────────


def test_a_tape_holds_so_many_events_for_so_long() -> None:
    tape = Tape(Shelf())
    stream = tape.begin(b"p")
    for number in range(MOST_EVENTS + 5):
        tape.add(stream, b"x", float(number) / 1e6)

    assert [event.number for event in said(tape, b"p1.0")] == list(range(6, MOST_EVENTS + 6))
    tape.add(stream, b"late", KEPT_SECONDS + 1)
    assert [event.line for event in said(tape, b"p1.0")] == [b"late"]


def said(tape: Tape, ident: bytes) -> list[Any]:
    found = tape.after(ident)
    assert found is not None
    return list(found[1])


def test_all_tapes_together_take_no_more_than_there_is_and_whoever_has_most_gives_way() -> None:
    shelf = Shelf(most=10 * (OVERHEAD + 100))
    one, other = Tape(shelf), Tape(shelf)
    for tape in (one, other):
        stream = tape.begin(b"p")
        for _ in range(20):
            tape.add(stream, b"x" * 100, 0.0)
        assert shelf.taken == shelf.most

    assert [len(said(tape, b"p1.0")) for tape in (one, other)] == [5, 5]
    for _ in range(10):
        other.add(stream, b"x" * 100, KEPT_SECONDS + 1)
    assert [len(said(tape, b"p1.0")) for tape in (one, other)] == [0, 10]  # the old ones made room
    one.clear()
    other.clear()
    other.add(stream, b"x", KEPT_SECONDS + 1)
    assert shelf.taken == 0 and not shelf.tapes and not shelf.owned


def test_many_sessions_of_one_token_have_together_what_another_token_has() -> None:
    shelf = Shelf(most=12 * (OVERHEAD + 100))
    greedy, modest = [Tape(shelf, "greedy") for _ in range(4)], Tape(shelf, "modest")
    for tape in (*greedy, modest, *greedy):
        stream = tape.begin(b"p")
        for _ in range(20):
            tape.add(stream, b"x" * 100, 0.0)

    assert shelf.owned == {"greedy": shelf.most // 2, "modest": shelf.most // 2}
    assert len(said(modest, b"p1.0")) == 6
