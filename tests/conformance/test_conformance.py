"""The official suite passes, but for what is excepted by name; and the page says what it found."""

from __future__ import annotations

import pytest

from tests.conformance import suite
from tests.conformance.suite import PAGE, REVISIONS, SERVERS, SKILLS, Run, everything, excepted, never_scored, page

Runs = dict[tuple[str, str], Run]


@pytest.fixture(scope="module")
def runs() -> Runs:
    return everything()


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("server", SERVERS)
def test_the_suite_finds_nothing_but_what_is_excepted(runs: Runs, server: str, revision: str) -> None:
    run = runs[server, revision]

    assert len(run.counts) >= 30
    assert run.code == 0, run.said[run.said.find("=== SUMMARY") :]


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_fixture_passes_everything_that_is_scored(runs: Runs, revision: str) -> None:
    unscored = never_scored(revision)
    scored = {name: counts for name, counts in runs["fixture", revision].counts.items() if name not in unscored}

    assert len(scored) >= 30
    assert {name for name, (passed, failed) in scored.items() if failed or not passed} == set()
    assert excepted("fixture") & set(scored) == set()


def test_the_memory_server_passes_whatever_any_server_can(runs: Runs) -> None:
    for revision in REVISIONS:
        counts = runs["memory", revision].counts
        for name in set(counts) - excepted("memory"):
            assert counts[name][1] == 0, name
    stateless = runs["memory", "2026-07-28"].counts["server-stateless"]
    assert stateless[0] >= 24


@pytest.mark.parametrize("name", SKILLS)
def test_the_skill_is_served_as_the_extension_wants_it(runs: Runs, name: str) -> None:
    run = runs["memory", name]

    assert run.counts[name][0] > 4 and run.counts[name][1] == 0, run.said


def test_the_page_says_what_the_suite_found(runs: Runs) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(runs), "run: python -m tests.conformance.suite"


def test_what_a_fixture_fails_is_seen(runs: Runs) -> None:
    spoilt = {place: run._replace(counts={**run.counts, "ping": (0, 1)}) for place, run in runs.items()}

    assert suite.page(spoilt) != suite.page(runs)
