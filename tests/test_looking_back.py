"""The page about history shows what is really said."""

from __future__ import annotations

from tests.looking_back import PAGE, transcript
from tests.maintenance import parts


def test_the_conversation_in_the_page_is_a_real_one() -> None:
    _, shown, _ = parts(PAGE.read_text(encoding="utf-8"))

    assert shown.rstrip() == transcript().rstrip(), "run: python -m tests.looking_back"
