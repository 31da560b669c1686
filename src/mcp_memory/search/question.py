"""What a question asks for, read off its words: its subjects, who is meant, whether it is about a time.

Only features that hold for any conversation or notes, in Spanish and English alike; no model."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from mcp_memory.search.folding import fold, words
from mcp_memory.search.stems import variants
from mcp_memory.search.stopwords import STOP_WORDS

ASKS_WHEN = re.compile(
    r"\b(when|how (long|old|often|many (days|weeks|months|years))|what (time|date|day|month|year)"
    r"|which (day|month|year)"
    r"|cuando|cuanto tiempo|hace cuanto|que (dia|fecha|mes|ano|hora))\b"
)
TIME_WORDS = frozenset(
    """
    yesterday today tonight tomorrow ago weekend week weeks month months year years day days night summer winter
    spring autumn monday tuesday wednesday thursday friday saturday sunday january february march april june july
    august september october november december
    ayer hoy manana anoche anteayer semana semanas mes meses ano anos dia dias verano invierno primavera otono lunes
    martes miercoles jueves viernes sabado domingo enero febrero marzo abril mayo junio julio agosto septiembre
    octubre noviembre diciembre
    """.split()
)


class Question(msgspec.Struct, frozen=True):
    """A query as the ranking sees it."""

    subjects: tuple[tuple[str, ...], ...]  # the stems that each telling word may have
    words: frozenset[str]  # every folded word, to tell who is named
    is_about_time: bool


def read(query: str) -> Question:
    found = list(dict.fromkeys(words(query)))
    telling = [word for word in found if word not in STOP_WORDS] or found
    return Question(tuple(map(variants, telling)), frozenset(found), ASKS_WHEN.search(fold(query)) is not None)


def tells_when(found: Collection[str]) -> bool:
    """Do the words of a passage say something of a time?"""
    return not TIME_WORDS.isdisjoint(found) or any(word.isdigit() and len(word) <= 4 for word in found)
