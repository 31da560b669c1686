"""How much habit may say, told from how a question is put: a definition is looked up, a story is recalled.

The features and their weights are the documented ones, in Spanish and in English; case and accents do not matter."""

from __future__ import annotations

import re

from mcp_memory.search.folding import fold

COSINE_HEAVY, LIMBIC_HEAVY, HYBRID_BALANCED = "cosine_heavy", "limbic_heavy", "hybrid_balanced"
# What each strategy leaves to the limbic score; the rest is relevance.
SHARES = {COSINE_HEAVY: 0.3, HYBRID_BALANCED: 0.5, LIMBIC_HEAVY: 0.7}

# Points for relevance (+) or for habit (-), once for each phrase that stands in the query.
PHRASES: dict[str, int] = {
    # Spanish
    "que es": 2,
    "definicion": 2,
    "como funciona": 2,
    "es un": 2,
    "es una": 2,
    "relacion": 1,
    "diferencia": 1,
    "ejemplos": 1,
    "comparar": 1,
    "explicame": -2,
    "relacion entre": -2,
    "dime todo": -2,
    "cuentame": -2,
    "que piensas": -2,
    # English
    "what is": 2,
    "what are": 2,
    "definition": 2,
    "how does": 2,
    "is a": 2,
    "is an": 2,
    "relation": 1,
    "difference": 1,
    "examples": 1,
    "compare": 1,
    "explain": -2,
    "relation between": -2,
    "relationship between": -2,
    "tell me everything": -2,
    "tell me all": -2,
    "tell me about": -2,
    "what do you think": -2,
}
# Plurals and other endings count; the beginning of another word does not.
_FOUND = {phrase: re.compile(rf"\b{phrase}" + (r"\b" if " " in phrase else "")) for phrase in PHRASES}
SHORT, LONG = 3, 10
DECIDED = 2


def points(query: str, limit: int) -> int:
    """Above zero for a question to look up, below for one to recall."""
    text = fold(query)
    total = sum(points for phrase, points in PHRASES.items() if _FOUND[phrase].search(text))
    for size in (len(text.split()), limit):
        total += (size <= SHORT) - (size >= LONG)
    return total


def route(query: str, limit: int) -> str:
    """The strategy for a query."""
    total = points(query, limit)
    if total >= DECIDED:
        return COSINE_HEAVY
    return LIMBIC_HEAVY if total <= -DECIDED else HYBRID_BALANCED
