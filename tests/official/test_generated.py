"""No sequence of calls makes the two servers differ, be it sensible or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.official.pair import Pair, call, handshake
from tests.official.recorded import ARGUMENTS, JUNK, ODD_NAMES, READ, create, entity, relate, relation, replaced
from tests.peers import Message

# Few, so that calls meet: what nobody has heard of before is soon tested.
NAMES = ("Ada", "ada", "Bob", "Żółć", "ΟΔΟΣ", "ghost")
TEXTS = ("tea", "Tea", "likes tea", "żółć", "")
# Letters that both runtimes know: what was added to Unicode later has no lower case for one of them.
LETTERS = st.characters(max_codepoint=0x17FF, exclude_categories=["Cs", "Cn"], exclude_characters="\0")

names = st.sampled_from(NAMES)
kinds = st.sampled_from(("knows", "KNOWS", "", "żółć"))
texts = st.sampled_from(TEXTS) | st.sampled_from(TEXTS) | st.sampled_from(ODD_NAMES) | st.text(LETTERS, max_size=8)
listed = st.lists(texts, max_size=4)


def each(strategy: st.SearchStrategy[Any], *keys: str) -> st.SearchStrategy[list[Any]]:
    """A few of these. No two are equal in these keys: what then happens is meant to differ."""
    return st.lists(strategy, max_size=4, unique_by=lambda item: tuple(item[key] for key in keys))


def few(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, max_size=4)


new_entity = st.fixed_dictionaries({"name": names, "entityType": kinds, "observations": listed})
new_relation = st.fixed_dictionaries({"from": names, "to": names, "relationType": kinds})
addition = st.fixed_dictionaries({"entityName": names, "contents": listed})
deletion = st.fixed_dictionaries({"entityName": names, "observations": listed})
queries = st.sampled_from((*NAMES, *TEXTS)).map(str.upper) | texts | st.text(LETTERS, max_size=2)

CALLS: dict[str, st.SearchStrategy[Message]] = {
    "create_entities": st.fixed_dictionaries({"entities": each(new_entity, "name")}),
    "create_relations": st.fixed_dictionaries({"relations": each(new_relation, "from", "to", "relationType")}),
    "add_observations": st.fixed_dictionaries({"observations": few(addition)}),
    "delete_entities": st.fixed_dictionaries({"entityNames": few(names)}),
    "delete_observations": st.fixed_dictionaries({"deletions": few(deletion)}),
    "delete_relations": st.fixed_dictionaries({"relations": few(new_relation)}),
    "read_graph": st.just({}),
    "search_nodes": st.fixed_dictionaries({"query": queries}),
    "open_nodes": st.fixed_dictionaries({"names": few(names)}),
}
# Writers more often than readers, so that there is something to read.
OFTEN = ("create_entities", "create_relations", "add_observations")


@st.composite
def sensible(draw: st.DrawFn) -> Message:
    tool = draw(st.sampled_from((*CALLS, *OFTEN, *OFTEN)))
    return call(tool, **draw(CALLS[tool]))


@st.composite
def nonsense(draw: st.DrawFn) -> Message:
    """A call of which one part is not what it should be."""
    tool = draw(st.sampled_from([tool for tool in ARGUMENTS if tool != "read_graph"]))
    wrong = replaced(draw(CALLS[tool]), draw(st.sampled_from(JUNK)))
    return call(tool, **draw(st.sampled_from(wrong)))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """One pair of servers for all examples: each begins by emptying the memory."""
    with Pair(tmp_path_factory.mktemp("pair")) as pair:
        pair.same(handshake())
        yield pair


EMPTY = call("delete_entities", entityNames=[*NAMES, "x"])
BEGINNING = [
    EMPTY,
    READ,
    create(entity("Bob", "tea", "Tea", "tea"), entity("Ada", "likes tea"), entity("Żółć", kind="knows")),
    relate(relation("Ada", "Bob"), relation("Bob", "ghost"), relation("ΟΔΟΣ", "ghost")),
]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(sensible() | sensible() | sensible() | nonsense(), min_size=3, max_size=15))
def test_generated_conversations_are_answered_and_kept_alike(pair: Pair, steps: list[Message]) -> None:
    pair.same([*BEGINNING, *steps, READ])
