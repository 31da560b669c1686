"""A write that a client sends again, because it never saw the answer, happens once and is answered again.

The client names it by a key of its own in `_meta`. This process keeps keys with their answers for an hour; that the
call was made also stands in the feed, where the format of the memory has one (`repeats.py`), for the next process."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcp_memory.changes import NOTED
from mcp_memory.facts import NotNow
from mcp_memory.origins import person_of
from mcp_memory.repeats import KEPT_SECONDS, KeyReused, Request, asked_as
from mcp_memory.wire.jsonrpc import INVALID_PARAMS, Fault

if TYPE_CHECKING:
    from mcp_memory.desk import Answer
    from mcp_memory.wire.calls import Call

MOST_KEPT = 1000
MOST_BYTES = 8 * 1024 * 1024
LONGEST_KEY = 256
WAIT_SECONDS = 60.0
REUSED = "Invalid params: this mcp-memory/requestKey was used for another call"


class Made:
    """A call with a key: under way, or with its answer."""

    def __init__(self, fingerprint: bytes, now: float) -> None:
        self.fingerprint = fingerprint
        self.at = now
        self.ended = threading.Event()
        self.answer: Answer | None = None
        self.size = 0


class Retries:
    """The calls that had a key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[str, bytes], Made] = OrderedDict()
        self._bytes = 0

    def once(self, call: Call, do: Callable[[], Answer | None], *, wait: bool) -> Answer | None:
        """What `do` answers, or what it answered when it was called with this key before."""
        key = call.dialogue.request_key
        if key[:1] != b'"' or len(key) > LONGEST_KEY:
            raise Fault(
                INVALID_PARAMS, f"Invalid params: mcp-memory/requestKey is a text of at most {LONGEST_KEY} bytes"
            )
        place = (call.origin, key)
        fingerprint = sha256(call.tool.name.encode() + b"\0" + call.arguments).digest()
        while True:
            made, is_new = self._find(place, fingerprint)
            if is_new:
                name = NOTED + sha256(person_of(call.origin).encode() + b"\0" + key).digest()[:16]
                with asked_as(Request(name, fingerprint[:16])):
                    return self._do(place, made, do)
            if made.answer is not None:
                return replace(made.answer, changed=False)
            if not wait:
                raise NotNow
            made.ended.wait(WAIT_SECONDS)

    def _find(self, place: tuple[str, bytes], fingerprint: bytes) -> tuple[Made, bool]:
        with self._lock:
            self._forget()
            made = self._made.get(place)
            if made is None:
                made = self._made[place] = Made(fingerprint, self._clock())
                return made, True
        if made.fingerprint != fingerprint:
            raise Fault(INVALID_PARAMS, REUSED)
        return made, False

    def _do(self, place: tuple[str, bytes], made: Made, do: Callable[[], Answer | None]) -> Answer | None:
        answer = None
        try:
            answer = do()
        except KeyReused as reused:
            raise Fault(INVALID_PARAMS, REUSED) from reused
        finally:
            with self._lock:
                if answer is None or answer.is_error:
                    self._made.pop(place, None)  # nothing has happened: it may be tried again
                else:
                    made.answer = answer
                    made.size = len(answer.structured or b"") + len(answer.text or "")
                    self._bytes += made.size
            made.ended.set()
        return answer

    def _forget(self) -> None:
        """Let go of what is too old, or too much."""
        oldest = self._clock() - KEPT_SECONDS
        while self._made:
            place, made = next(iter(self._made.items()))
            is_small = len(self._made) < MOST_KEPT and self._bytes < MOST_BYTES
            if made.answer is None or (is_small and made.at > oldest):
                return
            del self._made[place]
            self._bytes -= made.size
