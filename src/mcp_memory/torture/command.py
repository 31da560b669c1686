"""`mcp-memory torture`: what was asked for, done to each target in turn, and told."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from mcp_memory.settings import BadSetting, Request
from mcp_memory.torture.report import Progress, table, troubles
from mcp_memory.torture.score import Score
from mcp_memory.torture.siege import Plan, Siege
from mcp_memory.torture.targets import FAULTS, FILES, Ours, Peer, Target

NOBODY = "none"
LEAST_MINUTES, MINUTES_A_ROUND = 30.0, 0.5
CUT_SHORT = 3  # the exit code: nothing was wrong, but not all was done


def torture(
    request: Request,
    *,
    rounds: int = 50,
    processes: int = 3,
    calls: int = 12,
    stores: tuple[str, ...] = tuple(FILES),
    faults: tuple[str, ...] = FAULTS,
    seed: int | None = None,
    minutes: float | None = None,
    at_once: int | None = None,
    server: str = "",
    file_variable: str = "",
    file_name: str = "memory.json",
    json: bool = False,
) -> int:
    """Torture servers; 1 when one of them lost something, 3 when there was no time for all rounds."""
    chosen = random.SystemRandom().getrandbits(32) if seed is None else seed
    targets = _targets(request, stores, server, file_variable, file_name)
    unknown = [fault for fault in faults if fault not in FAULTS]
    if unknown or not targets:
        raise BadSetting(f"--faults knows {', '.join(FAULTS)}; somebody must be tortured: --stores or --server.")
    # Asked to end, it leaves no process and no file behind, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = tempfile.mkdtemp(prefix="mcp-memory-torture-")
    scores: list[Score] = []
    try:
        plan = Plan(rounds, processes, calls, faults)
        seconds = 60 * (max(LEAST_MINUTES, rounds * MINUTES_A_ROUND) if minutes is None else minutes)
        scores = _torture_all(targets, plan, folder, chosen, seconds, at_once or os.cpu_count() or 1)
    finally:
        if not any(score.evidence for score in scores):
            shutil.rmtree(folder, ignore_errors=True)
    if json:
        print(msgspec.json.encode({"seed": chosen, "targets": scores}).decode())
    else:
        print(table(scores))
        print(f"Seed {chosen}. --seed takes it; which process comes when is never quite the same.")
        for line in troubles(scores):
            print(line)
    if not all(score.faultless and score.rounds for score in scores):
        return 1
    return 0 if all(score.rounds >= rounds for score in scores) else CUT_SHORT


def _targets(
    request: Request, stores: tuple[str, ...], server: str, file_variable: str, file_name: str
) -> list[Target]:
    ours = [] if stores == (NOBODY,) else list(stores)
    for store in ours:
        if store not in FILES:
            raise BadSetting(f"There is no store {store!r}; --stores knows {', '.join(FILES)}, or {NOBODY}.")
    targets: list[Target] = [Ours(store, request.settings.durability) for store in ours]
    if server:
        if not file_variable and "{file}" not in server:
            raise BadSetting("Say how the server learns of its file: --file-variable NAME, or {file} in --server.")
        if file_name != os.path.basename(file_name) or not file_name:
            raise BadSetting("--file-name is the name of a file, not a path.")
        targets.append(Peer(server, file_variable, file_name))
    return targets


class Deadline:
    """When it is enough: at a time, or when somebody asks for the end."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._is_asked_for = threading.Event()

    def now(self) -> None:
        self._is_asked_for.set()

    def share(self, seconds: float) -> Callable[[], bool]:
        """Is it over, for who may take so long from now on?"""
        until = min(time.monotonic() + seconds, self._until)
        return lambda: self._is_asked_for.is_set() or time.monotonic() > until


def _torture_all(
    targets: list[Target], plan: Plan, folder: str, seed: int, seconds: float, at_once: int
) -> list[Score]:
    places = min(at_once, len(targets))
    deadline, progress = Deadline(seconds), Progress(plan.rounds)
    fair = seconds * places / len(targets)

    def torture_one(number: int, target: Target) -> Score:
        chance = random.Random(f"{seed} {number}")
        siege = Siege(target, plan, os.path.join(folder, f"{number}-{target.file}"), chance)
        return siege.run(deadline.share(fair), progress)

    with ThreadPoolExecutor(places) as threads:
        try:
            scores = [*threads.map(torture_one, range(len(targets)), targets)]
        finally:
            deadline.now()  # whoever is still at it finishes the round
            progress.end()
    for score in scores:
        if score.rounds < plan.rounds:
            print(f"{score.target}: stopped after {score.rounds} rounds; see --minutes.", file=sys.stderr)
    return scores
