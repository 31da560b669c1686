"""The system's calls that plain files are written by, through the weather; and the clock.

They stand in for the ones in `os` and `time` in this process, and leave everything alone that is not a file
of the tortured memory."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from mcp_memory.torture.platter import Platter
from mcp_memory.torture.weather import Trouble

MAC_FLUSHES = (51, 85)  # F_FULLFSYNC, F_BARRIERFSYNC


class Calls:
    """Put in place once, for as long as the process lives."""

    def __init__(self, trouble: Trouble, folder: str, platter: Platter | None) -> None:
        self._trouble = trouble
        self._folder = folder
        self._platter = platter
        self._paths: dict[int, str] = {}  # of open files of the memory, and of its folder
        self._open, self._close, self._write = os.open, os.close, os.write
        self._dup, self._fsync = os.dup, os.fsync
        self._time, self._time_ns = time.time, time.time_ns

    def take_the_place(self) -> None:
        stand_ins: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
            (os, "open", self.open),
            (os, "close", self.close),
            (os, "write", self.write),
            (os, "dup", self.dup),
            (os, "fsync", self.fsync),
            (time, "time", self.time),
            (time, "time_ns", self.time_ns),
        )
        for module, name, stand_in in stand_ins:
            setattr(module, name, stand_in)
        if sys.platform == "darwin":
            self._take_the_place_of_fcntl()

    def _take_the_place_of_fcntl(self) -> None:
        import fcntl

        real: Any = fcntl.fcntl

        def stand_in(descriptor: int, command: int, argument: Any = 0) -> Any:
            if command not in MAC_FLUSHES:
                return real(descriptor, command, argument)
            return self._flushed(descriptor, lambda: real(descriptor, command, argument))

        module: Any = fcntl
        module.fcntl = stand_in

    # ── files ────────────────────────────────────────────────────────────────────────────────────

    def open(self, path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        descriptor = self._open(path, flags, mode, **more)
        name = os.path.abspath(os.fsdecode(path))
        if self._folder in (name, os.path.dirname(name)):
            self._paths[descriptor] = name
        return descriptor

    def close(self, descriptor: int) -> None:
        self._paths.pop(descriptor, None)
        self._close(descriptor)

    def dup(self, descriptor: int) -> int:
        other = self._dup(descriptor)
        if descriptor in self._paths:
            self._paths[other] = self._paths[descriptor]
        return other

    def write(self, descriptor: int, data: Any) -> int:
        if descriptor not in self._paths:
            return self._write(descriptor, data)
        written, error = self._trouble.writing(len(data), grows=True)
        if not error:
            return self._write(descriptor, data)
        if written:
            self._write(descriptor, memoryview(data)[:written])
        raise OSError(error, os.strerror(error), self._paths[descriptor])

    def fsync(self, descriptor: int) -> None:
        self._flushed(descriptor, lambda: self._fsync(descriptor))

    def _flushed(self, descriptor: int, flush: Callable[[], Any]) -> Any:
        path = self._paths.get(descriptor)
        if path is None:
            return flush()
        with self._platter.timed() if self._platter is not None else nullcontext():
            return self._flushed_file(path, descriptor, flush)

    def _flushed_file(self, path: str, descriptor: int, flush: Callable[[], Any]) -> Any:
        error = self._trouble.flushing()
        if error:
            raise OSError(error, os.strerror(error), path)
        done = flush()
        if self._platter is not None:
            if path == self._folder:
                self._platter.take_names()
            else:
                self._platter.take_content(path, lambda: _content(path), descriptor)
        return done

    # ── the clock ────────────────────────────────────────────────────────────────────────────────

    def time(self) -> float:
        return self._time() + self._trouble.clock()

    def time_ns(self) -> int:
        return self._time_ns() + self._trouble.clock() * 1_000_000_000


def _content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()
