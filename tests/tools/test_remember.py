"""What is told to the memory, is known afterwards: entities, relations, observations."""

from __future__ import annotations

from tests.conftest import Caller, link, person


def test_created_entities_are_answered_as_they_are_known(call: Caller) -> None:
    told = {"name": "CachorroSpace", "entityType": "Project", "observations": ["Stack: Astro 6.x", "On Vercel"]}

    assert call("create_entities", entities=[told]) == {"entities": [told]}
    assert call("open_nodes", names=["CachorroSpace"])["entities"] == [told]


def test_type_and_observations_may_be_left_out(call: Caller) -> None:
    assert call("create_entities", entities=[{"name": "Bare"}]) == {
        "entities": [{"name": "Bare", "entityType": "Generic", "observations": []}]
    }


def test_creating_what_exists_merges_observations_and_keeps_the_type(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "likes tea")])

    again = call("create_entities", entities=[{"name": "Ada", "observations": ["likes tea", "plays chess"]}])

    assert again["entities"] == [person("Ada", "likes tea", "plays chess")]


def test_creating_what_exists_changes_the_type_when_one_is_given(call: Caller) -> None:
    call("create_entities", entities=[person("Ada")])

    call("create_entities", entities=[{"name": "Ada", "entityType": "Mathematician"}])

    assert call("list_entity_types")["types"] == [{"type": "Mathematician", "count": 1}]


def test_the_same_name_twice_in_a_call_is_one_entity(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "a"), person("Ada", "b", "a")])

    assert call("get_entity", name="Ada") == person("Ada", "a", "b")
    assert call("graph_stats")["entities"] == 1


def test_names_differ_by_case_and_hold_any_letters(call: Caller) -> None:
    names = ["ada", "Ada", "Ünïcødé 名前 🙂", "a\u2028b", "tab\tand\nline", '"quoted"', "<b>|[x]"]

    call("create_entities", entities=[person(name, name) for name in names])

    assert call("batch_get_entities", names=names)["entities"] == [person(name, name) for name in names]


def test_of_several_types_given_in_one_call_the_last_counts(call: Caller) -> None:
    for kinds in (("Person", "Thing"), ("Person", "Thing", "Person"), ("Thing", "Person", "Thing")):
        call("create_entities", entities=[{"name": "Ada", "entityType": kind} for kind in kinds])
        assert call("get_entity", name="Ada")["entityType"] == kinds[-1]


def test_a_call_with_one_bad_entity_creates_none(call: Caller) -> None:
    assert "name" in call.refusal("create_entities", entities=[person("Good"), {"entityType": "Person"}])
    assert "at least one character" in call.refusal("create_entities", entities=[person("Good"), person("")])
    assert call("graph_stats")["entities"] == 0


def test_limits_are_said_with_what_was_sent(call: Caller) -> None:
    assert call.refusal("create_entities", entities=[person(str(i)) for i in range(51)]) == (
        "Too many entities: 51 > 50. Send them in several calls."
    )
    assert "101 > 100" in call.refusal("create_entities", entities=[person("A", *map(str, range(101)))])
    assert "Entity 1, observation 2 too long: 2001 > 2000" in call.refusal(
        "create_entities", entities=[person("A"), person("B", "x", "y", "z" * 2001)]
    )
    assert "1025 > 1024 bytes" in call.refusal("create_entities", entities=[person("ñ" * 512 + "n")])
    call("create_entities", entities=[person("ñ" * 512, "z" * 2000)])


def test_a_nul_or_a_lone_surrogate_is_refused(call: Caller) -> None:
    assert "NUL" in call.refusal("create_entities", entities=[person("a\0b")])
    assert "NUL" in call.refusal("create_entities", entities=[person("ab", "x\0")])
    call("create_entities", entities=[person("a", "a backslash and u0000: \\u0000")])


def test_upserting_tells_what_was_new(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "likes tea")])

    told = [{"name": "Ada", "entityType": "Robot", "observations": ["likes tea", "new"]}, person("Bob", "x", "x")]

    assert call("upsert_entities", entities=told) == {
        "results": [
            {"name": "Ada", "created": False, "addedObservations": ["new"]},
            {"name": "Bob", "created": True, "addedObservations": ["x"]},
        ]
    }
    assert call("get_entity", name="Ada")["entityType"] == "Person"
    assert [item["addedObservations"] for item in call("upsert_entities", entities=told)["results"]] == [[], []]


def test_relations_are_answered_with_their_ids(call: Caller) -> None:
    call("create_entities", entities=[person("Ada"), person("Bob")])

    answer = call("create_relations", relations=[link("Ada", "knows", "Bob"), link("Bob", "knows", "Ada")])

    assert answer == {"relations": [{"id": 1, **link("Ada", "knows", "Bob")}, {"id": 2, **link("Bob", "knows", "Ada")}]}


def test_a_relation_needs_both_ends_and_the_others_are_kept(call: Caller) -> None:
    call("create_entities", entities=[person("Ada"), person("Bob")])

    answer = call("create_relations", relations=[link("Ada", "knows", "Nobody"), link("Ada", "knows", "Bob")])

    assert answer["relations"][0] == {"error": "Entity not found: Nobody"}
    assert answer["errors"] == ["Entity not found: Nobody"]
    assert call("search_relations")["relations"] == [{"id": 1, **link("Ada", "knows", "Bob")}]


def test_a_relation_that_exists_is_said_to(call: Caller) -> None:
    call("create_entities", entities=[person("Ada"), person("Bob")])
    once = link("Ada", "knows", "Bob")

    answer = call("create_relations", relations=[once, once])

    assert answer["relations"][1] == {**once, "error": "Relation already exists"}
    assert "errors" not in answer


def test_ends_may_be_spelled_as_in_the_models(call: Caller) -> None:
    call("create_entities", entities=[person("Ada"), person("Bob")])

    call("create_relations", relations=[{"from_entity": "Ada", "to_entity": "Bob", "relationType": "knows"}])

    assert call("search_relations")["relations"] == [{"id": 1, **link("Ada", "knows", "Bob")}]


def test_contiene_and_parte_de_come_together(keep: Caller) -> None:
    keep("create_entities", entities=[person("Whole"), person("Part")])

    keep("create_relations", relations=[{**link("Whole", "contiene", "Part"), "context": "since 2024"}])

    assert keep("search_relations")["relations"] == [
        {"id": 1, **link("Whole", "contiene", "Part"), "context": "since 2024"},
        {"id": 2, **link("Part", "parte_de", "Whole"), "context": "Inversa automática de contiene"},
    ]


def test_the_lives_of_a_relation_are_told(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada"), person("Bob")])
    keep("create_relations", relations=[{**link("Ada", "knows", "Bob"), "context": "school"}])
    keep("end_relation", relation_id=1)
    keep("create_relations", relations=[{**link("Ada", "knows", "Bob"), "context": "work"}])

    (relation,) = keep("describe_entity", name="Ada", history=True)["relations"]
    assert relation["context"] == "work"
    (life,) = relation["earlier"]
    assert life["from"] == relation["createdAt"] <= life["to"] and life["context"] == "school"
    keep("end_relation", relation_id=1)
    keep("create_relations", relations=[link("Ada", "knows", "Bob")])
    keep("end_relation", relation_id=1)
    (ended,) = keep("describe_entity", name="Bob", history=True)["endedRelations"]
    assert [life.get("context") for life in ended["earlier"]] == ["school", "work"]
    assert "earlier" not in keep("describe_entity", name="Ada", history=True, as_of="4")["relations"][0]
    told = [line for call in keep("history", relation_id=1)["calls"] for line in call["did"]]
    assert told[-3:] == [
        'again true: Ada knows Bob (relation 1), context "work" (was "school")',
        "ended Ada knows Bob (relation 1)",
        "Ada knows Bob (relation 1)",
    ]


def test_an_ended_relation_can_be_created_again(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada"), person("Bob")])
    keep("create_relations", relations=[link("Ada", "knows", "Bob")])
    keep("end_relation", relation_id=1)
    assert keep("search_relations")["relations"] == []

    answer = keep("create_relations", relations=[link("Ada", "knows", "Bob")])

    assert answer["relations"] == [{"id": 1, **link("Ada", "knows", "Bob")}]
    assert keep("search_relations")["relations"] == [{"id": 1, **link("Ada", "knows", "Bob")}]


def test_observations_are_added_in_order_without_repeats(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "a")])

    answer = call("add_observations", name="Ada", observations=["c", "a", "b", "c"])

    assert answer == {"entity": person("Ada", "a", "c", "b")}


def test_the_shape_of_the_call_decides_the_shape_of_the_answer(call: Caller) -> None:
    call("create_entities", entities=[person("Ada", "a"), person("Bob")])

    answer = call(
        "add_observations",
        observations=[{"entityName": "Ada", "contents": ["a", "b"]}, {"entityName": "Bob", "contents": []}],
    )

    assert answer == {
        "results": [
            {"entityName": "Ada", "addedObservations": ["b"]},
            {"entityName": "Bob", "addedObservations": []},
        ]
    }


def test_observing_one_unknown_entity_changes_none(call: Caller) -> None:
    call("create_entities", entities=[person("Ada")])
    additions = [{"entityName": "Ada", "contents": ["x"]}, {"entityName": "Nobody", "contents": ["y"]}]

    assert call.refusal("add_observations", observations=additions) == "Entity not found: Nobody"
    assert call.refusal("add_observations", name="Nobody", observations=["x"]) == "Entity not found: Nobody"
    assert "name" in call.refusal("add_observations", observations=["x"])


def test_an_observation_can_supersede_another_by_id_or_by_text(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "lives in London", "likes tea")])

    keep("add_observations", name="Ada", observations=["lives in Turin"], supersedes="lives in London")
    keep("add_observations", name="Ada", observations=["likes coffee"], kind="taste", supersedes=2)

    assert keep("get_entity", name="Ada") == person("Ada", "lives in Turin", "likes coffee")
    history = keep("describe_entity", name="Ada", history=True)["entity"]["observations"]
    assert [(seen["content"], seen.get("supersedes"), "superseded_at" in seen) for seen in history] == [
        ("lives in London", None, True),
        ("likes tea", None, True),
        ("lives in Turin", 1, False),
        ("likes coffee", 2, False),
    ]
    assert keep("search_nodes", query="London")["entities"] == []
    assert "no active observation" in keep.refusal(
        "add_observations", name="Ada", observations=["x"], supersedes="lives in London"
    )


def test_kind_and_supersedes_are_meant_whatever_the_shape_of_the_call(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "likes soup", "likes tea"), person("Bob", "likes rum")])

    soup = [{"entityName": "Ada", "contents": ["likes no soup"]}]
    answer = keep("add_observations", observations=soup, kind="decision", supersedes="likes soup")
    assert answer == {"results": [{"entityName": "Ada", "addedObservations": ["likes no soup"]}]}
    keep(
        "add_observations",
        observations=[
            {"entityName": "Ada", "contents": ["likes coffee"], "supersedes": 2},
            {"entityName": "Bob", "contents": ["likes gin"], "kind": "taste", "supersedes": "likes rum"},
        ],
        kind="drink",
    )

    assert keep("batch_get_entities", names=["Ada", "Bob"])["entities"] == [
        person("Ada", "likes no soup", "likes coffee"),
        person("Bob", "likes gin"),
    ]
    detail = keep("open_nodes", names=["Ada", "Bob"], detail=True)["entities"]
    assert [seen["kind"] for one in detail for seen in one["observations"]] == ["decision", "drink", "taste"]


def test_nothing_is_superseded_twice_by_one_call(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "a", "b", "c"), person("Bob")])
    both = [{"entityName": "Ada", "contents": ["d"]}, {"entityName": "Bob", "contents": ["e"]}]
    assert "whose" in keep.refusal("add_observations", observations=both, supersedes="a")

    def replacing(*pairs: tuple[str, str]) -> str:
        given = [{"entityName": "Ada", "contents": [new], "supersedes": old} for old, new in pairs]
        return keep.refusal("add_observations", observations=given)

    assert "no active observation" in replacing(("a", "x"), ("a", "y"))
    assert "already" in replacing(("a", "c"), ("b", "c"))
    assert "Nothing was given" in replacing(("a", "x"), ("b", "a"))


def test_an_id_may_be_written_as_text(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "2", "born in 1815")])

    keep("add_observations", name="Ada", observations=["born in 1816"], supersedes="2")
    assert keep("get_entity", name="Ada") == person("Ada", "born in 1815", "born in 1816")
    keep("add_observations", name="Ada", observations=["born in December 1815"], supersedes="2")

    assert keep("get_entity", name="Ada") == person("Ada", "born in 1816", "born in December 1815")


def test_what_is_known_already_can_supersede_what_it_replaces(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "due in March", "due in May", "due in June")])

    answer = keep("add_observations", name="Ada", observations=["due in May"], supersedes="due in March")

    assert answer == {"entity": person("Ada", "due in May", "due in June")}
    history = keep("describe_entity", name="Ada", history=True)["entity"]["observations"]
    assert [(seen["id"], seen.get("supersedes"), "superseded_at" in seen) for seen in history] == [
        (1, None, True),
        (2, 1, False),
        (3, None, False),
    ]
    again = {"name": "Ada", "supersedes": "due in June"}
    assert "already" in keep.refusal("add_observations", observations=["due in May"], **again)
    assert "Nothing was given" in keep.refusal("add_observations", observations=["due in June"], **again)
    assert "Nothing was given" in keep.refusal("add_observations", observations=[], **again)


def test_what_was_superseded_can_be_told_again(keep: Caller) -> None:
    keep("create_entities", entities=[person("Ada", "lives in London")])
    keep("add_observations", name="Ada", observations=["lives in Turin"], supersedes="lives in London")

    keep("add_observations", name="Ada", observations=["lives in London"], supersedes="lives in Turin")

    assert keep("get_entity", name="Ada") == person("Ada", "lives in London")


def test_unknown_extra_arguments_are_ignored(call: Caller) -> None:
    call("create_entities", entities=[{**person("Ada"), "colour": "blue"}], mode="fast")

    assert call("get_entity", name="Ada", verbose=True) == person("Ada")


def test_wrong_types_are_told_with_their_place(call: Caller) -> None:
    assert call.refusal("create_entities", entities=[{"name": "x", "observations": ["a", 4]}]) == (
        "Invalid arguments for create_entities: entities[0].observations[1] must be text, not a whole number. "
        "It takes: entities."
    )
    assert "entities is missing" in call.refusal("create_entities")
    assert "from" in call.refusal("create_relations", relations=[{"to": "B", "relationType": "x"}])
