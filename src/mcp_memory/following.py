"""The settings file while a server runs: when it chooses other tools, clients are offered them at once.

The law: only what is on offer changes (profile, families, read-only), and what is said of it. Everything else is how
the server was built, and holds from its next start on. A file that cannot be read changes nothing, and is told about on
stderr."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING

from mcp_memory.advice import instructions_for
from mcp_memory.facts import MemoryFault
from mcp_memory.settings import BadSetting, Request, read

if TYPE_CHECKING:
    from mcp_memory.wire.offer import Offer

log = logging.getLogger("mcp_memory")

LOOK_SECONDS = 1.0
OFFICIAL = "official"


class Follower:
    """Looks now and then whether the settings file has changed, in a thread of its own."""

    def __init__(self, request: Request, offer: Offer) -> None:
        self._request = request
        self._offer = offer
        self._seen = _stamp(request.file)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, name="settings follower", daemon=True)
            self._thread.start()

    def end(self) -> None:
        self._ended.set()

    def _follow(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            stamp = _stamp(self._request.file)
            if stamp != self._seen:
                self._seen = stamp
                try:
                    self._take_up()
                except (BadSetting, MemoryFault) as fault:
                    log.warning("the tools on offer stay as they are: %s", fault)

    def _take_up(self) -> None:
        """Offer what the file chooses now."""
        from mcp_memory.assembly import tools_for

        wanted = read(self._request.given).settings
        if OFFICIAL in (wanted.profile, self._request.settings.profile):
            if wanted.profile != self._request.settings.profile:
                log.warning("the official profile speaks otherwise throughout: it holds from the next start on")
            return
        if self._offer.reoffer(tools_for(wanted), instructions_for(wanted)):
            log.info("clients are told of other tools: profile %s", wanted.profile)


def _stamp(path: str) -> tuple[int, int, int] | None:
    """What differs when a file does; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
