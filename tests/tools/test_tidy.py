"""Two entities that mean the same become one, and nothing that was known of either is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.assembly import open_space
from mcp_memory.changes import EntityCreated, Plan, ReflectionAdded, RelationCreated, RelationEnded
from mcp_memory.space import Space
from tests.conftest import STORES, Caller, link, person


def known(call: Caller) -> set[tuple[str, str, str]]:
    return {(r["from"], r["relationType"], r["to"]) for r in call("read_graph")["relations"]}


def test_observations_move_and_none_is_doubled(call: Caller) -> None:
    call("create_entities", entities=[person("Ada L.", "poet", "born 1815"), person("Ada", "wrote", "poet")])

    assert call("merge_entities", source="Ada L.", target="Ada") == {
        "source": "Ada L.",
        "target": "Ada",
        "movedObservations": 2,
        "addedObservations": 1,
        "redirectedRelations": 0,
    }
    assert sorted(call("get_entity", name="Ada")["observations"]) == ["born 1815", "poet", "wrote"]
    assert call.refusal("get_entity", name="Ada L.") == "Entity not found: Ada L."
    assert call("graph_stats")["totalObservations"] == 3


def test_relations_are_pointed_at_the_target_and_none_is_doubled(call: Caller) -> None:
    call("create_entities", entities=[person(name) for name in ("Old", "New", "Bob", "Cy")])
    call(
        "create_relations",
        relations=[
            link("Old", "knows", "Bob"),
            link("New", "knows", "Bob"),  # said of both
            link("Cy", "knows", "Old"),
            link("Old", "knows", "New"),  # would be with itself
            link("New", "likes", "Old"),
            link("Old", "likes", "Old"),
            link("Bob", "knows", "Cy"),  # concerns neither
        ],
    )

    assert call("merge_entities", source="Old", target="New")["redirectedRelations"] == 1
    assert known(call) == {("New", "knows", "Bob"), ("Cy", "knows", "New"), ("Bob", "knows", "Cy")}
    assert call("describe_entity", name="New")["degree"] == 2
    assert call("find_path", **{"from": "Cy", "to": "New"}) == {"path": ["Cy", "New"]}


def test_a_relation_keeps_its_id_and_context(keep: Caller) -> None:
    keep("create_entities", entities=[person(name) for name in ("Old", "New", "Bob")])
    (before,) = keep("create_relations", relations=[{**link("Old", "knows", "Bob"), "context": "since school"}])[
        "relations"
    ]

    keep("merge_entities", source="Old", target="New")

    assert keep("search_relations")["relations"] == [{**before, "from": "New"}]


@pytest.mark.parametrize("told", ["Old", "New"])
def test_where_both_say_the_same_the_one_that_says_more_is_kept(keep: Caller, told: str) -> None:
    keep("create_entities", entities=[person(name) for name in ("Old", "New", "Bob")])
    keep("create_relations", relations=[link(name, "knows", "Bob") for name in ("Old", "New") if name != told])
    keep("create_relations", relations=[{**link(told, "knows", "Bob"), "context": "since school"}])
    for name in ("Old", "New"):
        keep("add_observations", name=name, observations=["moves"], kind="decision" if name == told else "generic")
    before = keep("open_nodes", names=["Old", "New"], detail=True)

    keep("merge_entities", source="Old", target="New")

    (relation,) = keep("search_relations")["relations"]
    assert relation["context"] == "since school"
    (seen,) = keep("describe_entity", name="New")["entity"]["observations"]
    assert (seen["content"], seen["kind"]) == ("moves", "decision")
    keep("undo")
    assert keep("open_nodes", names=["Old", "New"], detail=True) == before


def test_a_kind_is_kept_where_the_one_with_a_history_stays(keep: Caller) -> None:
    keep("create_entities", entities=[person("Old", "Rome"), person("New")])
    keep("add_observations", name="Old", observations=["Bonn"], supersedes="Rome")
    keep("add_observations", name="New", observations=["Bonn"], kind="decision")

    keep("merge_entities", source="Old", target="New")

    seen = keep("describe_entity", name="New", history=True)["entity"]["observations"]
    assert [(one["content"], one["kind"], one.get("supersedes")) for one in seen] == [
        ("Rome", "generic", None),
        ("Bonn", "decision", seen[0]["id"]),
    ]


def test_a_context_of_ones_own_is_kept(keep: Caller) -> None:
    keep("create_entities", entities=[person(name) for name in ("Old", "New", "Bob")])
    relations = [{**link(name, "knows", "Bob"), "context": f"as {name} said"} for name in ("Old", "New")]
    keep("create_relations", relations=relations)

    keep("merge_entities", source="Old", target="New")

    assert [one["context"] for one in keep("search_relations")["relations"]] == ["as New said"]


def test_history_moves_along(keep: Caller) -> None:
    keep("create_entities", entities=[person("Old", "lives in Rome"), person("New", "lives in Bonn")])
    keep("add_observations", name="Old", observations=["lives in Bonn"], supersedes="lives in Rome", kind="home")
    before = keep("describe_entity", name="Old", history=True)["entity"]["observations"]

    answer = keep("merge_entities", source="Old", target="New")

    assert (answer["movedObservations"], answer["addedObservations"]) == (1, 0)
    assert keep("describe_entity", name="New", history=True)["entity"]["observations"] == before
    assert keep("get_entity", name="New")["observations"] == ["lives in Bonn"]


def test_where_both_have_a_history_both_are_kept(keep: Caller) -> None:
    keep("create_entities", entities=[person("Old", "Rome"), person("New", "Oslo")])
    for name, former in (("Old", "Rome"), ("New", "Oslo")):
        keep("add_observations", name=name, observations=["Bonn"], supersedes=former)

    keep("merge_entities", source="Old", target="New")

    seen = keep("describe_entity", name="New", history=True)["entity"]["observations"]
    assert [(one["content"], "superseded_at" in one) for one in seen] == [
        ("Rome", True),
        ("Oslo", True),
        ("Bonn", False),
    ]


def test_what_is_true_of_one_is_true_of_both(keep: Caller) -> None:
    """An active relation revives the ended one that says the same; an ended one ends nothing."""
    keep("create_entities", entities=[person(name) for name in ("Old", "New", "Bob", "Cy")])
    keep("create_relations", relations=[link("Old", "knows", "Bob"), link("New", "knows", "Bob")])
    keep("create_relations", relations=[link("Old", "knows", "Cy"), link("New", "knows", "Cy")])
    keep("end_relation", relation_id=2)
    keep("end_relation", relation_id=3)

    keep("merge_entities", source="Old", target="New")

    assert [relation["id"] for relation in keep("search_relations")["relations"]] == [2, 4]
    assert "endedRelations" in keep("describe_entity", name="New", history=True)


def test_a_relation_that_ended_stays_history(keep: Caller) -> None:
    keep("create_entities", entities=[person(name) for name in ("Old", "New", "Bob")])
    keep("create_relations", relations=[link("Old", "knows", "Bob")])
    keep("end_relation", relation_id=1)

    keep("merge_entities", source="Old", target="New")

    described = keep("describe_entity", name="New", history=True)
    assert described["relations"] == []
    assert [(r["from"], r["to"]) for r in described["endedRelations"]] == [("New", "Bob")]


@pytest.mark.parametrize("ended", [[], [1], [3], [1, 3]])
def test_inverse_relations_stay_true_together(keep: Caller, ended: list[int]) -> None:
    keep("create_entities", entities=[person(name) for name in ("Old", "New", "Box")])
    keep("create_relations", relations=[link("Old", "contiene", "Box"), link("New", "contiene", "Box")])
    for relation_id in ended:
        keep("end_relation", relation_id=relation_id)

    keep("merge_entities", source="Old", target="New")

    both = {("New", "contiene", "Box"), ("Box", "parte_de", "New")}
    assert known(keep) == (set() if len(ended) == 2 else both)


def test_half_a_pair_is_revived_by_the_other_half(keep: Caller, sqlite_space: Space) -> None:
    """Such halves come from memories that knew no inverses."""
    sqlite_space.commit(
        lambda graph: Plan(
            [
                *(EntityCreated(i, name, "t") for i, name in enumerate(("Old", "New", "Box"), 1)),
                RelationCreated(1, 1, 3, "contiene"),
                RelationCreated(2, 3, 2, "parte_de"),
                RelationEnded(2),
            ]
        )
    )

    keep("merge_entities", source="Old", target="New")

    assert known(keep) == {("New", "contiene", "Box"), ("Box", "parte_de", "New")}


def test_reflections_pass_to_what_is_left(keep: Caller, sqlite_space: Space) -> None:
    keep("create_entities", entities=[person(name) for name in ("Old", "New", "Bob")])
    keep("create_relations", relations=[link("Old", "knows", "Bob"), link("New", "knows", "Bob")])
    sqlite_space.commit(
        lambda graph: Plan(
            [
                ReflectionAdded(1, "entity", 1, "nemo", "a friend"),
                ReflectionAdded(2, "relation", 1, "nemo", "a long story", "warm"),
            ]
        )
    )

    keep("merge_entities", source="Old", target="New")

    thoughts = sqlite_space.graph().reflections.values()
    assert [(one.id, one.target_id, one.content, one.mood) for one in thoughts] == [
        (1, 2, "a friend", None),
        (2, 2, "a long story", "warm"),
    ]
    found, *others = keep("search_reflections", query="story")["results"]
    assert "a long story" not in [one["content"] for one in others]
    assert found["target"] == "New -> Bob (knows)"
    keep("undo")
    assert [one.target_id for one in sqlite_space.graph().reflections.values()] == [1, 1]


def test_a_placeholder_is_passed_on(call: Caller) -> None:
    official = Caller(call.space, "official")
    official("create_entities", entities=[person("Old"), person("New")])
    official("create_relations", relations=[link("Old", "knows", "Ghost")])

    assert call("merge_entities", source="Old", target="New")["redirectedRelations"] == 1
    call("create_entities", entities=[person("Ghost")])
    assert known(call) == {("New", "knows", "Ghost")}


def test_only_two_different_known_entities_can_be_merged(call: Caller) -> None:
    call("create_entities", entities=[person("Ada")])

    assert "must be different" in call.refusal("merge_entities", source="Ada", target="Ada")
    assert call.refusal("merge_entities", source="Nobody", target="Ada") == "Entity not found: Nobody"
    assert call.refusal("merge_entities", source="Ada", target="Nobody") == "Entity not found: Nobody"


@pytest.mark.parametrize("store", STORES)
def test_a_merge_is_what_a_fresh_start_finds(tmp_path: Path, store: str) -> None:
    space = open_space(tmp_path / store)
    call = Caller(space)
    call("create_entities", entities=[person("Old", "a", "b"), person("Bob"), person("New", "b", "c")])
    call("create_relations", relations=[link("Old", "knows", "Bob"), link("New", "contiene", "Old")])
    call("merge_entities", source="Old", target="New")
    before = call("open_nodes", names=["New", "Bob", "Old"])
    space.close()

    again = open_space(tmp_path / store)
    after = Caller(again)("open_nodes", names=["New", "Bob", "Old"])
    again.close()

    assert [one["name"] for one in after["entities"]] == ["New", "Bob"]
    assert [sorted(one["observations"]) for one in after["entities"]] == [["a", "b", "c"], []]
    assert [one["from"] for one in after["relations"]] == [one["from"] for one in before["relations"]] == ["New"]


# ── any graph ────────────────────────────────────────────────────────────────────────────────────

NAMES = ("Ada", "Bob", "Cy", "Dee")
TYPES = ("knows", "likes", "contiene", "parte_de")
texts = st.lists(st.sampled_from("abcde"), unique=True, max_size=5)
triples = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(TYPES), st.sampled_from(NAMES)), max_size=12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    told=st.tuples(texts, texts, texts, texts),
    triples=triples,
    ended=st.sets(st.integers(1, 12)),
    pair=st.permutations(NAMES),
)
def test_merging_keeps_the_union_of_what_was_known(
    tmp_path_factory: pytest.TempPathFactory,
    told: tuple[list[str], ...],
    triples: list[tuple[str, str, str]],
    ended: set[int],
    pair: list[str],
) -> None:
    source, target = pair[:2]
    space = open_space(tmp_path_factory.mktemp("merge") / "memory.db")
    call = Caller(space)
    call("create_entities", entities=[person(name, *seen) for name, seen in zip(NAMES, told, strict=True)])
    if triples:
        call("create_relations", relations=[link(*triple) for triple in triples])
    for relation_id in ended & {relation.id for relation in space.graph().active_relations()}:
        call("end_relation", relation_id=relation_id)
    before = known(call)
    moved, had = (set(told[NAMES.index(name)]) for name in (source, target))

    answer = call("merge_entities", source=source, target=target)

    def renamed(name: str) -> str:
        return target if name == source else name

    union = {(renamed(one), kind, renamed(other)) for one, kind, other in before}
    touching = {(one, kind, other) for one, kind, other in before if source in (one, other)}
    lost = {(target, kind, target) for one, kind, other in touching if renamed(one) == renamed(other)}
    kept = {(target, kind, target) for one, kind, other in before - touching if one == other == target}
    assert known(call) == union - (lost - kept)
    assert set(call("get_entity", name=target)["observations"]) == moved | had
    assert (answer["movedObservations"], answer["addedObservations"]) == (len(moved), len(moved - had))
    assert [finding.text for finding in space.check()] == []
    space.close()
