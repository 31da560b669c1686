"""Whatever a client says, the official profile answers as the official server does, and keeps the same file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.official.pair import Pair, handshake
from tests.official.recorded import CONTINUED, CONVERSATIONS, FILES


@pytest.mark.parametrize("title", CONVERSATIONS)
def test_both_servers_say_the_same_and_write_the_same_file(title: str, tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        pair.same(CONVERSATIONS[title])


@pytest.mark.parametrize("title", FILES)
def test_both_servers_read_the_same_in_a_file_and_go_on_with_it_alike(title: str, tmp_path: Path) -> None:
    with Pair(tmp_path, FILES[title].encode()) as pair:
        pair.same(handshake())
        pair.same(CONTINUED)
