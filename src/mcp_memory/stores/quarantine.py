"""Where lines go that a memory file cannot keep: a file beside it, raw bytes, each line once.

The law: a line is here, on the disk, before any rewrite drops it from the memory file."""

from __future__ import annotations

import os
from collections.abc import Iterable


class Quarantine:
    """The file `<memory file>.quarantine`; it exists only when something was kept in it."""

    def __init__(self, memory_path: str) -> None:
        self.path = f"{memory_path}.quarantine"

    def lines(self) -> set[bytes]:
        try:
            with open(self.path, "rb") as file:
                return set(file.read().split(b"\n"))
        except FileNotFoundError:
            return set()

    def missing(self, lines: Iterable[bytes]) -> list[bytes]:
        """Those that are not here yet, each once, in order."""
        wanted = dict.fromkeys(lines)
        if not wanted:
            return []
        kept = self.lines()
        return [line for line in wanted if line not in kept]

    def keep(self, lines: Iterable[bytes]) -> None:
        """Add the lines that are not here yet. Rare, so it is always flushed to the disk."""
        new = self.missing(lines)
        if not new:
            return
        with open(self.path, "a+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            # A line that a full disk cut off must not swallow the next one.
            start = b"\n" if file.read(1) not in (b"", b"\n") else b""
            rest = memoryview(start + b"\n".join(new) + b"\n")
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
