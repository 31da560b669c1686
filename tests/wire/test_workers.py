"""What is done beside the loop: each caller's calls take turns, and no caller waits for another's."""

from __future__ import annotations

import threading
from functools import partial

from mcp_memory.wire.workers import Workers
from tests.wire.network import PATIENCE


def seen(event: threading.Event) -> bool:
    return event.wait(PATIENCE)


def held(workers: Workers, lane: str | None) -> tuple[threading.Event, threading.Event]:
    """A job that has begun, and goes on until it may end."""
    begun, may_end = threading.Event(), threading.Event()

    def job() -> None:
        begun.set()
        may_end.wait(PATIENCE)

    workers.do(job, lane)
    return begun, may_end


def test_jobs_of_a_lane_are_done_one_after_the_other_in_order() -> None:
    workers, done = Workers(8), threading.Event()
    order: list[int] = []
    begun, may_end = held(workers, "greedy")
    assert seen(begun)
    for number in range(20):
        workers.do(partial(order.append, number), "greedy")
    workers.do(done.set, "greedy")

    assert workers.waiting == 21
    may_end.set()
    assert seen(done)
    assert order == list(range(20))
    assert workers.waiting == 0


def test_other_lanes_and_what_is_in_none_do_not_wait() -> None:
    workers = Workers(8)
    begun, may_end = held(workers, "greedy")
    assert seen(begun)
    for lane in ("modest", None):
        done = threading.Event()
        workers.do(done.set, lane)
        assert seen(done)
    may_end.set()


def test_whoever_waits_for_somebody_lets_the_next_of_its_lane_pass() -> None:
    workers, passed = Workers(8), threading.Event()

    def waits() -> None:
        workers.step_aside()
        passed.wait(PATIENCE)
        workers.step_aside()

    workers.do(waits, "one")
    workers.do(passed.set, "one")

    assert seen(passed)


def test_a_job_that_fails_does_not_hold_its_lane() -> None:
    workers, done = Workers(8), threading.Event()

    def fail() -> None:
        raise RuntimeError

    before, threading.excepthook = threading.excepthook, lambda _: None
    try:
        workers.do(fail, "one")
        workers.do(done.set, "one")
        assert seen(done)
    finally:
        threading.excepthook = before
