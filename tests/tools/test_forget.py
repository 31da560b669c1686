"""What is taken away is gone from everywhere, and only what was named."""

from __future__ import annotations

import pytest

from tests.conftest import Caller, link, person


@pytest.fixture
def three(call: Caller) -> Caller:
    call("create_entities", entities=[person("Ada", "a", "b"), person("Bob", "b"), person("Cy", "c")])
    call("create_relations", relations=[link("Ada", "knows", "Bob"), link("Bob", "knows", "Cy")])
    return call


def test_deleting_an_entity_takes_its_observations_and_relations_along(three: Caller) -> None:
    assert three("delete_entities", entityNames=["Bob", "Nobody"]) == {
        "deleted": ["Bob"],
        "errors": ["Entity not found: Nobody"],
    }

    assert three("open_nodes", names=["Ada", "Bob"]) == {"entities": [person("Ada", "a", "b")], "relations": []}
    assert three("search_nodes", query="Bob")["entities"] == []
    stats = three("graph_stats")
    assert (stats["entities"], stats["relations"], stats["totalObservations"]) == (2, 0, 3)


def test_a_deleted_entity_can_be_created_anew(three: Caller) -> None:
    three("delete_entities", entityNames=["Bob"])

    three("create_entities", entities=[person("Bob", "new")])

    assert three("get_entity", name="Bob") == person("Bob", "new")
    assert three("search_relations", to="Bob")["relations"] == []


def test_observations_are_deleted_by_their_exact_text(three: Caller) -> None:
    assert three("delete_observations", name="Ada", observations=["a", "B", "nothing"]) == {
        "entity": person("Ada", "b")
    }
    assert three.refusal("delete_observations", name="Nobody", observations=["a"]) == "Entity not found: Nobody"


def test_observations_of_several_entities_are_deleted_at_once(three: Caller) -> None:
    deletions = [{"entityName": "Ada", "observations": ["b"]}, {"entityName": "Bob", "observations": ["b"]}]

    assert three("delete_observations", deletions=deletions) == {
        "success": True,
        "message": "Observations deleted successfully",
    }
    assert three("batch_get_entities", names=["Ada", "Bob"])["entities"] == [person("Ada", "a"), person("Bob")]


def test_deleting_at_one_unknown_entity_deletes_nothing(three: Caller) -> None:
    deletions = [{"entityName": "Ada", "observations": ["b"]}, {"entityName": "Nobody", "observations": ["b"]}]

    assert three.refusal("delete_observations", deletions=deletions) == "Entity not found: Nobody"
    assert "name and observations" in three.refusal("delete_observations", name="Ada")


def test_a_superseded_observation_can_be_deleted_though_another_replaced_it(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "old")])
    keep("add_observations", name="Ada", observations=["new"], supersedes="old")

    keep("delete_observations", name="Ada", observations=["old"])

    assert [
        seen["content"] for seen in keep("describe_entity", name="Ada", history=True)["entity"]["observations"]
    ] == ["new"]


def test_deleting_what_is_believed_leaves_the_history_of_the_same_text(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "lives in Rome", "old", "poet")])
    keep("add_observations", name="Ada", observations=["lives in Bonn"], supersedes="lives in Rome")
    keep("add_observations", name="Ada", observations=["lives in Rome"], supersedes="lives in Bonn")
    keep("add_observations", name="Ada", observations=["new"], supersedes="old")

    assert keep("delete_observations", name="Ada", observations=["lives in Rome"]) == {
        "entity": person("Ada", "poet", "new")
    }

    history = keep("describe_entity", name="Ada", history=True)["entity"]["observations"]
    assert [seen["content"] for seen in history] == ["lives in Rome", "old", "poet", "lives in Bonn", "new"]
    again = keep("delete_observations", name="Ada", observations=["lives in Rome", "poet"])
    assert again == {"entity": person("Ada", "new"), "deletedHistory": 1}
    deletions = [{"entityName": "Ada", "observations": ["old", "new"]}]
    assert keep("delete_observations", deletions=deletions)["deletedHistory"] == 1


def test_relations_are_deleted_by_their_triple(three: Caller) -> None:
    answer = three(
        "delete_relations",
        relations=[link("Ada", "knows", "Bob"), link("Ada", "likes", "Bob"), link("Ada", "knows", "Nobody")],
    )

    assert answer == {
        "deleted": [link("Ada", "knows", "Bob")],
        "errors": ["Relation not found: Ada -> Bob (likes)", "Entity not found: Ada or Nobody"],
    }
    assert three("search_relations")["relations"] == [{"id": 2, **link("Bob", "knows", "Cy")}]


def test_deleting_one_half_of_an_inverse_pair_deletes_both(call: Caller) -> None:
    call("create_entities", entities=[person("Whole"), person("Part")])
    call("create_relations", relations=[link("Whole", "contiene", "Part")])

    call("delete_relations", relations=[link("Part", "parte_de", "Whole")])

    assert call("search_relations")["relations"] == []


def test_ending_one_half_of_an_inverse_pair_ends_both(keep: Caller) -> None:
    keep("create_entities", entities=[person("Whole"), person("Part")])
    keep("create_relations", relations=[link("Whole", "contiene", "Part")])

    assert keep("end_relation", relation_id=1) == {
        "result": "Relation 1 expired successfully",
        "inverse_expired_id": 2,
    }

    described = keep("describe_entity", name="Part", history=True)
    assert described["relations"] == []
    assert [relation["id"] for relation in described["endedRelations"]] == [1, 2]
    assert "already" in keep("end_relation", relation_id=1)["result"]
    assert "not found" in keep.refusal("end_relation", relation_id=42)
    assert "not found" in keep.refusal("end_relation", relationId=42)


def test_ids_are_never_given_twice(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "a")])
    first = call("describe_entity", name="Ada")["entity"]
    call("delete_entities", entityNames=["Ada"])

    call("create_entities", entities=[person("Ada", "a")])

    second = call("describe_entity", name="Ada")["entity"]
    assert second["id"] > first["id"]
    assert second["observations"][0]["id"] > first["observations"][0]["id"]
