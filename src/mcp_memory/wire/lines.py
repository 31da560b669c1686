"""Chunks of a byte stream into lines, with a limit that costs no memory beyond it."""

from __future__ import annotations

from mcp_memory.wire.jsonrpc import ENDING, MOST_BYTES, SEARCHED


class TooLong:
    """What is kept of a line over the limit: its two ends, where its id may be found."""

    __slots__ = ("head", "tail")

    def __init__(self, head: bytes, tail: bytes = b"") -> None:
        self.head = head
        self.tail = tail

    def skip(self, part: bytes) -> None:
        self.tail = (self.tail + part)[-ENDING:]


class Lines:
    """Splits on LF alone: what else Python calls a line end may stand inside a JSON string."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self._parts: list[bytes] = []  # of the line that has not ended yet
        self._size = 0
        self._skipping: TooLong | None = None

    @property
    def kept(self) -> int:
        """Bytes of a line that waits for its end."""
        return 0 if self._skipping is not None else self._size

    @property
    def is_begun(self) -> bool:
        """Does a line wait for its end?"""
        return self._size > 0

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        """The lines that this chunk completes, without their ends."""
        pieces = chunk.split(b"\n")
        lines: list[bytes | TooLong] = [*pieces[:-1]]
        if self._size and lines:
            self._keep(pieces[0])
            lines[0] = self._whole()
        if pieces[-1]:
            self._keep(pieces[-1])
        return lines

    def end(self) -> list[bytes | TooLong]:
        """The last line, when the stream ended without ending it."""
        return [self._whole()] if self._size else []

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._skipping is not None:
            self._skipping.skip(part)
            return
        self._parts.append(part)
        if self._size > self.most:
            begun = b"".join(self._parts)
            self._parts.clear()
            self._skipping = TooLong(begun[:SEARCHED], begun[-ENDING:])

    def _whole(self) -> bytes | TooLong:
        line = self._skipping or b"".join(self._parts)
        self._parts.clear()
        self._size, self._skipping = 0, None
        return line
