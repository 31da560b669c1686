"""An answer of no more tokens than somebody has room for: the best first, and each as whole as it fits.

The law: the best result is always there, whatever the budget; what was left out is said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

# Tokens are the client's, and no two models count alike: fewer bytes to one than any measured on prose in JSON.
BYTES_PER_TOKEN = 3.5


def tokens_of(value: Any) -> int:
    """How many tokens this is as JSON, rather too many than too few."""
    return int(len(msgspec.json.encode(value)) / BYTES_PER_TOKEN) + 1


def within(most: int, results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many results as fit; one that does not fit whole keeps only the observations that match. 0: no budget."""
    if not most:
        return list(results)
    kept: list[dict[str, Any]] = []
    for result in results:
        shown = result if tokens_of(result) <= most else _cut(result, most)
        size = tokens_of(shown)
        if kept and size > most:
            break
        kept.append(shown)
        most -= size
    return kept


def _cut(result: dict[str, Any], most: int) -> dict[str, Any]:
    """Without the observations that do not match; of those that do, as many of the best as fit, but one."""
    matches: list[dict[str, Any]] = []
    shown = result | {"observations": [], "matches": matches}
    left = most - tokens_of(shown)
    for match in result["matches"]:
        left -= tokens_of(match)
        if matches and left < 0:
            break
        matches.append(match)
    return shown | {"observations_left_out": len(result["observations"])}
