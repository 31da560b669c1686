"""The page about maintenance shows what is really said."""

from __future__ import annotations

from tests.maintenance import PAGE, parts, transcript


def test_the_conversation_in_the_page_is_a_real_one() -> None:
    _, shown, _ = parts(PAGE.read_text(encoding="utf-8"))

    assert shown.rstrip() == transcript().rstrip(), "run: python -m tests.maintenance"
