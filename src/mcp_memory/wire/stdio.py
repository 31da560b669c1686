"""The protocol over standard input and output, until the input ends or somebody asks us to.

A blocking loop without an event loop: a small call costs three system calls beside its own work. What
has been read is answered before the end, and nothing but the protocol can reach the output."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

from mcp_memory.pace import at, reading
from mcp_memory.wire.lines import Lines, TooLong
from mcp_memory.wire.methods import updates

if TYPE_CHECKING:
    from mcp_memory.wire.session import Session

CHUNK = 65_536
# A larger answer goes out in one piece if the pipe can be made as wide as this.
LARGE = 65_536
WIDE_PIPE = 1 << 20
# At the end, which should take a second at most: how long we go on reading what is there already, how long a long
# call may still take, how long after a signal what was read may write, and how long an answer is offered to a client
# that takes nothing of it.
DRAIN_SECONDS = 0.7
GRACE_SECONDS = 0.4
WRITING_SECONDS = 0.5
UNREAD_SECONDS = 0.3
LOOK_SECONDS = 0.05
# A thread that tidies up behind must not keep a waiting reader from the interpreter for Python's 5 ms.
SWITCH_SECONDS = 0.0005

Read = Callable[[], bytes]


def serve(session: Session, close: Callable[[], None] | None = None) -> int:
    """Serve one client until it is gone or a signal asks for the end; the result is the exit code.

    Meant to be the last thing a process does: signals stay caught while `close` and what follows tidy up."""
    sys.setswitchinterval(SWITCH_SECONDS)
    source, sink = _take_standard_streams()
    stop = StopSignals(sink)
    output = Output(sink, stop)
    session.offer.listeners.append(lambda writer: None if writer else output.send(updates(session, at_once=False)))
    try:
        with at(reading()):
            _talk(session, _reader(source, stop), output, stop)
        output.send(session.end())
    finally:
        session.offer.end()
        if close is not None:
            close()
        stop.give_back()
    return 0


def _take_standard_streams() -> tuple[int, int]:
    """Our own input and output. Whoever else prints now prints to stderr, and whoever reads finds nothing."""
    # First: where there is no stderr this becomes it, and no copy of the input can take its number.
    nowhere = os.open(os.devnull, os.O_RDWR)
    source, sink = os.dup(0), os.dup(1)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    if nowhere > 2:
        os.close(nowhere)
    for descriptor in (source, sink):
        if sys.platform == "win32":
            import msvcrt

            msvcrt.setmode(descriptor, os.O_BINARY)
        else:
            os.set_blocking(descriptor, True)
    return source, sink


def _talk(session: Session, read: Read, output: Output, stop: StopSignals) -> None:
    lines = Lines()
    worker: threading.Thread | None = None
    is_first = True
    while not output.is_gone:
        chunk = read()
        said: list[bytes] = []
        for line in lines.feed(chunk) if chunk else lines.end():
            if stop.is_asked and stop.seconds > WRITING_SECONDS:
                _write_no_more(session)
            said += session.refuse(line) if isinstance(line, TooLong) else session.receive(line)
            if session.errand_begun:
                output.send(said)
                said = []
                session.errand_begun = False
                worker = threading.Thread(target=session.work, args=(output.send,), name="errand")
                worker.start()
        output.send(said)
        if not chunk:
            break
        if is_first:
            is_first = False
            _prepare(session)
        else:
            session.offer.desk.space.catch_up()  # what the reply did not have to wait for
    if worker is not None:
        _end_work(session, worker, stop)


def _prepare(session: Session) -> None:
    """The first answer is out: set up now what the next one will need."""
    try:
        _ = session.offer.desk
    except Exception:
        return  # whoever needs it will be told why


def _end_work(session: Session, worker: threading.Thread, stop: StopSignals) -> None:
    """Let what waits in a thread come to its end, which it need not hurry to where nobody has sent a signal."""
    worker.join(max(GRACE_SECONDS - stop.seconds, 0))
    session.give_up()
    while worker.is_alive():
        worker.join(LOOK_SECONDS)
        if stop.seconds > WRITING_SECONDS:
            _write_no_more(session)


def _write_no_more(session: Session) -> None:
    """Time is over: what still comes is read and answered, but writes are refused and can be repeated."""
    with suppress(Exception):  # without a desk nothing writes
        session.offer.desk.space.is_ending = True


class Output:
    """Where answers go, whole lines at a time, from whichever thread has them.

    The thread that reads writes without a look, which costs nothing; a signal wakes it. Others look first whether
    somebody reads, because nothing would wake them."""

    def __init__(self, descriptor: int, stop: StopSignals | None = None) -> None:
        self.is_gone = False
        self._descriptor = descriptor
        self._stop = stop
        self._reader = threading.get_ident()
        self._lock = threading.Lock()
        self._is_wide = False

    def send(self, messages: list[bytes]) -> None:
        if not messages or self.is_gone:
            return
        # One system call for what is small; what is large is not copied only to append an end of line.
        pieces = [b"\n".join([*messages, b""])] if sum(map(len, messages)) < LARGE else _with_ends(messages)
        with self._lock:
            try:
                for piece in pieces:
                    self._write(piece)
            except OSError:
                self.is_gone = True  # nobody reads any more; what was asked has been done all the same

    def _write(self, data: bytes) -> None:
        if len(data) > LARGE and not self._is_wide:
            self._widen()
        written = self._put(data)
        if written < len(data):
            rest = memoryview(data)[written:]
            while rest:
                rest = rest[self._put(rest) :]

    def _put(self, data: bytes | memoryview) -> int:
        """Write some of it; how much that was."""
        stop = self._stop
        if stop is None or not stop.are_heard:
            return os.write(self._descriptor, data)
        if threading.get_ident() == self._reader:
            try:
                return os.write(self._descriptor, data)
            except BlockingIOError:
                pass  # the end was asked for while nobody read
        self._wait_for_a_reader(stop)
        return os.write(self._descriptor, data[: select.PIPE_BUF])  # so much never has to wait then

    def _wait_for_a_reader(self, stop: StopSignals) -> None:
        """Come back when somebody reads; give up on him some time after we were asked to end."""
        began = time.monotonic()
        room = select.poll()
        room.register(self._descriptor, select.POLLOUT)
        while not room.poll(1000 * LOOK_SECONDS):
            if stop.is_asked and min(stop.seconds, time.monotonic() - began) > UNREAD_SECONDS:
                raise TimeoutError

    def _widen(self) -> None:
        # 24 MB through a pipe of 64 KiB took 15 ms, through one of 1 MiB 9 ms.
        self._is_wide = True
        if sys.platform == "linux":
            import fcntl

            try:
                fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, WIDE_PIPE)
            except OSError:
                return  # no pipe, or no more than this for us


def _with_ends(messages: list[bytes]) -> list[bytes]:
    return [piece for message in messages for piece in (message, b"\n")]


# ── reading until somebody asks us to stop ───────────────────────────────────────────────────────


def _reader(descriptor: int, stop: StopSignals) -> Read:
    """How to read: b"" at the end of the input, or when a signal asked for the end and all is read."""
    return stop.waking(descriptor) if stop.are_heard else stop.raising(descriptor)


class Stop(BaseException):
    """Raised out of a blocking read by a signal."""


class StopSignals:
    """SIGTERM and SIGINT end the reading, never a call. A second one ends the process as it always did."""

    def __init__(self, sink: int) -> None:
        self.is_asked = False
        self._asked_at = 0.0
        self._is_reading = False
        self._sink = sink
        are_ours = threading.current_thread() is threading.main_thread()
        self.are_heard = are_ours and sys.platform != "win32"  # while we wait for something else, too
        if are_ours:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._asked)

    @property
    def seconds(self) -> float:
        """So long ago the end was asked for."""
        return time.monotonic() - self._asked_at if self.is_asked else 0.0

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self._asked_at = time.monotonic()
        self.is_asked = True
        if self.are_heard and not os.isatty(self._sink):  # others write to a terminal too
            os.set_blocking(self._sink, False)  # wakes a write that nobody reads
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)
        if self._is_reading:
            raise Stop

    def give_back(self) -> None:
        """Leave the output as it was: another process may hold it too."""
        if self.is_asked and self.are_heard:
            with suppress(OSError):
                os.set_blocking(self._sink, True)

    def raising(self, descriptor: int) -> Read:
        """Where a read cannot wait for two things: the handler breaks it off."""

        def read() -> bytes:
            try:
                self._is_reading = True
                chunk = b"" if self.is_asked else os.read(descriptor, CHUNK)
                self._is_reading = False
            except (Stop, OSError):
                return b""
            return chunk

        return read

    def waking(self, descriptor: int) -> Read:
        """A signal writes to a pipe that the reader watches too, so it cannot fall between two steps."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        both = select.poll()
        both.register(descriptor, select.POLLIN)
        both.register(woken, select.POLLIN)
        deadline = 0.0

        def read() -> bytes:
            nonlocal deadline
            ready = both.poll(0 if deadline else None)
            if self.is_asked and not deadline:
                deadline = self._asked_at + DRAIN_SECONDS
                both.unregister(woken)
                ready = both.poll(0)
            if deadline and (not ready or time.monotonic() > deadline):
                return b""
            try:
                return os.read(descriptor, CHUNK)
            except OSError:
                return b""

        return read
