"""Times as callers write them: a day, a minute or a second, in UTC."""

from __future__ import annotations

import re

from mcp_memory.facts import BadInput
from mcp_memory.search.times import day_of, seconds_of

TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.\d+)?)?)?(?:Z|\+00:00)?")


def beginning(given: str, what: str) -> str:
    """The first second of a time, as the feed writes it; nothing for nothing."""
    day, minute, second = _parts(given, what)
    return f"{day} {minute or '00:00'}:{second or '00'}" if day else ""


def end(given: str, what: str) -> str:
    """The last second of a time: what was written in a day or a minute belongs to it."""
    day, minute, second = _parts(given, what)
    return f"{day} {minute or '23:59'}:{second or '59'}" if day else ""


def _parts(given: str, what: str) -> tuple[str | None, ...]:
    if not given.strip():
        return (None, None, None)
    found = TIME.fullmatch(given.strip())
    if found is None or not _is_in_the_calendar(*found.groups()):
        raise BadInput(f"{what} cannot be {given!r}: give a time in UTC, such as 2026-03-01 or 2026-03-01 12:30.")
    return found.groups()


def _is_in_the_calendar(day: str, minute: str | None, second: str | None) -> bool:
    seconds = seconds_of(day)
    is_a_day = seconds is not None and day_of(seconds) == day  # the 30th of February is counted on into March
    return is_a_day and (minute or "00:00") < "24:00" and (minute or "00:00")[3:] < "60" and (second or "00") < "60"
