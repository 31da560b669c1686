"""Undo leaves exactly the graph that was there before, whatever was called; undo of undo the later one; and
the graph as of any call is the graph that stood there then."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from mcp_memory.assembly import open_space
from mcp_memory.changes import FLAGGING, ObservationFlagged, Plan
from mcp_memory.conversion import export_memory
from mcp_memory.errand import Errand
from mcp_memory.graph import Graph
from mcp_memory.space import Space
from mcp_memory.tools.catalog import catalog
from tests.conftest import Caller, Refused, link, person
from tests.test_state_machine import COMMON, DatabaseMachine, names, texts, types


def facts(graph: Graph) -> Any:
    """Every fact in every field, in order."""
    kinds = (graph.by_id.values(), graph.relations.values(), graph.reflections.values())
    return msgspec.to_builtins([list(kind) for kind in kinds])


class UndoMachine(DatabaseMachine):
    """Every call of the state machine is taken back, compared, and brought back."""

    def open(self) -> None:
        super().open()
        if not hasattr(self, "states"):
            self.states: dict[int, Any] = {0: facts(self.space.graph())}

    @invariant()
    def undo_restores_what_was_and_its_undo_what_is(self) -> None:
        if not hasattr(self, "space"):
            return
        graph = self.space.graph()
        seq, now = graph.seq, facts(graph)
        if seq in self.states:
            assert now == self.states[seq]
            return
        before = self.states[max(self.states)]
        self.states[seq] = now
        self.call("undo")
        assert facts(self.space.graph()) == before
        self.states[self.space.graph().seq] = before
        self.call("undo")
        assert facts(self.space.graph()) == now
        self.states[self.space.graph().seq] = now

    @precondition(lambda self: len(self.states) > 1)
    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        seq = data.draw(st.sampled_from(sorted(self.states)[1:]))
        assert facts(self.space.graph_at(str(seq))) == self.states[seq]

    @precondition(lambda self: len(self.states) > 1)
    @rule(data=st.data())
    def go_back_several_calls(self, data: st.DataObject) -> None:
        calls = sorted(self.states)[1:]
        count = data.draw(st.integers(1, len(calls)))
        now = facts(self.space.graph())
        # The numbers of the states are those of the last entries of calls, and each call here is one entry.
        self.call("undo", last=count)
        assert facts(self.space.graph()) == self.states[sorted(self.states)[-1 - count]]
        self.call("undo")
        assert facts(self.space.graph()) == now
        end = self.space.graph().seq
        self.states |= {end - 1: self.states[sorted(self.states)[-1 - count]], end: now}

    @precondition(lambda self: len(self.states) > 1)
    @rule(data=st.data())
    def take_back_one_of_many(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.states)[1:]))
        now = facts(self.space.graph())
        seq = self.space.graph().seq
        try:
            self.call("undo", call=number)
        except Refused:
            assert (facts(self.space.graph()), self.space.graph().seq) == (now, seq)
            return
        self.states[seq + 1] = facts(self.space.graph())
        self.check()
        self.call("undo")
        assert facts(self.space.graph()) == now
        self.states[seq + 2] = now


TestUndo = UndoMachine.TestCase
TestUndo.settings = settings(COMMON, max_examples=20, stateful_step_count=20)

official_calls = st.one_of(
    st.tuples(st.just("create_entities"), st.lists(st.tuples(names, texts), min_size=1, max_size=2)),
    st.tuples(st.just("create_relations"), st.lists(st.tuples(names, types, names), min_size=1, max_size=3)),
    st.tuples(st.just("delete_relations"), st.lists(st.tuples(names, types, names), min_size=1, max_size=2)),
    st.tuples(st.just("delete_entities"), st.lists(names, min_size=1, max_size=2)),
)


def official_arguments(tool: str, drawn: list[Any]) -> dict[str, Any]:
    if tool == "create_entities":
        return {"entities": [person(name, *told) for name, told in drawn]}
    if tool == "delete_entities":
        return {"entityNames": drawn}
    return {"relations": [link(*triple) for triple in drawn]}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=st.lists(official_calls, min_size=1, max_size=8), chosen=st.integers(0, 7))
def test_relations_of_entities_that_nobody_created_are_taken_back_too(drawn: list[Any], chosen: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        space = open_space(Path(folder) / "memory.db")
        official, full = Caller(space, "official"), Caller(space)
        states = {0: facts(space.graph())}
        for tool, given_ in drawn:
            before, seq = facts(space.graph()), space.graph().seq
            official.desk.call(
                official.desk.tools[tool], msgspec.json.encode(official_arguments(tool, given_)), origin="test"
            )
            now = facts(space.graph())
            if space.graph().seq == seq:
                continue
            states[space.graph().seq] = now
            full("undo")
            assert facts(space.graph()) == before
            full("undo")
            assert facts(space.graph()) == now
        for seq, state in states.items():
            assert facts(space.graph_at(str(seq))) == state
        calls = [seq for seq in states if seq]
        if calls:
            with_suppressed_refusal(full, calls[chosen % len(calls)])
        assert [finding.text for finding in space.check()] == []
        space.close()


def with_suppressed_refusal(full: Caller, number: int) -> None:
    try:
        full("undo", call=number)
    except Refused as refused:
        assert "cannot be taken back alone" in str(refused)


# ── any calls at all ─────────────────────────────────────────────────────────────────────────────

few = st.lists(names, min_size=1, max_size=2)
kinds = st.sampled_from(["knows", "contiene", "parte_de"])
said = st.lists(st.sampled_from(["likes tea", "likes coffee", "plays chess", "tall"]), min_size=1, max_size=3)
CALLS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "create_entities": st.builds(
        lambda name, kind, told, status: {
            "entities": [{"name": name, "entityType": kind, "observations": told, "status": status}]
        },
        names, st.sampled_from(["Person", "Place"]), said, st.sampled_from(["activo", "archivado"]),
    ),
    "upsert_entities": st.builds(lambda name, told: {"entities": [person(name, *told)]}, names, said),
    "add_observations": st.builds(
        lambda name, told, kind, old: {"name": name, "observations": told, "kind": kind, **old},
        names, said.map(lambda told: told[:1]), st.sampled_from(["generic", "milestone"]),
        st.just({}) | said.map(lambda told: {"supersedes": told[0]}),
    ),
    "create_relations": st.builds(
        lambda one, kind, other, more: {"relations": [{**link(one, kind, other), **more}]},
        names, kinds, names, st.just({}) | st.just({"context": "at work"}),
    ),
    "end_relation": st.builds(lambda number: {"relation_id": number}, st.integers(1, 12)),
    "delete_relations": st.builds(
        lambda one, kind, other: {"relations": [link(one, kind, other)]}, names, kinds, names
    ),
    "delete_observations": st.builds(lambda name, told: {"name": name, "observations": told}, names, said),
    "delete_entities": few.map(lambda unwanted: {"entityNames": unwanted}),
    "merge_entities": st.builds(lambda one, other: {"source": one, "target": other}, names, names),
    "settle_flags": st.builds(lambda name: {"name": name}, names),
    "execute_entity_split": st.builds(
        lambda one, other, told: {
            "entity_name": one,
            "approved_splits": [{"name": other, "entity_type": "Part", "observations": sorted(set(told))}],
        },
        names, names, said,
    ),
    "add_reflection": st.builds(
        lambda target, content: {**target, "content": content},
        st.sampled_from([{"target_type": "global"}, {"target_type": "session"}])
        | st.builds(lambda name: {"target_type": "entity", "target_id": name}, names)
        | st.builds(lambda number: {"target_type": "relation", "target_id": number}, st.integers(1, 9)),
        st.sampled_from(["so it goes", "it matters"]),
    ),
    "migrate": st.sampled_from(["other.db", "other.jsonl", "other.mcpmem", "other.mcphistory"]).map(
        lambda name: {"source_path": name}
    ),
    "undo": st.builds(lambda most: {"last": most}, st.integers(1, 3)),
}  # fmt: skip


def called(tool: str) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return CALLS[tool].map(lambda given: (tool, given))


any_call = st.one_of([called(tool) for tool in CALLS])


def test_every_tool_that_changes_facts_is_tried() -> None:
    changing = {tool.name for tool in catalog("full").values() if tool.writes}

    assert changing - CALLS.keys() == {"compact"}  # which changes none


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another memory in every format, which knows some of the same names."""
    folder = tmp_path_factory.mktemp("elsewhere")
    space = open_space(folder / "other.db")
    call = Caller(space)
    call("create_entities", entities=[person("Ada", "tall", "sings"), person("Bob", "likes rum"), person("Zoe")])
    call("create_relations", relations=[link("Ada", "contiene", "Bob"), link("Bob", "knows", "Zoe")])
    call("add_observations", name="Ada", observations=["tall"], supersedes="sings")
    call("end_relation", relation_id=3)
    call("add_reflection", target_type="entity", target_id="Ada", content="good company")
    for name in ("other.jsonl", "other.mcpmem", "other.mcphistory"):
        export_memory(space, str(folder / name), Errand())
    space.close()
    return folder


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=st.lists(any_call, min_size=2, max_size=14))
def test_whatever_was_called_the_last_call_is_taken_back_and_brought_back(
    elsewhere: Path, drawn: list[tuple[str, dict[str, Any]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        space = open_space(Path(folder) / "memory.db", roots=(str(elsewhere),))
        call = Caller(space)
        states = {0: facts(space.graph())}
        for tool, given_ in drawn:
            before, seq = facts(space.graph()), space.graph().seq
            path = {"source_path": str(elsewhere / given_["source_path"])} if "source_path" in given_ else {}
            answer = call.desk.call(call.desk.tools[tool], msgspec.json.encode({**given_, **path}), origin="test")
            assert "inside the server" not in (answer.text or "")
            now, end = facts(space.graph()), space.graph().seq
            if answer.is_error or end == seq:
                assert now == before
                continue
            states[end] = now
            if not seq and given_.get("source_path") == "other.mcphistory":
                continue  # a new memory took over a history: its calls can be taken back one by one
            call("undo")
            assert facts(space.graph()) == before
            call("undo")
            assert facts(space.graph()) == now
        for seq, state in states.items():
            assert facts(space.graph_at(str(seq))) == state
        space.settle()
        assert [finding.text for finding in space.check()] == []
        now = facts(space.graph())
        space.close()
        fresh = open_space(Path(folder) / "memory.db")
        assert facts(fresh.graph()) == now
        fresh.close()


# ── one by one ───────────────────────────────────────────────────────────────────────────────────


def test_a_deletion_is_taken_back_with_observations_relations_and_times(keep: Caller, sqlite_space: Space) -> None:
    keep("create_entities", entities=[person("Ada", "likes tea"), person("Bob")])
    keep("create_relations", relations=[link("Ada", "knows", "Bob")])
    before = facts(sqlite_space.graph())
    keep("delete_entities", entityNames=["Ada"])

    answer = keep("undo")

    assert answer["undone"][0]["tool"] == "delete_entities"
    assert answer["undone"][0]["did"] == ['deleted Ada with 1 relation: "likes tea"']
    assert facts(sqlite_space.graph()) == before


def newer_by_an_older(keep: Caller) -> None:
    """A text that was said first replaces one that was said later: it refers ahead."""
    keep("create_entities", entities=[person("Ada", "likes tea"), person("Bob")])
    keep("add_observations", name="Ada", observations=["likes coffee"])
    keep("add_observations", name="Ada", observations=["likes tea"], supersedes="likes coffee")


@pytest.mark.parametrize("size", [1, 5000])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("delete_entities", {"entityNames": ["Ada", "Bob"]}),
        ("delete_observations", {"name": "Ada", "observations": ["likes tea", "likes coffee"]}),
        ("merge_entities", {"source": "Ada", "target": "Bob"}),
    ],
)
def test_what_replaced_something_younger_than_itself_comes_back_into_the_tables(
    keep: Caller,
    sqlite_space: Space,
    database: Path,
    tool: str,
    arguments: dict[str, Any],
    size: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However small the pieces are in which they follow."""
    monkeypatch.setattr("mcp_memory.space.CHANGES_PER_ENTRY", size)
    monkeypatch.setattr("mcp_memory.stores.sqlite.store.BATCH_ENTRIES", min(size, 256))
    newer_by_an_older(keep)
    before = facts(sqlite_space.graph())
    keep(tool, **arguments)
    sqlite_space.settle()

    keep("undo")
    sqlite_space.settle()

    assert facts(sqlite_space.graph()) == before
    fresh = open_space(database)
    assert facts(fresh.graph()) == before
    assert [finding.text for finding in fresh.check()] == []
    fresh.close()


@pytest.mark.parametrize("name", ["copy.db", "copy.mcphistory"])
def test_what_replaced_something_younger_than_itself_goes_into_another_memory(
    keep: Caller, sqlite_space: Space, tmp_path: Path, name: str
) -> None:
    newer_by_an_older(keep)
    export_memory(sqlite_space, str(tmp_path / name), Errand())
    other = open_space(tmp_path / "other.db", roots=(str(tmp_path),))

    Caller(other)("migrate", source_path=str(tmp_path / name))
    other.settle()

    assert facts(other.graph()) == facts(sqlite_space.graph())
    assert [finding.text for finding in other.check()] == []
    other.close()


def test_an_import_is_taken_back_whole(keep: Caller, sqlite_space: Space, tmp_path: Path) -> None:
    keep("create_entities", entities=[person("Ada", "likes tea")])
    before = facts(sqlite_space.graph())
    lines = [msgspec.json.encode({"type": "entity", **person(f"n{i}", "seen")}) for i in range(6000)]
    (tmp_path / "big.jsonl").write_bytes(b"\n".join(lines))
    keep("migrate", source_path=str(tmp_path / "big.jsonl"))
    after = facts(sqlite_space.graph())
    assert keep("history", limit=1)["calls"][0]["more"] == 6000 - 5

    keep("undo")
    assert facts(sqlite_space.graph()) == before
    keep("undo")
    assert facts(sqlite_space.graph()) == after


def test_a_call_that_was_taken_back_already_is_told_so(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada"), person("Bob")])
    keep("create_relations", relations=[link("Ada", "knows", "Bob")])
    keep("undo", call=2)

    assert "Call 2 was taken back already, by call 3" in keep.refusal("undo", call=2)
    keep("undo", call=3)
    assert keep("undo", call=2)["undone"][0]["call"] == 2


def test_one_call_and_the_last_ones_are_not_asked_for_at_once(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada")])
    keep("create_entities", entities=[person("Bob")])

    assert "not both" in keep.refusal("undo", call=1, last=2)


def test_taking_back_a_large_deletion_costs_as_much_as_it_brings_back(
    keep: Caller, sqlite_space: Space, tmp_path: Path
) -> None:
    """20,000 entities took 0.5 s of processor time here, and the list of such calls 2.5 s with what the tables had to
    catch up with; when each entity was looked for among all, 8,000 took 69 s."""
    lines = [msgspec.json.encode({"type": "entity", **person(f"n{i}", "seen", "heard")}) for i in range(20_000)]
    lines += [msgspec.json.encode({"type": "relation", **link(f"n{i}", "knows", f"n{i // 2}")}) for i in range(20_000)]
    (tmp_path / "big.jsonl").write_bytes(b"\n".join(lines))
    keep("migrate", source_path=str(tmp_path / "big.jsonl"))
    keep("undo")
    began = time.process_time()

    keep("undo")
    told = keep("history")["calls"]

    assert time.process_time() - began < 20
    assert [one["did"][0] for one in told] == [
        "took back call 9",
        "took back call 1",
        'created n0 (Person): "seen", "heard"',
    ]
    assert told[1]["more"] == 1 + 20_000 - 5
    assert sqlite_space.graph().relation_count == 20_000


def test_what_later_calls_build_on_is_not_taken_back_and_the_refusal_names_them(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada"), person("Bob")])
    keep("create_relations", relations=[link("Ada", "knows", "Bob")])
    keep("add_observations", name="Ada", observations=["likes tea"])

    said = keep.refusal("undo", call=1)

    assert "Call 1 cannot be taken back alone" in said
    assert "Ada got the relation Ada knows Bob since (call 2 create_relations)" in said
    assert "everything since with last: 3" in said


def test_one_call_is_taken_back_while_later_ones_stay(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "likes tea"), person("Bob")])
    keep("add_observations", name="Ada", observations=["plays chess"])
    keep("add_observations", name="Ada", observations=["moved to Rome"])
    keep("create_relations", relations=[link("Ada", "knows", "Bob")])

    answer = keep("undo", call=2)

    assert answer["call"] == 5
    assert keep("get_entity", name="Ada")["observations"] == ["likes tea", "moved to Rome"]
    assert keep("history", limit=1)["calls"][0]["did"] == ["took back call 2", 'Ada - "plays chess"']


def test_what_was_altered_later_and_brought_back_is_no_obstacle(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada")])
    keep("create_entities", entities=[person("Bob")])
    keep("delete_entities", entityNames=["Ada"])
    keep("undo")

    keep("undo", call=1)

    assert [one["name"] for one in keep("read_graph")["entities"]] == ["Bob"]


def flag(space: Space, entity: int, observation: int) -> None:
    """As the server does by itself after a call."""
    space.commit(lambda graph: Plan([ObservationFlagged(entity, observation, 1)]), tool=FLAGGING)


def test_what_the_server_flagged_by_itself_goes_with_the_call_it_followed(keep: Caller, sqlite_space: Space) -> None:
    keep("create_entities", entities=[person("Ada", "likes tea")])
    before = facts(sqlite_space.graph())
    keep("add_observations", name="Ada", observations=["she likes tea"])
    flag(sqlite_space, 1, 2)
    flag(sqlite_space, 1, 1)
    after = facts(sqlite_space.graph())

    assert [one["call"] for one in keep("undo")["undone"]] == [2]
    assert facts(sqlite_space.graph()) == before
    keep("undo")
    assert facts(sqlite_space.graph()) == after


def test_a_flag_is_no_obstacle(keep: Caller, sqlite_space: Space) -> None:
    keep("create_entities", entities=[person("Ada", "likes tea")])
    keep("add_observations", name="Ada", observations=["she likes tea"])
    flag(sqlite_space, 1, 2)
    keep("create_entities", entities=[person("Bob")])

    keep("undo", call=2)

    assert keep("get_entity", name="Ada")["observations"] == ["likes tea"]


def test_nobody_takes_back_the_call_of_another_without_naming_it(keep: Caller, sqlite_space: Space) -> None:
    keep("create_entities", entities=[person("Ada")])
    other = sqlite_space.call(keep.desk.tools["history"], (("", None, None, "", "", "", "", "", None, 20)), "x")
    assert other["calls"][0]["by"] == "test"
    tool = keep.desk.tools["undo"]

    answer = keep.desk.call(tool, b"{}", origin="somebody else/1.0 tcp 127.0.0.1")

    assert answer.is_error and 'made by \\"test\\", not by you' in (answer.text or "")
    assert not keep.desk.call(tool, b'{"call":1}', origin="somebody else/1.0 tcp 127.0.0.1").is_error


@pytest.mark.parametrize("file", ["memory.jsonl", "memory.mcpmem"])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("history", {}), ("undo", {}), ("read_graph", {"asOf": "1"}), ("get_entity", {"name": "Ada", "as_of": "1"})],
)
def test_plain_files_keep_no_history_and_say_what_would(
    file: str, tool: str, arguments: dict[str, Any], tmp_path: Path
) -> None:
    space = open_space(tmp_path / file)
    call = Caller(space)
    call("create_entities", entities=[person("Ada")])

    said = call.refusal(tool, **arguments)

    assert "keeps no history" in said and "mcp-memory import" in said
    space.close()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"call": 7}, "There is no call 7. history lists the calls"),
        ({"last": 9}, "There is only 1 calls in this history"),
        ({"last": 0}, "last"),
    ],
)
def test_what_cannot_be_taken_back_is_refused(keep: Caller, arguments: dict[str, Any], complaint: str) -> None:
    keep("create_entities", entities=[person("Ada")])

    assert complaint in keep.refusal("undo", **arguments)
