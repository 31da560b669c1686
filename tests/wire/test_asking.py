"""Whoever takes much away asks the user first: by a request of ours after a handshake, by coming back without one."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from mcp_types import methods

from mcp_memory.losses import losses_of
from mcp_memory.space import Space
from mcp_memory.tools.catalog import catalog
from mcp_memory.wire import sealing
from mcp_memory.wire.sealing import Sealer
from tests.wire.toy import META, Client

CAN: dict[str, Any] = {"elicitation": {}}
YES = {"action": "accept", "content": {"confirm": True}}
NO = [
    {"action": "decline"},
    {"action": "cancel"},
    {"action": "accept", "content": {"confirm": False}},
    {"action": "accept"},
]
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
ABLE = {**META, CAPABILITIES: CAN}
ALL = [f"n{number}" for number in range(12)]


def filled(client: Client) -> Client:
    """Twelve entities; all of them together are more than may go without asking."""
    client.offer.confirm_above = 10
    given = [{"name": name, "entityType": "T", "observations": [name]} for name in ALL]
    meta = {} if client.session.shook_hands else {"_meta": META}
    client.result("tools/call", name="create_entities", arguments={"entities": given}, **meta)
    return client


def shaken(capabilities: dict[str, Any] | None = None, version: str = "2025-11-25") -> Client:
    return filled(Client(version=version, tools=catalog(), capabilities=CAN if capabilities is None else capabilities))


def stateless() -> Client:
    return filled(Client(version=None, tools=catalog()))


def delete(client: Client, names: list[str], ident: Any = "d", **more: Any) -> list[Any]:
    return client.send("tools/call", ident, name="delete_entities", arguments={"entityNames": names}, **more)


def asked(client: Client) -> Any:
    """The question that was put to the client, once it is there."""
    deadline = time.monotonic() + 10
    while not client.sent and time.monotonic() < deadline:
        time.sleep(0.001)
    return client.sent.pop(0)


def answer(client: Client, question: Any, result: Any) -> None:
    assert client.line(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result})) == []


# ── after a handshake ────────────────────────────────────────────────────────────────────────────


def test_a_large_deletion_happens_when_the_user_agrees() -> None:
    client = shaken()
    assert delete(client, ALL) == []

    question = asked(client)
    assert question["method"] == "elicitation/create"
    assert "12 entities and 12 observations" in question["params"]["message"]
    assert len(client.names()) == 12
    answer(client, question, YES)

    (reply,) = client.wait()
    assert reply["id"] == "d"
    assert reply["result"]["structuredContent"]["deleted"] == ALL
    assert client.names() == []


def deletions(*several: list[str]) -> str:
    """A batch of them."""
    calls = [{"name": "delete_entities", "arguments": {"entityNames": names}} for names in several]
    return json.dumps(
        [{"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": call} for ident, call in enumerate(calls)]
    )


def test_in_a_batch_nobody_can_be_asked_so_a_large_deletion_must_come_alone(sqlite_space: Space) -> None:
    client = filled(Client(version="2025-03-26", tools=catalog(), capabilities=CAN, space=sqlite_space))

    ((large, small),) = client.line(deletions(ALL, ALL[:2]))

    assert large["result"]["isError"] is True
    said = large["result"]["content"][0]["text"]
    assert "12 entities and 12 observations" in said and "Send this call alone" in said
    assert small["result"].get("isError") is None
    assert client.names() == ALL[2:]
    assert sqlite_space.check() == []


def test_in_a_batch_of_one_who_cannot_ask_all_is_deleted_as_when_it_comes_alone() -> None:
    client = shaken({}, version="2025-03-26")

    ((said,),) = client.line(deletions(ALL))

    assert said["result"].get("isError") is None
    assert client.names() == []


@pytest.mark.parametrize("said", NO)
def test_a_large_deletion_does_not_happen_when_the_user_does_not(said: dict[str, Any]) -> None:
    client = shaken()
    delete(client, ALL)
    answer(client, asked(client), said)

    (reply,) = client.wait()

    assert reply["result"]["isError"] is True
    assert "nothing was changed" in reply["result"]["content"][0]["text"]
    assert len(client.names()) == 12


def test_a_small_deletion_asks_nobody() -> None:
    client = shaken()

    (reply,) = delete(client, ["n1"])

    assert reply["result"]["structuredContent"] == {"deleted": ["n1"]}


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"elicitation": True}])
def test_who_cannot_be_asked_is_not_stopped(capabilities: dict[str, Any]) -> None:
    client = shaken(capabilities)

    (reply,) = delete(client, ALL)

    assert len(reply["result"]["structuredContent"]["deleted"]) == 12


def test_nobody_is_asked_where_that_is_switched_off() -> None:
    client = shaken()
    client.offer.confirm_above = 0

    assert len(delete(client, ALL)) == 1


def test_calls_pass_one_that_waits_for_its_user() -> None:
    client = shaken()
    delete(client, ALL)
    question = asked(client)
    client.send("tools/call", "s", name="graph_stats")
    client.send("tools/call", "e", name="delete_entities", arguments={"entityNames": ["n0"]})
    while len(client.sent) < 2:
        time.sleep(0.001)
    answer(client, question, YES)

    assert [one["id"] for one in client.wait()] == ["s", "e", "d"]


def test_what_grew_while_the_user_thought_is_asked_about_again() -> None:
    client = shaken()
    delete(client, ALL)
    question = asked(client)
    client.send("tools/call", "a", name="add_observations", arguments={"name": "n0", "observations": ["more"]})
    assert asked(client)["id"] == "a"
    answer(client, question, YES)

    again = asked(client)
    assert "13 observations" in again["params"]["message"]
    answer(client, again, YES)
    assert client.wait()[-1]["result"]["structuredContent"]["deleted"] == ALL


def test_a_question_ends_with_its_call() -> None:
    client = shaken()
    delete(client, ALL)
    question = asked(client)
    client.notify("notifications/cancelled", requestId="d")

    assert client.wait() == []
    assert len(client.names()) == 12
    assert client.line(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": YES})) == []
    assert len(client.names()) == 12


def test_an_answer_to_nothing_is_ignored() -> None:
    client = shaken()

    assert client.line('{"jsonrpc":"2.0","id":"ask-1","result":{}}') == []
    delete(client, ALL)
    question = asked(client)
    assert client.line('{"jsonrpc":"2.0","id":"ask-99","result":{}}') == []
    answer(client, question, {"action": "decline"})
    assert len(client.wait()) == 1


def test_a_merge_of_two_large_entities_asks_too() -> None:
    client = shaken()
    texts = [f"fact {number}" for number in range(20)]
    client.call("add_observations", name="n0", observations=texts)
    client.send("tools/call", "m", name="merge_entities", arguments={"source": "n0", "target": "n1"})

    question = asked(client)
    assert "merge 1 entity and 21 observations" in question["params"]["message"]
    answer(client, question, YES)
    assert client.wait()[-1]["result"]["structuredContent"]["addedObservations"] == 21


# ── without one ──────────────────────────────────────────────────────────────────────────────────


def required(client: Client) -> dict[str, Any]:
    (reply,) = delete(client, ALL, _meta=ABLE)
    methods.validate_server_result("tools/call", "2026-07-28", reply["result"])
    result: dict[str, Any] = reply["result"]
    return result


def come_back(client: Client, state: Any, answers: Any, names: list[str] | None = None) -> Any:
    more = {} if state is None else {"requestState": state}
    (reply,) = delete(client, ALL if names is None else names, _meta=ABLE, inputResponses=answers, **more)
    return reply


def test_a_stateless_deletion_is_answered_with_a_question_and_made_with_the_answer() -> None:
    client = stateless()

    result = required(client)
    assert result["resultType"] == "input_required"
    (key,) = result["inputRequests"]
    assert result["inputRequests"][key]["method"] == "elicitation/create"
    assert len(client.names()) == 12

    reply = come_back(client, result["requestState"], {key: YES})
    assert reply["result"]["resultType"] == "complete"
    assert client.names() == []


@pytest.mark.parametrize("said", NO)
def test_a_stateless_deletion_that_is_not_agreed_to_changes_nothing(said: dict[str, Any]) -> None:
    client = stateless()
    result = required(client)

    assert come_back(client, result["requestState"], {"confirm": said})["result"]["isError"] is True
    assert len(client.names()) == 12


def test_an_answer_without_the_question_is_asked_for() -> None:
    client = stateless()

    assert come_back(client, None, {"confirm": YES})["result"]["resultType"] == "input_required"
    assert len(client.names()) == 12


@pytest.mark.parametrize("state", ["", "x", "AAAA", 5, "A" * 100_000])
def test_a_state_that_is_not_ours_is_refused(state: Any) -> None:
    client = stateless()

    assert come_back(client, state, {"confirm": YES})["error"]["code"] == -32602
    assert len(client.names()) == 12


def test_a_state_is_good_for_its_own_call_only() -> None:
    client = stateless()
    state = required(client)["requestState"]

    assert come_back(client, state, {"confirm": YES}, ALL[:11])["error"]["code"] == -32602
    assert come_back(client, state[:-4] + "AAAA", {"confirm": YES})["error"]["code"] == -32602
    assert come_back(stateless(), state, {"confirm": YES})["error"]["code"] == -32602
    assert len(client.names()) == 12


def test_a_state_grows_old() -> None:
    sealer = Sealer()
    sealed = sealer.seal([1, "two"], b"call", now=1000.0)

    assert sealer.open(sealed, b"call", now=1000.0 + sealing.KEEP_SECONDS) == [1, "two"]
    with pytest.raises(Exception, match="too old"):
        sealer.open(sealed, b"call", now=1001.0 + sealing.KEEP_SECONDS)


@pytest.mark.parametrize("answers", [None, 5, {"confirm": 5}, []])
def test_answers_of_another_shape_are_refused(answers: Any) -> None:
    client = stateless()

    assert come_back(client, required(client)["requestState"], answers)["error"]["code"] == -32602
    assert len(client.names()) == 12


def test_what_grew_since_the_question_is_asked_about_again() -> None:
    client = stateless()
    state = required(client)["requestState"]
    client.send("tools/call", name="add_observations", arguments={"name": "n0", "observations": ["more"]}, _meta=META)

    again = come_back(client, state, {"confirm": YES})["result"]

    assert "13 observations" in again["inputRequests"]["confirm"]["params"]["message"]
    assert come_back(client, again["requestState"], {"confirm": YES})["result"]["resultType"] == "complete"


def test_losses_say_what_goes_in_words() -> None:
    graph = stateless().space.graph()

    assert str(losses_of(graph, [])) == "nothing"
