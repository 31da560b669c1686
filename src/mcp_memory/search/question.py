"""What a question asks for, read off its words: its subjects, who is meant, whether it is about a time.

Only features that hold for any conversation or notes, in Spanish and English alike; no model."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from mcp_memory.search.folding import fold, words
from mcp_memory.search.stems import is_spanish, variants
from mcp_memory.search.stopwords import STOP_WORDS

ASKS_WHEN = re.compile(
    r"\b(when|how (long|old|often|many (days|weeks|months|years))|what (time|date|day|month|year)"
    r"|which (day|month|year)"
    r"|cuando|cuanto tiempo|hace cuanto|que (dia|fecha|mes|ano|hora))\b"
)
# Asks for somebody, a place or one of several: which has a name.
ASKS_WHO = frozenset("who whose whom where which quien quienes donde adonde cual cuales".split())
# A capital letter inside a sentence begins a name, but for the English "I".
NAME = re.compile(r"(?<=[^.!?:\s] )(?!I\b)[A-ZÀ-ÖØ-ÞΑ-ΩА-Я]\w")
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

# ── a question as what somebody may have said ────────────────────────────────────────────────────

SPOKEN = re.compile(r"[\w'’-]+")
POSSESSIVE = re.compile(r"['’]s?$")
BEFORE_ASKING = frozenset("in on at for to from with by of about en a de con por para desde hasta sobre".split())
ASKING = frozenset(
    "what when where who whom whose why which how que cuando donde adonde quien quienes cual cuales como cuanto "
    "cuanta cuantos cuantas".split()
)
MEASURES = frozenset("long many much often old kind kinds type types sort sorts of tiempo tipo tipos de clase".split())
AUXILIARIES = frozenset(
    "did does do is are was were has have had will would can could might should es son fue fueron era eran ha han "
    "habia".split()
)
SPEAKING = {True: ("yo", "mi"), False: ("I", "my")}  # is it Spanish?


class Question(msgspec.Struct, frozen=True):
    """A query as the ranking sees it."""

    query: str
    telling: tuple[str, ...]  # the words that carry a subject
    subjects: tuple[tuple[str, ...], ...]  # the stems that each of them may have
    words: frozenset[str]  # every folded word, to tell who is named
    is_about_time: bool
    is_about_name: bool
    is_unfinished: bool  # ends in the middle of a word, perhaps: that one stands for what begins like it, too


def read(query: str) -> Question:
    found = list(dict.fromkeys(words(query)))
    telling = [word for word in found if word not in STOP_WORDS] or found
    subjects = tuple(map(variants, telling))
    about_name = not ASKS_WHO.isdisjoint(found[:2])  # "where", "in which", "¿de quién"
    about_time = ASKS_WHEN.search(fold(query)) is not None
    unfinished = bool(telling) and found[-1] == telling[-1] and query[-1].isalnum()
    return Question(query, tuple(telling), subjects, frozenset(found), about_time, about_name, unfinished)


def tells_name(text: str) -> bool:
    """Does a text name somebody or something?"""
    return NAME.search(text) is not None


def tells_when(found: Collection[str]) -> bool:
    """Do the words of a passage say something of a time?"""
    return not TIME_WORDS.isdisjoint(found) or any(len(word) <= 4 for word in filter(str.isdigit, found))


def as_said(query: str, speakers: Collection[str]) -> str:
    """The question as one of the `speakers` may have answered it: in the first person, without the asking.

    What was said is nearer in meaning to that. A name weighs much in a vector, and whose words these are is
    known anyway. On dialogues the meaning alone finds 69 of 100 so within ten, as it was asked 52; both wordings
    together find the right one oftener among the first five than either."""
    spoken = SPOKEN.findall(query)
    folded = [fold(word) for word in spoken]
    start = _asking(folded)
    i, my = SPEAKING[is_spanish(folded)]
    said = []
    for word, plain in zip(spoken[start:], folded[start:], strict=True):
        name = POSSESSIVE.sub("", plain)
        said.append((my if name != plain else i) if name in speakers else word)
    return " ".join(said) or query


def _asking(folded: list[str]) -> int:
    """How many words at the beginning only ask."""
    at = 1 if len(folded) > 1 and folded[0] in BEFORE_ASKING and folded[1] in ASKING else 0
    if at >= len(folded) or folded[at] not in ASKING:
        return 0
    at += 1
    while at < len(folded) and folded[at] in MEASURES:
        at += 1
    return at + 1 if at < len(folded) and folded[at] in AUXILIARIES else at
