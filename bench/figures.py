"""What a bench found: told line by line, and written as the tables of a page between its marks.

A goal that was missed decides something only where the machine was quiet, which a floor measured in the
same run tells: how long a look-up in a dictionary takes, and how much longer than its processor time."""

from __future__ import annotations

import os
import platform
import random
import statistics
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

# A look-up took 28 ns where the goals were set. Beyond this the machine is busy, or another kind of machine.
MOST_NANOSECONDS = 45.0
# Of the time on the wall more than this part again was somebody else's.
MOST_CROWDED = 1.05
LOOKUPS = 20_000

BEGIN, END = "<!-- figures: {} -->", "<!-- end of figures -->"


class Figure(NamedTuple):
    """Microseconds of one kind of call, and what they may be."""

    label: str
    p50: float
    best: float
    goal: float | None = None
    note: str = ""

    @property
    def is_missed(self) -> bool:
        return self.goal is not None and self.p50 > self.goal

    @property
    def ratio(self) -> str:
        return "" if self.goal is None else f"{self.goal / self.p50:.2f}"

    def __str__(self) -> str:
        against = "" if self.goal is None else f"goal {self.goal:9,.1f}   ratio {self.ratio:>8}   "
        said = "MISSED " if self.is_missed else ""
        return f"{self.label:40} p50 {self.p50:12,.2f} us   best {self.best:12,.2f}   {against:40}{said}{self.note}"


class Floor(NamedTuple):
    """What the machine gave while a bench ran."""

    nanoseconds: float  # of a look-up
    crowded: float  # time on the wall for each second of the processor

    @property
    def is_quiet(self) -> bool:
        return self.nanoseconds <= MOST_NANOSECONDS and self.crowded <= MOST_CROWDED

    def __str__(self) -> str:
        said = "quiet" if self.is_quiet else "not quiet: nothing is decided by what was missed"
        return f"a dictionary look-up took {self.nanoseconds:.0f} ns, at {self.crowded:.2f} of its own time; {said}"


def floor() -> Floor:
    """The median of half a second of look-ups."""
    rng = random.Random(1)
    known = {f"entity_{number}": number for number in range(40_000)}
    names = [f"entity_{rng.randrange(40_000)}" for _ in range(LOOKUPS)]
    took, crowded = [], []
    until = time.perf_counter() + 0.5
    while time.perf_counter() < until:
        wall, own = time.perf_counter_ns(), time.thread_time_ns()
        for name in names:
            known.get(name)
        wall, own = time.perf_counter_ns() - wall, time.thread_time_ns() - own
        took.append(wall / LOOKUPS)
        crowded.append(wall / own)
    return Floor(statistics.median(took), statistics.median(crowded))


def worse(one: Floor, other: Floor) -> Floor:
    return Floor(max(one.nanoseconds, other.nanoseconds), max(one.crowded, other.crowded))


def table(figures: list[Figure]) -> str:
    """As Markdown."""
    rows = ["| call | p50 µs | best µs | goal µs | times as fast | |", "|---|--:|--:|--:|--:|---|"]
    for each in figures:
        goal = "" if each.goal is None else f"{each.goal:,.1f}"
        note = " · ".join(filter(None, ("**missed**" if each.is_missed else "", each.note)))
        rows.append(f"| {each.label} | {each.p50:,.2f} | {each.best:,.2f} | {goal} | {each.ratio} | {note} |")
    return "\n".join(rows)


def provenance(command: str, ground: Floor) -> str:
    """When, where and how."""
    day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    machine = f"{_processor()}, {os.cpu_count()} processors, {platform.system()}, Python {platform.python_version()}"
    return f"{day}, `{command}`, on {machine}: {ground}."


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def write(page: Path, part: str, text: str) -> None:
    """Put a text between the marks of a part of a page, in place of what stood there."""
    whole = page.read_text(encoding="utf-8")
    head, begin, rest = whole.partition(BEGIN.format(part))
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{page} has no place for the figures of {part}: {BEGIN.format(part)} … {END}")
    page.write_text(f"{head}{begin}\n{text}\n{end}{tail}", encoding="utf-8")
