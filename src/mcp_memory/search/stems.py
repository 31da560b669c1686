"""Words as questions and passages are compared by: folded, without function words, reduced to their stems.

Spanish and English are equals. A passage is stemmed in the language it is written in; a question, which
is too short to be sure of, in both."""

from __future__ import annotations

from collections.abc import Sequence

import Stemmer

from mcp_memory.search.stopwords import ENGLISH_WORDS, SPANISH_WORDS, STOP_WORDS

# The stemmer keeps the last words it has seen: most words are met again.
_english = Stemmer.Stemmer("english", 50_000)
_spanish = Stemmer.Stemmer("spanish", 50_000)


def is_spanish(found: Sequence[str]) -> bool:
    """Do these words read as Spanish? By the function words that only one of the two languages has."""
    return sum(map(SPANISH_WORDS.__contains__, found)) > sum(map(ENGLISH_WORDS.__contains__, found))


def stems(found: Sequence[str]) -> list[str]:
    """The stems of a passage's words, in order, in its own language."""
    telling = [word for word in found if word not in STOP_WORDS]
    return list((_spanish if is_spanish(found) else _english).stemWords(telling))


def variants(word: str) -> tuple[str, ...]:
    """What a word of a question may be called in a passage of either language."""
    english, spanish = _english.stemWord(word), _spanish.stemWord(word)
    return (english,) if english == spanish else (english, spanish)
