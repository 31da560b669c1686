"""What is asked in other words is found, in both languages and across: the floor under `bench/retrieval.py`.

The bench prints 84 to 94 of 100 within ten; far below that something is broken, not unlucky."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from mcp_memory.space import Space
from tests.conftest import Caller

FLOOR = 0.75


def bilingual() -> ModuleType:
    place = Path(__file__).parent.parent.parent / "bench" / "bilingual.py"
    found = importlib.util.spec_from_file_location("bench_bilingual", place)
    assert found is not None and found.loader is not None
    module = sys.modules["bench_bilingual"] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


NOTES = bilingual()


@pytest.mark.parametrize("written", NOTES.LANGUAGES)
def test_questions_find_their_facts_in_both_languages(written: str, keep: Caller, sqlite_space: Space) -> None:
    notes = NOTES.notes(written)
    by_topic: dict[str, list[str]] = {}
    for note in notes:
        by_topic.setdefault(note.topic, []).append(note.text)
    keep("create_entities", entities=[{"name": name, "observations": texts} for name, texts in by_topic.items()])
    vectors = sqlite_space.vectors
    assert vectors is not None and vectors.wait(120)

    for asked in NOTES.LANGUAGES:
        hits = 0
        for note, question in zip(notes, NOTES.notes(asked), strict=True):
            results = keep("search_semantic", query=question.question, limit=20)["results"]
            matches = sorted((match for row in results for match in row["matches"]), key=lambda match: -match["score"])
            hits += note.text in [match["observation"] for match in matches[:10]]
        assert hits / len(notes) >= FLOOR, (written, asked)


def test_every_note_is_there_in_both_languages_and_some_are_long() -> None:
    english, spanish = (NOTES.notes(language) for language in NOTES.LANGUAGES)

    assert len(english) == len(spanish) >= 60
    assert [note.is_long for note in english] == [note.is_long for note in spanish]
    assert all(100 <= len(note.text.split()) <= 300 for note in (*english, *spanish) if note.is_long)
