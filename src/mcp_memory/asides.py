"""What is said to whoever made a call while it is made: that it waits, that something was left out.

Whoever has something to say need not know who listens, or whether anybody does. Where a call begins, its listener is
named for the thread; it decides what its client wants to hear."""

from __future__ import annotations

import threading
from collections.abc import Callable

Listener = Callable[[str, str], None]

_here = threading.local()


def say(level: str, text: str) -> None:
    """Say this to the caller of this thread's call, if there is one: debug, info, notice, warning or error."""
    listener: Listener | None = getattr(_here, "listener", None)
    if listener is not None:
        listener(level, text)


class heard_by:
    """Until this is left, what is said in this thread is for this listener."""

    __slots__ = ("_listener",)

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def __enter__(self) -> None:
        _here.listener = self._listener

    def __exit__(self, *_: object) -> None:
        _here.listener = None
