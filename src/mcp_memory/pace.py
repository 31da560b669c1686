"""How long a call may go on, or wait, where it was begun, and who may call it off.

What may take long, or waits for another program, asks the pace of its thread now and then. Where others wait, the
pace ends the call with NotNow, and it is begun anew elsewhere; there the pace looks whether it is still wanted."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from math import inf
from typing import NoReturn

from mcp_memory.facts import NotNow

# A step is about a microsecond: an entity asked about, or a relation tried.
STEPS_WHERE_OTHERS_WAIT = 2_000
STEPS_BETWEEN_LOOKS = 1_000
# Another process of ours has the file for a write of milliseconds: that is not worth a thread.
SECONDS_FOR_A_WRITE = 0.02

_here = threading.local()


class Pace:
    """Calls `look` after so many steps, again and again; `look` may raise. `tell`, where somebody listens, is told
    how far a call is that knows it. Another program is waited for for `patience`; then `too_long` says whether longer.
    """

    def __init__(
        self,
        steps: int,
        look: Callable[[], None],
        tell: Callable[[int, int | None, str], None] | None = None,
        *,
        patience: float = inf,
        too_long: Callable[[], bool] | None = None,
    ) -> None:
        self._steps = self._left = steps
        self._look = look
        self._tell = tell
        self.patience = patience
        self._too_long = too_long or _not_now

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            self._left = self._steps
            self._look()

    def reach(self, done: int, total: int | None, about: str, steps: int) -> None:
        """So much is done, and something of so many steps comes next."""
        if self._tell is None:
            self.spend(steps)
        else:
            self._tell(done, total, about)

    def may_wait(self, waited: float) -> bool:
        """Another program has been waited for so long; for another moment?"""
        self._look()
        return waited <= self.patience or self._too_long()


def here() -> Pace | None:
    """The pace of this thread, if it has one."""
    pace: Pace | None = getattr(_here, "pace", None)
    return pace


def reached(done: int, total: int | None, about: str, steps: int) -> None:
    """Tell the pace of this thread, if it has one, how far a call is and how long the next part may take."""
    pace = here()
    if pace is not None:
        pace.reach(done, total, about, steps)


def spend(steps: int) -> None:
    """Tell the pace of this thread, if it has one, that so many steps come next."""
    pace = here()
    if pace is not None:
        pace.spend(steps)


def pause(seconds: float, waited: float) -> bool:
    """Wait a moment for another program, if the pace of this thread allows it; so long it has been waited for."""
    pace = here()
    if pace is not None and not pace.may_wait(waited):
        return False
    time.sleep(seconds)
    return True


class at:
    """Until this is left, it is the pace of this thread."""

    # A class: a generator's context costs a microsecond more, and a brisk call has twenty.
    __slots__ = ("_before", "_pace")

    def __init__(self, pace: Pace) -> None:
        self._pace = pace

    def __enter__(self) -> None:
        self._before = here()
        _here.pace = self._pace

    def __exit__(self, *_: object) -> None:
        _here.pace = self._before


def brisk() -> Pace:
    """For a call that others wait for: a moment, and then it must go elsewhere."""
    return Pace(STEPS_WHERE_OTHERS_WAIT, _not_now)


def reading() -> Pace:
    """For a thread that reads what else its client asks: it works as long as it takes, but waits for nobody."""
    return Pace(sys.maxsize, _go_on, patience=SECONDS_FOR_A_WRITE)


def _not_now() -> NoReturn:
    raise NotNow


def _go_on() -> None:
    return
