"""What a client was sent on its streams, kept for a while, so that one whose connection broke off hears the rest.

An event's id names its stream and its place in it: `p3.2` is the second event of the third stream, which
answers a POST (`g` is a GET). All clients together have so much tape. Where it is short, whoever has most gives way,
first by token, then by session; what finds no place is not kept, only sent."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Hashable
from typing import NamedTuple

MOST_TAPED = 64 * 1024 * 1024
OVERHEAD = 200  # bytes that an event takes beside its text
MOST_EVENTS = 500  # of one client
KEPT_SECONDS = 300.0
ID = re.compile(rb"([pg])(\d{1,9})\.(\d{1,9})")


class Event(NamedTuple):
    """A message on a stream, and when it was said."""

    stream: bytes
    number: int
    line: bytes
    at: float

    @property
    def ident(self) -> bytes:
        return b"%b.%d" % (self.stream, self.number)


class Shelf:
    """The tape there is for all clients."""

    def __init__(self, most: int = MOST_TAPED) -> None:
        self.most = most
        self.taken = 0
        self.tapes: set[Tape] = set()
        self.owned: Counter[Hashable] = Counter()

    def take(self, size: int, tape: Tape) -> None:
        self.taken += size
        self.owned[tape.owner] += size
        tape.taken += size

    def make_room(self, size: int, mine: Tape, now: float) -> bool:
        """See that so much more fits; not where others would have to give way who have no more."""
        if self.taken + size > self.most:
            for tape in self.tapes:
                tape.forget(now - KEPT_SECONDS)
        while self.taken + size > self.most:
            greediest = max(self.tapes, key=lambda tape: (self.owned[tape.owner], tape.taken))
            if not self._has_more(greediest, mine, size):
                return False
            while self.taken + size > self.most and self._has_more(greediest, mine, size):
                greediest.drop()
        return True

    def _has_more(self, tape: Tape, mine: Tape, size: int) -> bool:
        """Than mine will have."""
        if tape.owner == mine.owner:
            return tape.taken > mine.taken + size
        return tape.taken > 0 and self.owned[tape.owner] > self.owned[mine.owner] + size


class Tape:
    """The last events of one client."""

    def __init__(self, shelf: Shelf, owner: Hashable = None) -> None:
        """`owner`: whose token it is, if anybody's."""
        self._shelf = shelf
        self.owner = owner
        self.taken = 0
        self._events: deque[Event] = deque()
        self._numbers: dict[bytes, int] = {}  # by stream that is open: its last event
        self._streams = 0
        self._is_over = False
        shelf.tapes.add(self)

    def begin(self, kind: bytes) -> bytes:
        """A new stream."""
        self._streams += 1
        stream = b"%b%d" % (kind, self._streams)
        self._numbers[stream] = 0
        return stream

    def add(self, stream: bytes, line: bytes, now: float) -> bytes:
        """Keep an event; its id."""
        number = self._numbers.get(stream, 0) + 1
        self._numbers[stream] = number
        event = Event(stream, number, line, now)
        self.forget(now - KEPT_SECONDS)
        if len(self._events) >= MOST_EVENTS:
            self.drop()
        size = len(line) + OVERHEAD
        if not self._is_over and self._shelf.make_room(size, self, now):
            self._events.append(event)
            self._shelf.take(size, self)
        return event.ident

    def end(self, stream: bytes) -> None:
        """Nothing more is said on this stream."""
        self._numbers.pop(stream, None)

    def after(self, ident: bytes) -> tuple[bytes, list[Event]] | None:
        """The stream of this event, and what came after it; None when it is no event of ours."""
        found = ID.fullmatch(ident)
        if found is None or not 0 < int(found[2]) <= self._streams:
            return None
        stream = found[1] + found[2]
        return stream, [each for each in self._events if each.stream == stream and each.number > int(found[3])]

    def forget(self, before: float) -> None:
        while self._events and self._events[0].at < before:
            self.drop()

    def clear(self) -> None:
        """The client is gone for ever."""
        self._is_over = True
        while self._events:
            self.drop()
        self._shelf.tapes.discard(self)

    def drop(self) -> None:
        """Forget the first event."""
        self._shelf.take(-len(self._events.popleft().line) - OVERHEAD, self)
        if not self._shelf.owned[self.owner]:
            del self._shelf.owned[self.owner]
