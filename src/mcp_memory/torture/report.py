"""The table at the end, for a person: what was done to whom, and what became of it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from mcp_memory.torture.score import Score

EVERY_SECONDS = 10.0
NONE = "-"

ROWS: tuple[tuple[str, Callable[[Score], object]], ...] = (
    ("rounds", lambda score: score.rounds),
    ("processes killed", lambda score: score.kills),
    ("power cuts", lambda score: score.cuts if "power" in score.faults else NONE),
    ("calls", lambda score: score.asked),
    ("acknowledged writes", lambda score: score.acknowledged),
    ("refused calls", lambda score: score.refused),
    ("calls of killed processes", lambda score: score.unanswered),
    ("lost writes", lambda score: score.lost),
    ("written twice or in part", lambda score: score.doubled),
    ("unreadable files", lambda score: score.unreadable),
    ("doctor findings", lambda score: score.findings if score.has_doctor else NONE),
    ("stuck when all was well again", lambda score: score.stuck),
    ("taken back by power cuts, as allowed", lambda score: score.taken_back if "power" in score.faults else NONE),
    ("oldest of those, in seconds", lambda score: score.oldest_taken_back if score.taken_back else NONE),
    ("seconds", lambda score: f"{score.seconds:.0f}"),
)


def table(scores: list[Score]) -> str:
    """Rows of what was counted, a column for each target; a Markdown table that is readable as it is."""
    head = ["", *(score.target for score in scores)]
    rows = [[name, *(_told(of(score)) for score in scores)] for name, of in ROWS]
    rows.append(["faults that came", *(score.told_faults() for score in scores)])
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    rule = [f"{'-' * widths[0]}", *(f"{'-' * (width - 1)}:" for width in widths[1:])]
    return "\n".join(_line(row, widths) for row in [head, rule, *rows])


def _told(count: object) -> str:
    return f"{count:,}" if isinstance(count, int) else str(count)


def _line(row: list[str], widths: list[int]) -> str:
    cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
    return f"| {' | '.join(cells)} |"


def troubles(scores: list[Score]) -> list[str]:
    """What was wrong, in words, and where the evidence is."""
    lines = []
    for score in scores:
        if score.faultless:
            continue
        lines.append(f"{score.target}:")
        lines += [f"  {example}" for example in score.examples]
        lines += [f"  kept to be looked at: {folder}" for folder in score.evidence]
    return lines


class Progress:
    """How far all are: a line that changes where somebody looks on, one now and then elsewhere."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._is_terminal = sys.stderr.isatty()
        self._told_at = time.monotonic()
        self._lock = threading.Lock()
        self._scores: dict[int, Score] = {}

    def __call__(self, score: Score) -> None:
        with self._lock:
            self._scores[id(score)] = score
            now = time.monotonic()
            if self._is_terminal or now - self._told_at >= EVERY_SECONDS:
                self._told_at = now
                self._tell()

    def _tell(self) -> None:
        each = (
            f"{one.target} {one.rounds}" + (f" ({one.lost} lost)" if one.lost else "") for one in self._scores.values()
        )
        text = f"Rounds, of {self._rounds}: {', '.join(each)}"
        if self._is_terminal:
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
