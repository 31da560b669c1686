"""What is counted while serving, in the text form of Prometheus.

The law: labels are words of ours (names of tools, outcomes, statuses). Nothing a user or a client wrote is
counted by its name, so nothing of it can be read here."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# Upper bounds of the histogram, in seconds: from a read in memory to a long import.
BOUNDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
OK, ERROR = "ok", "error"


class Meters:
    """Calls by tool and outcome, how long they took, and answers by HTTP status."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # workers count too
        self._calls: Counter[tuple[str, str]] = Counter()
        self._times: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self.refusals: Counter[str] = Counter()  # by reason; only the loop counts here

    def called(self, tool: str, seconds: float, is_error: bool) -> None:
        with self._lock:
            self._calls[tool, ERROR if is_error else OK] += 1
            if tool not in self._times:
                self._times[tool], self._seconds[tool] = [0] * (len(BOUNDS) + 1), 0.0
            self._times[tool][bisect_left(BOUNDS, seconds)] += 1
            self._seconds[tool] += seconds

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> bytes:
        """Everything, and these measures of the moment: name, what it is, how much."""
        lines: list[str] = []
        with self._lock:
            lines += self._call_lines()
            lines += self._time_lines()
        lines += _head("refused_total", "counter", "Requests that were refused, by reason.")
        lines += [f'mcp_memory_refused_total{{reason="{why}"}} {count}' for why, count in sorted(self.refusals.items())]
        for name, (about, value) in gauges.items():
            lines += _head(name, "gauge", about)
            lines.append(f"mcp_memory_{name} {value:g}" if value % 1 else f"mcp_memory_{name} {int(value)}")
        return ("\n".join(lines) + "\n").encode()

    def _call_lines(self) -> Iterator[str]:
        yield from _head("calls_total", "counter", "Calls of tools, by tool and outcome.")
        for (tool, outcome), count in sorted(self._calls.items()):
            yield f'mcp_memory_calls_total{{tool="{tool}",outcome="{outcome}"}} {count}'

    def _time_lines(self) -> Iterator[str]:
        yield from _head("call_seconds", "histogram", "How long calls of tools took inside the server.")
        for tool, counts in sorted(self._times.items()):
            total = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                total += count
                yield f'mcp_memory_call_seconds_bucket{{tool="{tool}",le="{bound}"}} {total}'
            yield f'mcp_memory_call_seconds_sum{{tool="{tool}"}} {self._seconds[tool]:.6f}'
            yield f'mcp_memory_call_seconds_count{{tool="{tool}"}} {total}'


def _head(name: str, kind: str, about: str) -> Iterable[str]:
    return (f"# HELP mcp_memory_{name} {about}", f"# TYPE mcp_memory_{name} {kind}")
