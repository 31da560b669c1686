"""What became of one target: counts, and the worst of it in words."""

from __future__ import annotations

import msgspec

SHOWN = 5


class Score(msgspec.Struct):
    target: str
    faults: list[str]
    has_doctor: bool
    rounds: int = 0
    kills: int = 0
    cuts: int = 0  # of the power
    asked: int = 0
    acknowledged: int = 0
    refused: int = 0
    unanswered: int = 0  # the process was killed first
    lost: int = 0
    doubled: int = 0  # there twice, or in part
    unreadable: int = 0
    findings: int = 0
    stuck: int = 0  # refusals and silence although nothing was wrong any more
    taken_back: int = 0  # by power cuts, as --durability normal allows
    oldest_taken_back: float = 0.0  # seconds between the acknowledgement and the cut
    struck: dict[str, int] = {}  # processes that a fault came to, each time it could
    seconds: float = 0.0
    examples: list[str] = []
    evidence: list[str] = []

    @property
    def faultless(self) -> bool:
        return not (self.lost or self.doubled or self.unreadable or self.findings or self.stuck)

    def told_faults(self) -> str:
        """Each with how often it came to something, where that is known."""
        counts = {"kill": self.kills, "power": self.cuts, **self.struck}
        return " ".join(f"{fault} {counts[fault]}" if counts.get(fault) else fault for fault in self.faults)

    def show(self, text: str) -> None:
        if len(self.examples) < SHOWN:
            self.examples.append(text)
