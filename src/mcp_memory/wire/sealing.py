"""State that is given to a client to be brought back: it can be read on the way, and not altered.

The key lives as long as the process. A client that comes back later, or to another process, is told to
call again from the beginning; nothing has happened until then."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import time
from typing import Any

import msgspec

from mcp_memory.wire.jsonrpc import INVALID_PARAMS, Fault

KEEP_SECONDS = 900.0  # time for a person to answer
MOST_CHARACTERS = 65_536
STALE = (
    "Invalid params: requestState was not issued by this server for this call, or is too old. Call again without it."
)


class Sealer:
    """Seals state for one call, and opens what comes back for the same."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or os.urandom(32)

    def seal(self, state: Any, purpose: bytes, now: float | None = None) -> str:
        """The state as text; `purpose` is what it must come back for."""
        until = (time.time() if now is None else now) + KEEP_SECONDS
        body = msgspec.msgpack.encode((until, state))
        return base64.urlsafe_b64encode(self._mark(body, purpose) + body).decode()

    def open(self, text: Any, purpose: bytes, now: float | None = None) -> Any:
        """The state in this text; a Fault when we did not seal it for this purpose, or long ago."""
        try:
            if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
                raise ValueError
            sealed = base64.b64decode(text, b"-_", validate=True)
            mark, body = sealed[:32], sealed[32:]
            if not hmac.compare_digest(mark, self._mark(body, purpose)):
                raise ValueError
            until, state = msgspec.msgpack.decode(body)
        except (ValueError, binascii.Error):
            raise Fault(INVALID_PARAMS, STALE) from None
        if (time.time() if now is None else now) > until:
            raise Fault(INVALID_PARAMS, STALE)
        return state

    def _mark(self, body: bytes, purpose: bytes) -> bytes:
        return hmac.new(self._key, hashlib.sha256(purpose).digest() + body, hashlib.sha256).digest()
