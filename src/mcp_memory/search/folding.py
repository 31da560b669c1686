"""Letters made equal for searching: no case, no accents, in every script that has them."""

from __future__ import annotations

import re
from unicodedata import combining, normalize

# A word is a run of letters and digits; an underscore parts words, as a blank does.
WORD = re.compile(r"[^\W_]+")
# Marks above and below a letter have a class from here on. Those below this bound (the Hindi virama, the
# Japanese voicing mark …) make another letter, not an accented one.
FIRST_ACCENT_CLASS = 200


def fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    apart = normalize("NFD", text.casefold())
    if not any(map(combining, apart)):
        return normalize("NFC", apart)
    return normalize("NFC", "".join(c for c in apart if combining(c) < FIRST_ACCENT_CLASS))


def words(text: str) -> list[str]:
    """The folded words of a text, in order."""
    return WORD.findall(fold(text))
