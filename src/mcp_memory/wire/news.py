"""Who wants to hear of what, and what is owed to whom.

The law: an interest remembers what it has heard. What is owed is the difference to what is true, so that
ten writes while a client did not listen are one notice, and nobody is told twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.facts import Interruption
from mcp_memory.wire.jsonrpc import encode, notification

if TYPE_CHECKING:
    from mcp_memory.wire.offer import Offer

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
UPDATED = "notifications/resources/updated"
LISTS = ("tools", "prompts", "resources")
MOST_WATCHED = 100  # single entities of one listener: each is looked at after every write
LOOK_SECONDS = 0.25  # how soon a write of another process is noticed


class Interest:
    """What one listener wants to hear of, and what it has heard."""

    def __init__(
        self,
        offer: Offer,
        ident: bytes = b"",
        uris: Iterable[str] = (),
        lists: Iterable[str] = (),
        *,
        at_once: bool = False,
    ) -> None:
        self.ident = ident  # of the request that listens; nothing after a handshake
        self._offer = offer
        self._lock = threading.Lock()
        self._writes = offer.writes
        # By URI as the client spells it: where that is (None: any write changes it) and the mark that it had last.
        self._seen: dict[str, tuple[Any, Any]] = {}
        self._lists = {name: offer.list_changes[name] for name in lists}
        for uri in uris:
            self.add(uri, at_once)

    def __bool__(self) -> bool:
        return bool(self._seen)

    def __contains__(self, uri: str) -> bool:
        return uri in self._seen

    @property
    def wants_anything(self) -> bool:
        return bool(self._seen or self._lists)

    @property
    def uris(self) -> list[str]:
        return list(self._seen)

    @property
    def lists(self) -> list[str]:
        return list(self._lists)

    def add(self, uri: str, at_once: bool = False) -> None:
        with self._lock:
            writes = self._offer.writes
            place = self._offer.resources.place(uri)
            mark = None if place is None else self._offer.mark_of(place, at_once)
            if not self._seen:
                self._writes = writes
            self._seen[uri] = (place, mark)

    def discard(self, uri: str) -> None:
        with self._lock:
            self._seen.pop(uri, None)

    @property
    def is_full(self) -> bool:
        return len(self._seen) >= MOST_WATCHED

    def owed(self, at_once: bool = False) -> list[bytes]:
        """The notices that this listener has not had."""
        with self._lock:
            owed = [f"notifications/{name}/list_changed" for name in self._lists if self._has_new(name)]
            said = [self._notice(method, {}) for method in owed]
            if self._writes != self._offer.writes:
                self._writes = self._offer.writes
                said += [self._notice(UPDATED, {"uri": uri}) for uri in self._seen if self._differs(uri, at_once)]
        return said

    def _has_new(self, name: str) -> bool:
        now = self._offer.list_changes[name]
        is_new = self._lists[name] != now
        self._lists[name] = now
        return is_new

    def _differs(self, uri: str, at_once: bool) -> bool:
        place, seen = self._seen[uri]
        if place is None:
            return True
        try:
            now = self._offer.mark_of(place, at_once)
        except Interruption:
            return True  # others have the graph; a notice too many does no harm
        if now == seen:
            return False
        self._seen[uri] = (place, now)
        return True

    def _notice(self, method: str, params: dict[str, Any]) -> bytes:
        if self.ident:
            params = {"_meta": {SUBSCRIPTION: msgspec.Raw(self.ident)}, **params}
        return notification(method, encode(params)) if params else b'{"jsonrpc":"2.0","method":%b}' % encode(method)


NEWS = tuple(
    b'{"jsonrpc":"2.0","method":%b' % encode(method)
    for method in (UPDATED, *(f"notifications/{name}/list_changed" for name in LISTS))
)


def is_news(line: bytes) -> bool:
    """Is this a notice that no particular request is the cause of?"""
    return line.startswith(NEWS)


class Watcher:
    """Looks now and then whether another process has written to the store, while somebody wants to know."""

    def __init__(self, look: Callable[[], int], tell: Callable[[], None]) -> None:
        self._look = look
        self._tell = tell
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        with self._lock:
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._watch, name="watcher", daemon=True)
                self._thread.start()

    def end(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        seen: int | None = None
        while not self._ended.wait(LOOK_SECONDS if seen is not None else 0):
            try:
                now = self._look()
            except Exception:  # a store in trouble says so to whoever calls
                continue
            if seen is not None and now != seen:
                self._tell()
            seen = now
