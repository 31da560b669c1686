"""The documented formulas, and the bound on what they may do together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from math import exp

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_memory.search.limbic import (
    HOUR,
    METADATA_FACTOR,
    STATUS_FACTORS,
    Candidate,
    Company,
    Constants,
    NoUsage,
    Ranked,
    Use,
    cooc,
    deboost,
    decay,
    habit,
    importance,
    rank,
)
from mcp_memory.search.routing import COSINE_HEAVY, HYBRID_BALANCED, LIMBIC_HEAVY, SHARES, route

NOW = 1_800_000_000.0
STANDARD = Constants()


class Known(msgspec.Struct):
    """Usage as a test says it was."""

    uses: dict[str, Use] = {}
    company: dict[str, dict[str, Company]] = {}

    def use_of(self, name: str) -> Use | None:
        return self.uses.get(name)

    def company_of(self, name: str) -> Mapping[str, Company]:
        return self.company.get(name, {})


def found(name: str, relevance: float = 0.5, **more: object) -> Candidate:
    return msgspec.convert({"entity_id": sum(name.encode()), "name": name, "relevance": relevance, **more}, Candidate)


def order(rows: list[Ranked]) -> list[str]:
    return [row.candidate.name for row in rows]


# ── the documented formulas, with the values that the Python predecessor computes ────────────────


@pytest.mark.parametrize(
    ("uses", "most", "degree", "days", "most_days", "expected"),
    [
        (50, 100, 10, 1, 1, 0.937139),
        (1, 1, 15, 1, 1, 1.15),
        (1, 20, 0, 1, 1, 0.22767),
        (10, 20, 0, 1, 1, 0.78761),
        (5, 10, 0, 5, 10, 0.85889),
        (10, 10, 15, 10, 10, 1.38),
        (10, 10, 400, 10, 10, 1.38),  # relations beyond fifteen add nothing
        (0, 0, 15, 1, 1, 0.0),
    ],
)
def test_importance_is_what_the_documents_say(
    uses: int, most: int, degree: int, days: int, most_days: int, expected: float
) -> None:
    assert importance(uses, most, degree, days, most_days, constants=STANDARD) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("hours", "expected"), [(24, 0.9976), (720, 0.93053), (8760, 0.41645), (23026, 0.1), (99999, 0.1), (-5, 1.0)]
)
def test_age_falls_as_documented_to_its_floor(hours: float, expected: float) -> None:
    then = NOW - hours * HOUR

    assert decay(then, NOW, STANDARD.temporal_floor, STANDARD) == pytest.approx(expected, abs=1e-5)
    assert decay(None, NOW, STANDARD.temporal_floor, STANDARD) == 1.0


def test_company_counts_as_documented() -> None:
    partners = [Company(3, NOW), Company(1, NOW - 6931 * HOUR)]

    assert cooc(partners, NOW, STANDARD) == pytest.approx(2.5, abs=1e-4)
    assert cooc([], NOW, STANDARD) == 0 and isinstance(cooc([], NOW, STANDARD), float)


@pytest.mark.parametrize(
    ("query", "limit", "strategy"),
    [
        ("qué es sqlite", 10, COSINE_HEAVY),
        ("que es sqlite", 10, COSINE_HEAVY),
        ("what is sqlite", 10, COSINE_HEAVY),
        ("sqlite", 3, COSINE_HEAVY),
        ("sqlite", 5, HYBRID_BALANCED),
        ("sqlite", 10, HYBRID_BALANCED),
        ("a word and so on until there are ten words", 10, LIMBIC_HEAVY),
        ("a word and so on until there are ten words", 5, HYBRID_BALANCED),
        ("diferencia entre a y b con ejemplos", 5, COSINE_HEAVY),
        ("difference between a and b with examples", 5, COSINE_HEAVY),
        ("explícame todo sobre bases", 10, LIMBIC_HEAVY),
        ("explain all about databases", 10, LIMBIC_HEAVY),
        ("cuéntame de Ada", 10, LIMBIC_HEAVY),
        ("tell me about my friend Ada", 10, LIMBIC_HEAVY),
        ("the island of misty moors", 5, HYBRID_BALANCED),  # "is a" and "is an" stand in no word of these
    ],
)
def test_a_query_is_routed_as_documented_in_spanish_and_in_english(query: str, limit: int, strategy: str) -> None:
    assert route(query, limit) == strategy


# ── what habit may do ────────────────────────────────────────────────────────────────────────────


def test_of_equals_what_is_used_stands_higher() -> None:
    used = Known({"b": Use(5, NOW, 2)})

    assert order(rank([found("a"), found("b")], NoUsage(), NOW, STANDARD, 0.5)) == ["a", "b"]
    assert order(rank([found("a"), found("b")], used, NOW, STANDARD, 0.5)) == ["b", "a"]


def test_of_equals_what_goes_with_others_that_were_found_stands_higher() -> None:
    company = {"b": {"c": Company(4, NOW)}, "c": {"b": Company(4, NOW)}, "a": {"elsewhere": Company(99, NOW)}}
    rows = rank([found("a"), found("b"), found("c", 0.1)], Known(company=company), NOW, STANDARD, 0.5)

    assert order(rows) == ["b", "a", "c"]
    assert [row.cooc_boost > 0 for row in rows] == [True, False, True]


def test_of_equals_what_changed_lately_stands_higher() -> None:
    rows = rank([found("a", changed=NOW - 9000 * HOUR), found("b", changed=NOW)], NoUsage(), NOW, STANDARD, 0.5)

    assert order(rows) == ["b", "a"]


def test_use_makes_nothing_older() -> None:
    used = Known({"a": Use(1, NOW - 9000 * HOUR, 1)})

    by_name = {row.candidate.name: row for row in rank([found("a"), found("b")], used, NOW, STANDARD, 0.5)}
    assert by_name["a"].temporal_factor == by_name["b"].temporal_factor == 1
    again = rank([found("a", changed=NOW - HOUR)], used, NOW, STANDARD, 0.5)
    assert again[0].temporal_factor > 0.999


def test_what_answered_the_same_question_stands_higher() -> None:
    rows = rank([found("a", 0.6), found("b", 0.5)], NoUsage(), NOW, STANDARD, 0.5, {"b": 0.8})

    assert order(rows) == ["b", "a"]
    assert rows[0].baseline_rank == 2


def test_one_visit_is_no_habit() -> None:
    once, often = (Known({"b": Use(count, NOW, 1)}) for count in (1, 50))

    assert rank([found("b")], once, NOW, STANDARD, 0.5)[0].importance < 0.4
    assert rank([found("b")], often, NOW, STANDARD, 0.5)[0].importance == 1


@pytest.mark.parametrize(("status", "factor"), [*STATUS_FACTORS.items(), ("no status of ours", 1.0)])
def test_what_is_no_longer_current_is_put_back_before_sorting(status: str, factor: float) -> None:
    rows = rank([found("a", 0.6, status=status), found("b", 0.59)], NoUsage(), NOW, STANDARD, 0.5)

    assert deboost(rows[order(rows).index("a")].candidate) == factor
    assert order(rows) == (["a", "b"] if factor == 1 else ["b", "a"])
    assert [row.baseline_rank for row in rows] == [1, 2]  # the baseline knows of it too


def test_more_than_half_metadata_puts_back() -> None:
    assert deboost(found("a", metadata_share=0.5)) == 1
    assert deboost(found("a", metadata_share=0.51)) == METADATA_FACTOR


weights = st.floats(0, 1)
candidates = st.lists(
    st.builds(
        Candidate,
        entity_id=st.integers(1, 10_000),
        name=st.sampled_from("abcdefghijkl"),
        relevance=weights,
        degree=st.integers(0, 50),
        changed=st.none() | st.floats(0, NOW),
        status=st.sampled_from([*STATUS_FACTORS, "other"]),
        metadata_share=weights,
        is_exact=st.booleans(),
    ),
    max_size=12,
    unique_by=(lambda one: one.name, lambda one: one.entity_id),
)
usages = st.builds(
    Known,
    uses=st.dictionaries(
        st.sampled_from("abcdefghijkl"),
        st.builds(Use, st.integers(0, 10**9), st.floats(0, NOW), st.integers(0, 10_000)),
    ),
    company=st.dictionaries(
        st.sampled_from("abcdefghijkl"),
        st.dictionaries(st.sampled_from("abcdefghijkl"), st.builds(Company, st.integers(0, 10**9), st.floats(0, NOW))),
    ),
)
echoes = st.dictionaries(st.sampled_from("abcdefghijkl"), weights)
constants = st.builds(
    Constants,
    beta_sal=st.floats(0, 100),
    gamma=st.floats(0, 100),
    habit_reach=st.floats(0, 1),
    age_reach=st.floats(0, 1),
    echo_reach=st.floats(0, 1),
)


@settings(max_examples=150, deadline=None)
@given(candidates, usages, echoes, constants, st.sampled_from(sorted(SHARES.values())))
def test_habit_reorders_near_equals_and_nothing_else(
    candidates: list[Candidate], usage: Known, echoes: dict[str, float], constants: Constants, share: float
) -> None:
    rows = rank(candidates, usage, NOW, constants, share, echoes)
    # The least and the most that habit may make of one, whatever was used and however often.
    most = exp(share * (constants.habit_reach + constants.age_reach) + constants.echo_reach)
    least = exp(-share * constants.age_reach)

    assert sorted(order(rows)) == sorted(one.name for one in candidates)
    for above, below in itertools.pairwise(rows):
        assert above.limbic_score >= below.limbic_score
        if not above.candidate.is_exact:
            assert below.base * least <= above.base * most * (1 + 1e-9)


@settings(max_examples=150, deadline=None)
@given(candidates, usages, echoes, constants, st.sampled_from(sorted(SHARES.values())))
def test_an_exact_match_is_never_buried(
    candidates: list[Candidate], usage: Known, echoes: dict[str, float], constants: Constants, share: float
) -> None:
    for place, row in enumerate(rank(candidates, usage, NOW, constants, share, echoes), 1):
        if row.candidate.is_exact:
            assert place <= row.baseline_rank


def test_who_is_asked_for_by_name_comes_first() -> None:
    rows = rank([found("a", 0.9), found("b", 0.3, is_exact=True)], Known({"a": Use(99, NOW, 9)}), NOW, STANDARD, 0.7)

    assert order(rows) == ["b", "a"]
    assert rows[0].baseline_rank == 1


@pytest.mark.parametrize("metadata_share", [0.0, 1.0])
@pytest.mark.parametrize("status", [*STATUS_FACTORS, "no status of ours"])
def test_who_is_asked_for_by_name_comes_first_whatever_its_status_and_kind(status: str, metadata_share: float) -> None:
    asked_for = found("b", 0.3, is_exact=True, status=status, metadata_share=metadata_share)
    rows = rank([found("a", 0.9), asked_for], Known({"a": Use(99, NOW, 9)}), NOW, STANDARD, 0.7, {"a": 1.0})

    assert order(rows) == ["b", "a"]
    assert rows[0].baseline_rank == 1


def test_of_two_that_bear_the_name_the_current_one_comes_first() -> None:
    one, other = (
        found(name, 0.9, is_exact=True, status=status) for name, status in [("A", "archivado"), ("a", "activo")]
    )

    assert order(rank([one, other], Known({"A": Use(99, NOW, 9)}), NOW, STANDARD, 0.7)) == ["a", "A"]


@settings(max_examples=150, deadline=None)
@given(candidates, usages, echoes, constants, st.sampled_from(sorted(SHARES.values())))
def test_nobody_stands_before_who_is_asked_for_by_name(
    candidates: list[Candidate], usage: Known, echoes: dict[str, float], constants: Constants, share: float
) -> None:
    places = [row.candidate.is_exact for row in rank(candidates, usage, NOW, constants, share, echoes)]

    assert places == sorted(places, reverse=True)


@settings(max_examples=100, deadline=None)
@given(candidates, usages, echoes)
def test_nothing_of_what_was_used_can_move_what_is_clearly_more_relevant(
    candidates: list[Candidate], usage: Known, echoes: dict[str, float]
) -> None:
    """With the standard constants: half as relevant never stands in front."""
    for share in SHARES.values():
        rows = rank(candidates, usage, NOW, STANDARD, share, echoes)
        for above, below in itertools.pairwise(rows):
            assert above.candidate.is_exact or above.base >= below.base * 0.5


@settings(max_examples=100, deadline=None)
@given(candidates)
def test_without_use_and_at_one_age_the_order_is_that_of_relevance(candidates: list[Candidate]) -> None:
    rows = rank([replace(one, changed=NOW) for one in candidates], NoUsage(), NOW, STANDARD, 0.5)

    assert [row.baseline_rank for row in rows] == list(range(1, len(rows) + 1))


def test_habit_without_anything_to_go_by_changes_nothing() -> None:
    assert habit(0, 1, 0, 0.7, STANDARD) == 1
