"""Rounds of torture for one target: ask much at once, let something happen, and look at what is left.

A memory file is tortured for some rounds, then the next one is begun; so a round stays short. The law of a
look: what was acknowledged is there, what was not is not there twice, and the doctor finds nothing. After a power
cut under `normal` something may be missing: the last of it, in order, and nothing old."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from mcp_memory.torture.client import Server
from mcp_memory.torture.deeds import HUB, Census, Deed, deeds, entity
from mcp_memory.torture.promises import SILENT, Kept, Promises
from mcp_memory.torture.score import Score
from mcp_memory.torture.targets import KILL, POWER, Place, Target
from mcp_memory.torture.weather import CLOCK, FAILING, FULL, SLOW, Weather, strokes

ROUNDS_OF_A_FILE = 20
# The documented window of `normal`, to which comes what the longest flush took, and how long a machine that has no time
# for us may keep a thread waiting that has to begin one.
WINDOW_SECONDS = 1.0
LATE_SECONDS = 4.0
# So often a power cut comes after writing that went on for longer than that.
LONG_STORMS = 0.25
MOST_EVIDENCE = 3
YEAR = 365 * 86_400
SLOWEST = 0.004  # seconds; a write of ours is a few touches of the disk
FAILURES = 0.15


class Plan(msgspec.Struct, frozen=True):
    """How much of it."""

    rounds: int
    processes: int
    calls: int
    faults: tuple[str, ...]


class Siege:
    """One target in its folder. `close` kills what it started."""

    def __init__(self, target: Target, plan: Plan, folder: str, chance: random.Random) -> None:
        self.target = target
        self.plan = plan
        self.faults = [fault for fault in plan.faults if fault in target.faults]
        self.score = Score(target.name, self.faults, target.has_doctor)
        self._folder = folder
        self._chance = chance
        self._files = 0
        self._servers: dict[int, Server] = {}
        self._said: list[str] = []  # by the servers of this file, until they ended
        self._place: Place | None = None
        self._flushed_for = 0.0  # the longest that a flush took before the last power cut

    def run(self, is_over: Callable[[], bool], tell: Callable[[Score], None]) -> Score:
        """All rounds, or as many as there is time for."""
        began = time.monotonic()
        try:
            while self.score.rounds < self.plan.rounds and not is_over():
                left = min(ROUNDS_OF_A_FILE, self.plan.rounds - self.score.rounds)
                self._torture_a_file(left, is_over, tell)
        finally:
            self.close()
            self.score.seconds = round(time.monotonic() - began, 1)
        return self.score

    def close(self) -> None:
        for who in [*self._servers]:
            self._kill(who)

    def _kill(self, who: int) -> None:
        server = self._servers.pop(who)
        server.kill()
        self._said.append(server.stderr())

    # ── one file ─────────────────────────────────────────────────────────────────────────────────

    def _torture_a_file(self, rounds: int, is_over: Callable[[], bool], tell: Callable[[Score], None]) -> None:
        self._files += 1
        self._place = place = Place(os.path.join(self._folder, f"file-{self._files}"), self.target.file)
        # What is flushed is copied at each flush, so every other file goes without.
        if POWER in self.faults and self._files % 2:
            place.begin_platter()
        self._promises = Promises()
        self._said = []
        self._streams = [deeds(str(who), self.target.is_ours) for who in range(self.plan.processes)]
        self._calm = self._deeds_of_calm()
        self._start_missing()
        self.target.meet(self._servers[0])
        self.score.target = self.target.name
        self._promises.ask(self._servers[0], entity(HUB))
        self._promises.collect()
        goes_on = True
        for _ in range(rounds):
            if is_over() or not goes_on:
                break
            goes_on = self._round(place)
            self.score.rounds += 1
            tell(self.score)
        self._end_file(place, goes_on)

    def _end_file(self, place: Place, goes_on: bool) -> None:
        """Hang up, look once more, and let the folder go."""
        for server in self._servers.values():
            server.close()
            self._said.append(server.stderr())
        self._servers.clear()
        if goes_on:
            self._look(place)
        for fault, count in strokes(place.weather).items():
            self.score.struck[fault] = self.score.struck.get(fault, 0) + count
        counts = self._promises.counts
        self.score.acknowledged += self._promises.acknowledged_ever
        self.score.refused += counts["refused"]
        self.score.unanswered += counts["gone"]
        self.score.asked += self._promises.acknowledged_ever + sum(counts.values())
        shutil.rmtree(place.folder, ignore_errors=True)

    def _keep_evidence(self, place: Place, wrong: list[str]) -> None:
        """Everything as it is now, for who wants to find out why. The first times only."""
        if len(self.score.evidence) >= MOST_EVIDENCE:
            return
        kept = f"{place.folder}-after-round-{self.score.rounds + 1}"
        self.score.evidence.append(kept)
        with suppress(OSError):  # what a living process locks (Windows)
            shutil.copytree(place.folder, kept, dirs_exist_ok=True)
        texts = [*self._said, *(server.stderr() for server in self._servers.values())]
        said = [f"── said by a process\n{text}" for text in texts]
        with open(os.path.join(kept, "what.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join([*wrong, *said, ""]))

    def _start_missing(self) -> None:
        assert self._place is not None
        for who in range(self.plan.processes):
            if who not in self._servers:
                self._servers[who] = self.target.start(self._place, self._chance.getrandbits(32))

    @staticmethod
    def _deeds_of_calm() -> Iterator[Deed]:
        number = 0
        while True:
            number += 1
            yield entity(f"calm-{number}", f"after storm {number}")

    # ── one round ────────────────────────────────────────────────────────────────────────────────

    def _round(self, place: Place) -> bool:
        chance = self._chance
        is_cut = place.platter is not None and chance.random() < 0.5
        before = list(self._servers.values())
        self._ask_all(self.plan.calls // 2)
        self.target.set_weather(place, before, self._forecast(is_cut))
        if self.target.is_ours and chance.random() < 0.5:
            chance.choice(before).send("compact")  # it promises nothing, and must cost nothing
        self._ask_all(self.plan.calls - self.plan.calls // 2)
        if is_cut and not self.target.is_strict and chance.random() < LONG_STORMS:
            self._go_on_for(WINDOW_SECONDS + LATE_SECONDS + 1)
        else:
            self._wait_for_some_moment()
        victims = self._victims(is_cut)
        for who in victims:
            self._kill(who)
        cut_at = time.monotonic()
        self.score.kills += len(victims)
        self.target.set_weather(place, self._servers.values(), Weather())
        silent = self._promises.counts[SILENT]
        self._promises.collect()
        if self._promises.counts[SILENT] > silent:
            self.score.stuck += 1
            self._tell(place, ["a server that was not killed did not answer"])
            self.close()
            return False
        if is_cut:
            assert place.platter is not None
            self._flushed_for = place.platter.longest_flush(cut_at)
            cut(place, self._chance)
            self.score.cuts += 1
        if not self._look(place, cut_at if is_cut else None):
            return False
        self._start_missing()
        return self._works_again(place)

    def _ask_all(self, calls: int) -> None:
        for _ in range(calls):
            for who, server in self._servers.items():
                self._promises.ask(server, next(self._streams[who]))

    def _go_on_for(self, seconds: float) -> None:
        """Write without a quiet moment for longer than what was acknowledged may wait for the disk."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._ask_all(1)
            time.sleep(0.02)

    def _forecast(self, is_cut: bool) -> Weather:
        chance = self._chance
        trouble = [fault for fault in (FULL, FAILING, None) if fault is None or fault in self.faults]
        now = None if is_cut else chance.choice(trouble)
        return Weather(
            full=now == FULL,
            failing=FAILURES if now == FAILING else 0.0,
            slow=SLOWEST if SLOW in self.faults and chance.random() < 0.5 else 0.0,
            clock=chance.randint(-20, 20) * YEAR + chance.randint(-5000, 5000) if CLOCK in self.faults else 0,
        )

    def _wait_for_some_moment(self) -> None:
        """At once, in the middle of the writes, or after them, when projections begin."""
        chance = self._chance
        server = self._servers[chance.choice([*self._servers])]
        match chance.randrange(3):
            case 0:
                time.sleep(chance.random() * 0.01)
            case 1:
                self._promises.wait_for(server, chance.randint(1, self.plan.calls))
            case _:
                self._promises.wait_for(server, self.plan.calls)
                time.sleep(0.03 + chance.random() * 0.05)

    def _victims(self, is_cut: bool) -> list[int]:
        everybody = [*self._servers]
        if is_cut:
            return everybody
        if KILL not in self.faults:
            return []
        return self._chance.sample(everybody, self._chance.choice((1, 1, 1, 2, len(everybody))) % (len(everybody) + 1))

    # ── looking ──────────────────────────────────────────────────────────────────────────────────

    def _look(self, place: Place, cut_at: float | None = None) -> bool:
        """Is everything there? Counts what is not; False when nothing more can be learned from this file."""
        score, look = self.score, self.target.look(place)
        if look.census is None:
            gone = len(self._promises.kept)
            score.unreadable += 1
            score.lost += gone
            self._tell(place, [f"not readable, with {gone} acknowledged writes in it: {look.trouble}"])
            return False
        verdict = self._promises.verdict(look.census)
        lost = verdict.lost if cut_at is None else self._not_allowed(verdict.lost, cut_at, look.census)
        score.lost += len(lost)
        score.doubled += len(verdict.twice)
        score.findings += len(look.findings)
        wrong = [f"lost: {one.deed.what}" for one in lost]
        wrong += [f"twice or in part: {deed.what}" for deed in verdict.twice]
        wrong += [f"the doctor: {finding}" for finding in look.findings]
        self._tell(place, wrong)
        return not look.findings

    def _tell(self, place: Place, wrong: list[str]) -> None:
        for text in wrong:
            self.score.show(text)
        if wrong:
            self._keep_evidence(place, wrong)

    def _not_allowed(self, lost: list[Kept], cut_at: float, census: Census) -> list[Kept]:
        """Of what a power cut took: what it may not take."""
        if self.target.is_strict:
            return lost
        window = WINDOW_SECONDS + LATE_SECONDS + self._flushed_for
        newest = self._promises.newest_survivor(census)
        wrong = []
        for one in lost:
            age = cut_at - one.acknowledged_at
            if age > window or one.acknowledged_at < newest:
                wrong.append(one)
            else:
                self.score.taken_back += 1
                self.score.oldest_taken_back = max(self.score.oldest_taken_back, round(age, 3))
        return wrong

    def _works_again(self, place: Place) -> bool:
        """Nothing is wrong any more: does every process do its work again?"""
        refused = []
        for server in self._servers.values():
            before = self._promises.acknowledged_ever
            self._promises.ask(server, next(self._calm))
            self._promises.collect()
            if self._promises.acknowledged_ever == before:
                refused.append(f"refused although nothing was wrong any more: {server.last_refusal}")
        self.score.stuck += len(refused)
        self._tell(place, refused)
        return not refused


def cut(place: Place, chance: random.Random) -> None:
    """The power failed, and every process is dead: what stands in the folder is what the disk has."""
    assert place.platter is not None
    files = place.platter.after_the_cut(chance)
    before = sum(name.startswith("before-cut") for name in os.listdir(place.folder))
    os.rename(place.memory, os.path.join(place.folder, f"before-cut-{before + 1}"))
    os.mkdir(place.memory)
    for name, content in files.items():
        with open(os.path.join(place.memory, name), "wb") as file:
            file.write(content)
    place.begin_platter()
