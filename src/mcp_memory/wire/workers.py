"""Threads for calls that would keep the loop waiting: made when needed, kept, no obstacle to the end.

The law: what one caller has done in its lane takes turns, so that however much it asks for, another caller waits
for one of those calls, and not for all of them. They look at the same graph one after the other anyhow."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from queue import SimpleQueue

Job = Callable[[], None]


class Lane:
    """The jobs of one caller."""

    def __init__(self) -> None:
        self.is_busy = False
        self.waiting: deque[Job] = deque()


class Workers:
    """At most so many threads, and what waits for one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._idle = 0
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._lanes: dict[Hashable, Lane] = {}
        self._here = threading.local()

    def do(self, job: Job, lane: Hashable = None) -> None:
        """Have this done; in a lane, when its turn comes."""
        if lane is not None:
            with self._lock:
                its = self._lanes.setdefault(lane, Lane())
                if its.is_busy:
                    its.waiting.append(job)
                    return
                its.is_busy = True
            job = partial(self._do_in_lane, lane, job)
        self._begin(job)

    def _begin(self, job: Job) -> None:
        with self._lock:
            is_new = not self._idle and self._count < self._most
            self._count += is_new
            self._idle -= not is_new
        self._jobs.put(job)
        if is_new:
            threading.Thread(target=self._work, name="worker", daemon=True).start()

    def step_aside(self) -> None:
        """The job of this thread waits for somebody else: the next of its lane may begin."""
        lane = getattr(self._here, "lane", None)
        if lane is None:
            return
        self._here.lane = None
        with self._lock:
            waiting = self._lanes[lane].waiting
            if not waiting:
                del self._lanes[lane]
                return
            job = waiting.popleft()
        self._begin(partial(self._do_in_lane, lane, job))

    @property
    def waiting(self) -> int:
        with self._lock:
            return self._jobs.qsize() + sum(len(lane.waiting) for lane in self._lanes.values())

    @property
    def busy(self) -> int:
        return self._count - max(self._idle, 0)

    def _do_in_lane(self, lane: Hashable, job: Job) -> None:
        self._here.lane = lane
        try:
            job()
        finally:
            self.step_aside()

    def _work(self) -> None:
        while True:
            self._jobs.get()()
            with self._lock:
                self._idle += 1
