"""Every difference from the official server is one we want, and is still there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.official.differences import WANTED, Difference
from tests.official.pair import EVERYWHERE, Everywhere, Pair, alike, handshake


@pytest.mark.parametrize("row", WANTED, ids=lambda row: row.name)
def test_the_official_server_differs_as_the_table_says(row: Difference, tmp_path: Path) -> None:
    with Pair(tmp_path, row.content) as pair:
        pair.same(handshake())
        if row.before:
            row.before(pair)
        if row.together:
            pair.together(row.together)
        pair.same(row.steps[:-1])
        said = pair.tell(row.steps[-1])
        theirs, ours = row.look(pair, said)

    assert row.theirs in theirs
    assert row.ours in ours
    assert theirs != ours


@pytest.mark.parametrize("row", EVERYWHERE, ids=lambda row: row.name)
def test_what_differs_in_every_conversation_is_still_different(row: Everywhere, tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        said = pair.tell(row.shown_by)
        pair.same(handshake())

    assert said.ours != said.theirs
    assert alike(said.ours) == alike(said.theirs)


def test_no_two_rows_of_the_table_are_named_alike() -> None:
    assert len({row.name for row in WANTED}) == len(WANTED)
