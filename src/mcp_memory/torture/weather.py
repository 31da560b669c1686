"""What goes wrong just now: written by who tortures, read by every victim before each touch of the disk."""

from __future__ import annotations

import errno
import os
import random
import time
from contextlib import suppress

import msgspec

FULL, FAILING, SLOW, CLOCK = STRIKING = ("full", "failing", "slow", "clock")


class Weather(msgspec.Struct, frozen=True):
    full: bool = False  # no file can grow
    failing: float = 0.0  # the share of writes and flushes that fail; half of such writes are done in part
    slow: float = 0.0  # the longest that a write or a flush takes, in seconds
    clock: int = 0  # so many seconds the clock is ahead, or behind

    def write(self, path: str) -> None:
        beside = f"{path}.new"
        with open(beside, "wb") as file:
            file.write(msgspec.json.encode(self))
        deadline = time.monotonic() + 2
        while True:
            try:
                os.replace(beside, path)
                return
            except PermissionError:  # Windows, while somebody reads it
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.001)


def strokes(path: str) -> dict[str, int]:
    """How many processes each fault struck, under each weather that this file told."""
    found = {}
    for fault in STRIKING:
        with suppress(FileNotFoundError):
            found[fault] = os.path.getsize(f"{path}.{fault}")
    return found


class Trouble:
    """The weather as one victim meets it. With a seed, so that a run can be repeated as far as processes can be."""

    def __init__(self, path: str, seed: int) -> None:
        self._path = path
        self._chance = random.Random(seed)
        self._seen: tuple[int, int, int] | None = None
        self._weather = Weather()
        self._struck: set[str] = set()
        # Before anybody puts other ones in their place.
        self._stat, self._open, self._sleep = os.stat, open, time.sleep

    def now(self) -> Weather:
        with suppress(OSError, msgspec.DecodeError):
            found = self._stat(self._path)
            stamp = found.st_mtime_ns, found.st_ino, found.st_size
            if stamp != self._seen:
                with self._open(self._path, "rb") as file:
                    self._weather = msgspec.json.decode(file.read(), type=Weather)
                self._seen = stamp
                self._struck.clear()
        return self._weather

    def writing(self, size: int, grows: bool) -> tuple[int, int]:
        """Of a write of so many bytes: how many are written, and the number of the error that follows, or 0."""
        weather = self._wait()
        if weather.full and grows:
            self._strike(FULL)
            return self._part(size), errno.ENOSPC
        if weather.failing and self._chance.random() < weather.failing:
            self._strike(FAILING)
            return self._part(size), errno.EIO
        return size, 0

    def flushing(self) -> int:
        """The number of the error that a flush ends with, or 0."""
        weather = self._wait()
        if weather.failing and self._chance.random() < weather.failing:
            self._strike(FAILING)
            return errno.EIO
        return 0

    def clock(self) -> int:
        """So many seconds the clock is wrong, for who asks it."""
        wrong = self.now().clock
        if wrong:
            self._strike(CLOCK)
        return wrong

    def _strike(self, fault: str) -> None:
        """Note that it came to something: once for each process and each weather."""
        if fault not in self._struck:
            self._struck.add(fault)
            with suppress(OSError), self._open(f"{self._path}.{fault}", "ab", buffering=0) as file:
                file.write(b".")

    def _part(self, size: int) -> int:
        return self._chance.choice((0, self._chance.randrange(size) if size else 0))

    def _wait(self) -> Weather:
        weather = self.now()
        if weather.slow:
            self._strike(SLOW)
            self._sleep(self._chance.random() * weather.slow)
        return weather
