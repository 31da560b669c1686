"""Who asks: a name, what it may do and until when, and how much of the server it may take.

The law: nothing here is a secret, so all of it may be logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_memory.facts import SCOPES

if TYPE_CHECKING:
    from collections.abc import Iterable

NOBODY, ALL = 0, len(SCOPES)
BURST_SECONDS = 2.0  # so much of its rate may a caller save up


class Denied(Exception):
    """Why somebody is not let in. `reason` is a word for the log, the text is for the client."""

    def __init__(self, reason: str, text: str, *, is_passing: bool = False) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text
        self.is_passing = is_passing  # it is our fault, and may be over in a moment


class Allowance:
    """How much one caller may take, over all its connections."""

    __slots__ = ("_at", "_left", "_rate", "calls", "most", "sessions", "streams")

    def __init__(self, rate: float, most: int) -> None:
        self._rate = rate
        self._left = rate * BURST_SECONDS
        self._at = 0.0
        self.most = most
        self.calls = 0  # that a worker has
        self.streams = 0
        self.sessions = 0

    def take(self, now: float) -> bool:
        """May it ask once more at this moment?"""
        rate = self._rate
        left = min(self._left + (now - self._at) * rate, rate * BURST_SECONDS)
        self._at = now
        self._left = left - 1 if left >= 1 else left
        return left >= 1

    @property
    def is_idle(self) -> bool:
        return not (self.calls or self.streams or self.sessions)


class Caller:
    """Whoever showed one token."""

    __slots__ = ("allowance", "is_revoked", "level", "name", "shown", "until")

    def __init__(
        self, name: str, level: int, allowance: Allowance, until: float = float("inf"), shown: int = NOBODY
    ) -> None:
        """`shown`: lists show what needs so much, if that is more than `level`."""
        self.name = name
        self.level = level  # how many of SCOPES, from the first
        self.shown = max(level, shown)
        self.allowance = allowance
        self.until = until
        self.is_revoked = False

    def is_over(self, now: float) -> bool:
        return self.is_revoked or self.until <= now


def level_of(scopes: Iterable[str]) -> int:
    """What these scopes allow together: each includes those before it."""
    return max((SCOPES.index(scope) + 1 for scope in scopes if scope in SCOPES), default=NOBODY)


# Where nobody has to show a token there is one caller, and it may do what it likes.
ANYBODY = Caller("", ALL, Allowance(float("inf"), 1 << 62))
