"""Quiet moments: when nobody writes for an instant, what follows from the feed catches up with it.

Where it is never quiet a moment is made, so that nothing acknowledged waits longer for the disk
than docs/durability.md says."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcp_memory.stores.store import StoreFault

if TYPE_CHECKING:
    from mcp_memory.noting import Noting
    from mcp_memory.stores.store import Store

log = logging.getLogger("mcp_memory")

# A quiet moment: this long without a write, or this many entries behind, and projections catch up.
QUIET_SECONDS = 0.05
MOST_BEHIND = 1000
# Where it is never quiet: nothing acknowledged waits longer for the disk.
LONGEST_UNSETTLED = 1.0


class Settler:
    """A thread, begun by the first write, that settles a store and whatever else waits for a quiet moment."""

    def __init__(self, store: Store, nudge: Callable[[], None], tidy: Callable[[], None]) -> None:
        """`nudge`: what else follows writes is told that there were some. `tidy`: what can wait longest."""
        self.last_write = 0.0
        self.noting: Noting  # what else waits for a quiet moment
        self._store = store
        self._nudge = nudge
        self._tidy = tidy
        self._thread: threading.Thread | None = None
        self._unsettled = threading.Event()
        self._closing = threading.Event()

    def wrote(self) -> None:
        self.last_write = time.monotonic()
        if not self._unsettled.is_set():
            self.wake()

    def wake(self) -> None:
        """Something waits for a quiet moment."""
        self._unsettled.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="settler", daemon=True)
            self._thread.start()

    @property
    def is_closing(self) -> bool:
        return self._closing.is_set()

    def stop(self) -> None:
        """Begin nothing more."""
        self._closing.set()
        self._unsettled.set()

    def join(self, seconds: float) -> None:
        """Wait so long for what is being done."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(seconds)

    def _work(self) -> None:
        nudged = 0.0
        while not self._closing.is_set():
            self._unsettled.wait()
            self._wait_until_quiet()
            self._unsettled.clear()
            if self.last_write > nudged:
                nudged = self.last_write
                self._nudge()
            try:
                self._store.settle()
                self.noting.write()
                self._tidy()
            except StoreFault as fault:
                # Derived data only; the feed holds everything. The next write or the next open tries again.
                log.warning("projections wait: %s", fault)
            except Exception:
                log.exception("projections failed; mcp-memory doctor can rebuild them")

    def _wait_until_quiet(self) -> None:
        latest = time.monotonic() + LONGEST_UNSETTLED
        while (wait := min(self.last_write + QUIET_SECONDS, latest) - time.monotonic()) > 0:
            if self._closing.wait(wait) or self._store.behind() > MOST_BEHIND or self.noting.are_many:
                break
