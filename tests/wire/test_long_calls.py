"""While a long call runs: what goes on, what waits, what can be withdrawn, and in which order things happen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_types import methods

from mcp_memory.wire import Session, errands
from mcp_memory.wire.jsonrpc import decode
from tests.wire.toy import GATE, GATE_SECONDS, META, TOILING, Client

URI = "memory://knowledge-graph"
CLOSED_GATE = "never"


@pytest.fixture(autouse=True)
def gate() -> Iterator[None]:
    GATE.clear()
    TOILING.clear()
    yield
    GATE.set()


@pytest.fixture
def client() -> Client:
    return Client()


def begin(client: Client, ident: Any = "long", name: str = "Toil", **meta: Any) -> None:
    """Begin a long call; it runs until the gate opens."""
    arguments = {"name": name, "gate": CLOSED_GATE}
    assert client.send("tools/call", ident, name="toil", arguments=arguments, **meta) == []
    assert TOILING.wait(GATE_SECONDS)


def remember(client: Client, name: str, ident: Any) -> list[Any]:
    return client.send("tools/call", ident, name="remember", arguments={"name": name})


def ids(messages: list[Any]) -> list[Any]:
    return [message.get("id", message.get("method")) for message in messages]


def test_a_long_call_is_answered_when_it_is_done(client: Client) -> None:
    begin(client)
    GATE.set()

    (reply,) = client.wait()

    assert reply["id"] == "long"
    assert reply["result"]["structuredContent"] == {"steps": 3}
    assert client.names() == ["Toil"]


def test_what_does_not_look_at_the_space_is_answered_meanwhile(client: Client) -> None:
    begin(client)

    assert client.result("ping") == {}
    assert client.result("tools/list")["tools"]
    assert client.sent == []


def test_calls_wait_in_line_and_reads_see_the_writes_before_them(client: Client) -> None:
    begin(client)
    assert remember(client, "Ada", 1) == []
    assert client.send("tools/call", 2, name="names") == []
    assert remember(client, "Bob", 3) == []
    assert client.send("resources/read", 4, uri=URI) == []
    GATE.set()

    said = client.wait()

    assert ids(said) == ["long", 1, 2, 3, 4]
    assert said[2]["result"]["structuredContent"] == {"names": ["Toil", "Ada"]}
    assert json.loads(said[4]["result"]["contents"][0]["text"])["entities"][2]["name"] == "Bob"


def test_a_second_long_call_runs_after_the_first(client: Client) -> None:
    begin(client)
    remember(client, "Ada", 1)
    client.send("tools/call", "second", name="toil", arguments={"name": "Toil again"})
    remember(client, "Bob", 2)
    GATE.set()

    assert ids(client.wait()) == ["long", 1, "second", 2]
    assert client.names() == ["Toil", "Ada", "Toil again", "Bob"]
    assert client.call("names")["structuredContent"]["names"][-1] == "Bob"


def test_a_batch_waits_in_line_as_one() -> None:
    client = Client(version="2025-03-26")
    begin(client)
    call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "names"}}
    assert client.line(json.dumps([call, {**call, "id": 6, "method": "ping"}])) == []
    GATE.set()

    long, batch = client.wait()

    assert long["id"] == "long"
    assert ids(batch) == [5, 6]


# ── withdrawing ──────────────────────────────────────────────────────────────────────────────────


def test_a_withdrawn_long_call_changes_nothing_and_is_not_answered(client: Client) -> None:
    begin(client)
    remember(client, "Ada", 1)

    assert client.notify("notifications/cancelled", requestId="long", reason="changed my mind") == []

    assert ids(client.wait()) == [1]
    assert client.names() == ["Ada"]


def test_a_waiting_call_can_be_withdrawn(client: Client) -> None:
    begin(client, ident=7)
    remember(client, "Ada", 1)
    remember(client, "Bob", 2)
    client.notify("notifications/cancelled", requestId=1)
    GATE.set()

    assert ids(client.wait()) == [7, 2]
    assert client.names() == ["Toil", "Bob"]


def test_an_id_may_be_spelled_another_way_when_its_call_is_withdrawn(client: Client) -> None:
    begin(client, ident=7)
    remember(client, "Ada", "a")
    client.line('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\\u0061"}}')
    client.line('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7.0}}')

    assert client.wait() == []
    assert client.names() == []


@pytest.mark.parametrize("wrong", ["7", 8, 7.5, None, [7]])
def test_withdrawing_another_id_withdraws_nothing(client: Client, wrong: Any) -> None:
    begin(client, ident=7)
    client.notify("notifications/cancelled", requestId=wrong)
    GATE.set()

    assert ids(client.wait()) == [7]
    assert client.names() == ["Toil"]


def test_a_long_call_that_must_stop_is_answered_with_the_reason(client: Client) -> None:
    begin(client)
    client.session.give_up()

    (reply,) = client.wait()

    assert reply["result"]["isError"] is True
    assert "nothing was changed" in reply["result"]["content"][0]["text"]
    assert client.names() == []


def test_too_much_waiting_is_refused_with_a_way_on(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errands, "MOST_WAITING_BYTES", 1000)
    begin(client)
    assert remember(client, "x" * 700, 1) == []

    (refused,) = remember(client, "y" * 700, 2)

    assert refused["id"] == 2
    assert refused["error"]["data"] == {"retryable": True}
    assert "toil is running" in refused["error"]["message"]
    GATE.set()
    assert ids(client.wait()) == ["long", 1]
    remember(client, "y" * 700, 3)
    assert len(client.names()) == 3


def test_what_has_left_the_queue_no_longer_counts(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errands, "MOST_WAITING_BYTES", 100)
    begin(client)
    queue = client.session._errands
    assert queue is not None
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}' + b" " * 40

    for _ in range(3):
        queue.wait(decode(line), line)
        assert queue.next()[1] == line
        queue.wait(decode(line), line)
        queue.withdraw(1)
        assert not queue.waiting


def test_a_call_that_comes_just_when_the_long_one_ends_is_answered(client: Client) -> None:
    begin(client)
    session = client.session
    queue = session._errands
    assert queue is not None
    GATE.set()
    client.wait()

    session._errands = Ending(session, queue)

    assert client.call("names")["structuredContent"] == {"names": ["Toil"]}


class Ending(errands.Errands):
    """A queue whose worker is faster than whoever wants the lock."""

    def __init__(self, session: Session, queue: errands.Errands) -> None:
        self.running, self.waiting, self._bytes = None, queue.waiting, 0
        self.session = session
        self.lock = self  # type: ignore[assignment]

    def __enter__(self) -> None:
        self.session._errands = None

    def __exit__(self, *_: object) -> None:
        return


def test_a_change_made_before_its_withdrawal_was_noticed_is_told_to_subscribers(client: Client) -> None:
    client.result("resources/subscribe", uri=URI)
    begin(client)
    assert client.session._errands is not None and client.session._errands.running is not None
    client.session._errands.running.unwanted = True
    GATE.set()

    assert [one["method"] for one in client.wait()] == ["notifications/resources/updated"]
    assert client.names() == ["Toil"]


# ── progress ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("token", ["t1", 7, ""])
def test_progress_is_told_before_the_answer_to_whoever_gave_a_token(client: Client, token: Any) -> None:
    client.send("tools/call", "long", name="toil", arguments={"steps": 2}, _meta={"progressToken": token})

    *progress, reply = client.wait()

    assert [note["params"] for note in progress] == [
        {"progressToken": token, "progress": 1, "total": 2, "message": "step 1"},
        {"progressToken": token, "progress": 2, "total": 2, "message": "step 2"},
    ]
    assert {note["method"] for note in progress} == {"notifications/progress"}
    assert reply["id"] == "long"


@pytest.mark.parametrize(
    "meta", [{}, {"_meta": {}}, {"_meta": {"progressToken": None}}, {"_meta": {"progressToken": []}}]
)
def test_progress_is_not_told_without_a_token(client: Client, meta: dict[str, Any]) -> None:
    client.send("tools/call", "long", name="toil", arguments={}, **meta)

    assert ids(client.wait()) == ["long"]


def test_a_hundred_notices_are_enough_and_progress_only_grows(client: Client) -> None:
    client.send("tools/call", "long", name="toil", arguments={"steps": 10_000}, _meta={"progressToken": 1})

    told = [note["params"]["progress"] for note in client.wait()[:-1]]

    assert len(told) <= 100
    assert told == sorted(set(told))


def test_the_first_revision_gets_progress_without_a_message() -> None:
    client = Client(version="2024-11-05")
    client.send("tools/call", "long", name="toil", arguments={"steps": 1}, _meta={"progressToken": 1})

    assert client.wait()[0]["params"] == {"progressToken": 1, "progress": 1, "total": 1}


def test_a_stateless_long_call_tells_progress_and_a_complete_result() -> None:
    client = Client(version=None)
    client.send("tools/call", "long", name="toil", arguments={"steps": 1}, _meta={**META, "progressToken": "p"})

    note, reply = client.wait()

    assert note["params"]["progressToken"] == "p"
    methods.validate_server_result("tools/call", "2026-07-28", reply["result"])
