"""Any sequence of writes leaves the graph, a toy model of it, and what a fresh open finds, all equal.

The model is written from the descriptions of the tools, not from their code: names, texts and triples,
without ids, changes or stores."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mcp_memory.assembly import open_space
from mcp_memory.graph import Graph
from mcp_memory.tools.inverses import inverse_of
from tests.conftest import Caller, Refused

# Few of each, so that calls meet: the same name again, a relation again, a text again.
names = st.sampled_from(["Ada", "Bob", "Ñandú", "名前", 'a "b" \\ c'])
texts = st.lists(st.sampled_from(["likes tea", "plays chess", "", "línea\nnueva", "likes  tea", "🫖"]), max_size=3)
kinds = st.sampled_from(["Person", "Thing", "Generic"])
types = st.sampled_from(["knows", "owns", "contiene", "parte_de"])
Triple = tuple[str, str, str]


class Thing:
    """An entity as the model knows it: what is believed of it, and what was."""

    def __init__(self, entity_type: str, status: str) -> None:
        self.entity_type = entity_type
        self.status = status
        self.texts: list[str] = []
        self.replaced: list[str] = []

    def believe(self, texts: list[str]) -> list[str]:
        fresh = [text for text in dict.fromkeys(texts) if text not in self.texts]
        self.texts += fresh
        return fresh


class Model:
    """What is true, in plain dictionaries."""

    def __init__(self) -> None:
        self.things: dict[str, Thing] = {}
        self.links: dict[Triple, bool] = {}  # is it true now?
        self.thoughts: list[str] = []

    def link(self, source: str, kind: str, target: str) -> None:
        self.links[source, kind, target] = True
        opposite = inverse_of(kind)
        if opposite is not None:
            self.links[target, opposite, source] = True

    def pair(self, triple: Triple) -> set[Triple]:
        """A relation, and its inverse where there is one."""
        source, kind, target = triple
        opposite = inverse_of(kind)
        return {one for one in (triple, (target, opposite or "", source)) if one in self.links}

    def forget(self, name: str) -> None:
        del self.things[name]
        self.links = {triple: active for triple, active in self.links.items() if name not in (triple[0], triple[2])}

    def merge(self, source: str, target: str) -> None:
        """What was known of one is known of the other; what was true of either is true of it."""
        going, staying = self.things[source], self.things[target]
        staying.believe(going.texts)
        staying.replaced += going.replaced
        for (one, kind, other), is_active in list(self.links.items()):
            if source in (one, other):
                triple = (target if one == source else one, kind, target if other == source else other)
                if triple[0] != triple[2]:
                    self.links[triple] = self.links.get(triple, False) or is_active
        self.forget(source)


def seen_in(graph: Graph) -> tuple[Any, Any]:
    """A graph in the words of the model."""
    things = {
        one.name: (
            one.entity_type,
            one.status,
            one.texts(),
            [seen.text for seen in one.observations if seen.superseded_at is not None],
        )
        for one in graph.entities()
    }
    links = {
        (graph.name_of(one.source), one.relation_type, graph.name_of(one.target)): one.is_active
        for one in graph.relations.values()
    }
    return things, links


def told_by(model: Model) -> tuple[Any, Any]:
    things = {name: (one.entity_type, one.status, one.texts, one.replaced) for name, one in model.things.items()}
    return things, model.links


class Machine(RuleBasedStateMachine):
    """What every store can hold."""

    file = ""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / self.file
        self.model = Model()
        self.open()

    def open(self) -> None:
        self.space = open_space(self.path, roots=(str(self.folder),))
        self.caller = Caller(self.space)

    def call(self, tool: str, /, **arguments: Any) -> Any:
        return self.caller(tool, **arguments)

    # ── writers ──────────────────────────────────────────────────────────────────────────────────

    @rule(given=st.lists(st.tuples(names, texts, st.none() | kinds), min_size=1, max_size=3))
    def create(self, given: list[tuple[str, list[str], str | None]]) -> None:
        entities = [
            {"name": name, "observations": told} | ({} if kind is None else {"entityType": kind})
            for name, told, kind in given
        ]
        self.call("create_entities", entities=entities)
        for name, told, kind in given:
            thing = self.model.things.setdefault(name, Thing("Generic", "activo"))
            thing.entity_type = kind or thing.entity_type
            thing.believe(told)

    @rule(name=names, told=texts, kind=kinds)
    def upsert(self, name: str, told: list[str], kind: str) -> None:
        answer = self.call("upsert_entities", entities=[{"name": name, "observations": told, "entityType": kind}])
        known = name in self.model.things
        fresh = self.model.things.setdefault(name, Thing(kind, "activo")).believe(told)
        assert answer == {"results": [{"name": name, "created": not known, "addedObservations": fresh}]}

    @rule(given=st.lists(st.tuples(names, texts), min_size=1, max_size=3))
    def observe(self, given: list[tuple[str, list[str]]]) -> None:
        arguments = [{"entityName": name, "contents": told} for name, told in given]
        missing = [name for name, _ in given if name not in self.model.things]
        try:
            results = self.call("add_observations", observations=arguments)["results"]
        except Refused as refused:
            assert str(refused) == f"Entity not found: {missing[0]}"
            return
        assert not missing
        for (name, told), result in zip(given, results, strict=True):
            assert result == {"entityName": name, "addedObservations": self.model.things[name].believe(told)}

    @rule(given=st.lists(st.tuples(names, types, names), min_size=1, max_size=3))
    def relate(self, given: list[Triple]) -> None:
        relations = [{"from": one, "to": other, "relationType": kind} for one, kind, other in given]
        items = self.call("create_relations", relations=relations)["relations"]
        for triple, item in zip(given, items, strict=True):
            known = {triple[0], triple[2]} <= self.model.things.keys()
            assert ("error" not in item) == (known and not self.model.links.get(triple, False))
            if "error" not in item:
                self.model.link(*triple)

    @rule(unwanted=st.lists(names, min_size=1, max_size=2))
    def delete(self, unwanted: list[str]) -> None:
        known = [name for name in dict.fromkeys(unwanted) if name in self.model.things]
        assert self.call("delete_entities", entityNames=unwanted)["deleted"] == known
        for name in known:
            self.model.forget(name)

    @rule(name=names, told=texts)
    def unobserve(self, name: str, told: list[str]) -> None:
        thing = self.model.things.get(name)
        try:
            self.call("delete_observations", name=name, observations=told)
        except Refused:
            assert thing is None
            return
        assert thing is not None
        thing.texts = [text for text in thing.texts if text not in told]
        thing.replaced = [text for text in thing.replaced if text not in told]

    @rule(triple=st.tuples(names, types, names))
    def unrelate(self, triple: Triple) -> None:
        source, kind, target = triple
        deleted = self.call("delete_relations", relations=[{"from": source, "to": target, "relationType": kind}])
        assert bool(deleted["deleted"]) == (triple in self.model.links)
        if triple in self.model.links:
            for one in self.model.pair(triple):
                del self.model.links[one]

    @rule(pair=st.tuples(names, names))
    def merge(self, pair: tuple[str, str]) -> None:
        source, target = pair
        things = self.model.things
        try:
            answer = self.call("merge_entities", source=source, target=target)
        except Refused:
            assert source == target or not {source, target} <= things.keys()
            return
        assert source != target
        moved, had = things[source].texts, things[target].texts
        assert answer["movedObservations"] == len(moved)
        assert answer["addedObservations"] == len(set(moved) - set(had))
        self.model.merge(source, target)
        # In which order two entities learned what they did, the model does not know.
        _, _, believed, replaced = seen_in(self.space.graph())[0][target]
        assert sorted(believed) == sorted(things[target].texts)
        assert sorted(replaced) == sorted(things[target].replaced)
        things[target].texts, things[target].replaced = believed, replaced

    @rule(pair=st.tuples(names, names), places=st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True))
    def split(self, pair: tuple[str, str], places: list[int]) -> None:
        whole, part = pair
        things = self.model.things
        known = things[whole].texts if whole in things else []
        told = [known[place] for place in places if place < len(known)]
        approved = [{"name": part, "entity_type": "Part", "observations": told}]
        try:
            result = self.call("execute_entity_split", entity_name=whole, approved_splits=approved)["result"]
        except Refused:
            assert not told or whole == part or (part in things and not set(told).isdisjoint(things[part].texts))
            return
        assert (result["moved_observations"], result["original_observations_remaining"]) == (
            len(told),
            len(known) - len(told),
        )
        parts = things.setdefault(part, Thing("Part", "activo"))
        things[whole].texts = [text for text in known if text not in told]
        parts.texts += told
        self.model.link(whole, "contiene", part)
        # What moved along as history, and in which order both stand now, the model does not know.
        before = sorted(things[whole].replaced + parts.replaced)
        for name in pair:
            _, _, believed, replaced = seen_in(self.space.graph())[0][name]
            assert sorted(believed) == sorted(things[name].texts)
            things[name].texts, things[name].replaced = believed, replaced
        assert sorted(things[whole].replaced + parts.replaced) == before

    @rule(
        good=st.lists(st.tuples(names, texts), max_size=3), linked=st.lists(st.tuples(names, types, names), max_size=2)
    )
    def migrate(self, good: list[tuple[str, list[str]]], linked: list[Triple]) -> None:
        lines = [
            *({"type": "relation", "from": one, "relationType": kind, "to": other} for one, kind, other in linked),
            *({"type": "entity", "name": name, "entityType": "Thing", "observations": told} for name, told in good),
        ]
        source = self.folder / "source.jsonl"
        source.write_bytes(b"\n".join([*map(msgspec.json.encode, lines), b"no line"]))
        self.call("migrate", source_path=str(source))
        for name, told in good:
            self.model.things.setdefault(name, Thing("Thing", "activo")).believe(told)
        for triple in linked:
            if {triple[0], triple[2]} <= self.model.things.keys():
                self.model.link(*triple)

    # ── moments ──────────────────────────────────────────────────────────────────────────────────

    @rule()
    def settle(self) -> None:
        self.space.settle()

    @rule()
    def compact(self) -> None:
        assert self.call("compact")["success"]

    @rule()
    def reopen(self) -> None:
        self.space.close()
        self.open()

    @rule(name=names)
    def another_process_writes(self, name: str) -> None:
        other = open_space(self.path)
        try:
            Caller(other)("upsert_entities", entities=[{"name": name, "observations": ["from elsewhere"]}])
        finally:
            other.close()
        self.model.things.setdefault(name, Thing("Generic", "activo")).believe(["from elsewhere"])

    @rule()
    def check(self) -> None:
        assert [finding.text for finding in self.space.check()] == []

    # ── laws ─────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def the_graph_is_the_model(self) -> None:
        if hasattr(self, "space"):
            assert seen_in(self.space.graph()) == told_by(self.model)

    def teardown(self) -> None:
        if not hasattr(self, "space"):
            return
        try:
            self.check()
            fresh = open_space(self.path)
            try:
                assert seen_in(fresh.graph()) == told_by(self.model)
                assert [finding.text for finding in fresh.check()] == []
            finally:
                fresh.close()
        finally:
            self.space.close()
            shutil.rmtree(self.folder)


class DatabaseMachine(Machine):
    """And what only a database can: kinds, status, supersession and relations that ended."""

    file = "memory.db"

    @rule(name=names, text=st.sampled_from(["newer", "newest", "likes tea"]), place=st.integers(0, 3))
    def supersede(self, name: str, text: str, place: int) -> None:
        thing = self.model.things.get(name)
        old = thing.texts[place] if thing is not None and place < len(thing.texts) else "never said"
        known = None
        if thing is not None and text in thing.texts:
            known = next(seen for seen in self.space.graph()[name].active() if seen.text == text)
        is_new = known is None or (text != old and known.supersedes is None)
        allowed = thing is not None and old in thing.texts and is_new
        try:
            self.call("add_observations", name=name, observations=[text], kind="milestone", supersedes=old)
        except Refused:
            assert not allowed
            return
        assert allowed and thing is not None
        thing.texts.remove(old)
        thing.replaced.append(old)
        thing.believe([text])
        order = [seen.text for seen in self.space.graph()[name].observations if seen.superseded_at is not None]
        assert sorted(order) == sorted(thing.replaced)
        thing.replaced = order  # in order of arrival, which the model does not know of what was replaced

    @precondition(lambda self: self.model.links)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        triple = data.draw(st.sampled_from(sorted(self.model.links)))
        graph = self.space.graph()
        relation = graph.relation(graph[triple[0]].id, graph[triple[2]].id, triple[1])
        assert relation is not None
        self.call("end_relation", relation_id=relation.id)
        if self.model.links[triple]:
            for one in self.model.pair(triple):
                self.model.links[one] = False

    @rule(name=names, content=st.sampled_from(["She matters", "Nobody knows"]))
    def reflect(self, name: str, content: str) -> None:
        try:
            result = self.call("add_reflection", target_type="entity", target_id=name, content=content)["result"]
        except Refused:
            assert name not in self.model.things
            return
        assert (result["target"], result["content"]) == (name, content)
        told = self.call("describe_entity", name=name)["entity"]["reflections"]
        assert told[-1]["id"] == result["id"]
        self.model.thoughts.append(content)

    @precondition(lambda self: self.model.links)
    @rule(data=st.data())
    def reflect_on_a_relation(self, data: st.DataObject) -> None:
        source, kind, target = data.draw(st.sampled_from(sorted(self.model.links)))
        about = {"from": source, "to": target, "relationType": kind}
        self.call("add_reflection", target_type="relation", target_id=about, content="It lasts")
        self.model.thoughts.append("It lasts")

    @invariant()
    def every_thought_is_kept_once(self) -> None:
        assert [one.content for one in self.space.graph().reflections.values()] == self.model.thoughts

    @rule()
    def look_at_everything(self) -> None:
        """Readers of all kinds; that they change nothing is an invariant."""
        self.call("consolidation_report")
        self.call("find_split_candidates")
        self.call("search_reflections", query="matters")

    @rule(name=names, status=st.sampled_from(["activo", "archivado"]))
    def change_status(self, name: str, status: str) -> None:
        self.call("create_entities", entities=[{"name": name, "status": status}])
        self.model.things.setdefault(name, Thing("Generic", status)).status = status


class JsonlMachine(Machine):
    file = "memory.jsonl"


class JournalMachine(Machine):
    file = "memory.mcpmem"


COMMON = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
)
TestDatabase = DatabaseMachine.TestCase
TestDatabase.settings = COMMON
TestJsonl = JsonlMachine.TestCase
TestJsonl.settings = COMMON
TestJournal = JournalMachine.TestCase
TestJournal.settings = COMMON

__all__ = ["TestDatabase", "TestJournal", "TestJsonl"]
