"""`mcp-memory metrics` and `mcp-memory tune`: how well searches served, and what would have served better."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_memory.search import metrics as measures
from mcp_memory.search import tuner
from mcp_memory.search.limbic import constants_in
from mcp_memory.settings import BadSetting

if TYPE_CHECKING:
    from mcp_memory.search.limbic import Constants
    from mcp_memory.search.trials import Trial
    from mcp_memory.settings import Request, Settings
    from mcp_memory.stores.usage import KeptUsage

SHOWN_CELLS = 5
NO_FEEDBACK = "No logged search was followed by use of something it found, so there is nothing to compare yet."


def metrics(request: Request, *, json: bool = False, cuts: tuple[int, ...] = measures.DEFAULT_CUTS) -> int:
    """Print how good the order was that searches answered, beside that of relevance alone."""
    with _usage(request.settings) as usage:
        report = measures.report(usage.trials(request.settings.query_log), cuts)
    if json:
        _print_json(report)
        return 0
    arms = report["events_by_arm"]
    print(f"Searches logged: {report['events']:,} ({arms['limbic']:,} limbic, {arms['baseline']:,} baseline arm)")
    print(f"Searches after which something found was used: {report['events_with_feedback']:,}")
    print("\n".join(_compared(report["metrics"])) if report["events_with_feedback"] else NO_FEEDBACK)
    return 0


def _compared(rows: dict[str, dict[str, float]]) -> Iterator[str]:
    yield f"\n  {'':<14}{'limbic':>10}{'baseline':>10}{'difference':>12}   95 of 100"
    for name, row in rows.items():
        head = f"  {name:<14}{row['limbic']:>10.4f}{row['baseline']:>10.4f}{row['difference']:>+12.4f}"
        yield f"{head}   {row['low']:+.4f} … {row['high']:+.4f}"


def tune(
    request: Request,
    *,
    analyze: bool = False,
    tune: bool = False,
    simulate: bool = False,
    set_gamma: float | None = None,
    set_beta: float | None = None,
    gamma_range: tuple[float, ...] = tuner.GAMMAS,
    beta_sal_range: tuple[float, ...] = tuner.BETAS,
    blend: float = tuner.BLEND,
    min_events: int = tuner.MIN_EVENTS,
    json: bool = False,
) -> int:
    """Do the one thing that is asked for; look at the log, if nothing is."""
    chosen = {"gamma": set_gamma, "beta_sal": set_beta}
    values = {name: value for name, value in chosen.items() if value is not None}
    if analyze + tune + simulate + bool(values) > 1:
        raise BadSetting("--analyze, --tune, --simulate and --set-… are different things to do; ask for one of them.")
    if simulate:
        return _simulate(json)
    if (tune or values) and request.settings.read_only:
        raise BadSetting("With --read-only nothing is tuned; --analyze says what would be.")
    with _usage(request.settings) as usage:
        constants = constants_in(usage.constants())
        said: dict[str, Any]
        if values:
            usage.tune(values)
            said = {"status": "set", "before": _weights(constants), "now": {**_weights(constants), **values}}
        else:
            trials = usage.trials(request.settings.query_log)
            said = _analysis(trials, constants, gamma_range, beta_sal_range, min_events, blend)
            if tune and said["proposal"]:
                usage.tune(said["proposal"])
                said["status"] = "tuned"
    _print_json(said) if json else print("\n".join(_told(said, blend)))
    return 0


def _weights(constants: Constants) -> dict[str, float]:
    return {"gamma": constants.gamma, "beta_sal": constants.beta_sal}


def _analysis(
    trials: list[Trial],
    constants: Constants,
    gammas: tuple[float, ...],
    betas: tuple[float, ...],
    min_events: int,
    blend: float,
) -> dict[str, Any]:
    finding = tuner.analyse(trials, constants, gammas, betas, min_events)
    return {
        "status": "ok" if finding.status == "found" else finding.status,
        "why": finding.why,
        "events": len(trials),
        "events_with_feedback": finding.events,
        "present": msgspec.to_builtins(finding.present),
        "best": msgspec.to_builtins(finding.best),
        "cells": msgspec.to_builtins(finding.cells),
        "proposal": tuner.proposal(finding, blend),
    }


def _told(said: dict[str, Any], blend: float) -> Iterator[str]:
    if said["status"] == "set":
        yield from (f"{name} {old:g} -> {said['now'][name]:g}" for name, old in said["before"].items())
        yield "Running servers rank by this from their next search on."
        return
    yield f"Searches logged: {said['events']:,}; something found was used after {said['events_with_feedback']:,}."
    for number, cell in enumerate(said["cells"][:SHOWN_CELLS]):
        if not number:
            yield f"\n  {'gamma':>8}{'beta_sal':>10}{f'nDCG@{tuner.CUT}':>10}"
        yield f"  {cell['gamma']:>8g}{cell['beta_sal']:>10g}{cell['ndcg']:>10.4f}"
    present, best = said["present"], said["best"]
    if said["cells"]:
        yield f"  {present['gamma']:>8g}{present['beta_sal']:>10g}{present['ndcg']:>10.4f}  at present\n"
    if not said["proposal"]:
        yield f"Nothing is moved: {said['why']}"
        return
    yield f"Best: gamma {best['gamma']:g}, beta_sal {best['beta_sal']:g}. {said['why']}"
    moves = ", ".join(f"{name} {present[name]:g} -> {value:g}" for name, value in said["proposal"].items())
    way = f"{blend:.0%} of the way (--blend)"
    is_done = said["status"] == "tuned"
    yield f"{'Moved' if is_done else 'mcp-memory tune --tune would move'} {way}: {moves}."
    if is_done:
        yield "Running servers rank by this from their next search on."


def _simulate(json: bool) -> int:
    said = tuner.simulate()
    if json:
        _print_json(said)
    else:
        print(f"{said['events']:,} simulated searches for each pair of weights that people are made to choose by:")
        print(f"\n  {'planted':<24}{'found':<24}nDCG@{tuner.CUT} at standard weights -> found")
        for run in said["runs"]:
            planted, found = (f"gamma {w['gamma']:g}, beta {w['beta_sal']:g}" for w in (run["planted"], run["found"]))
            mark = "" if run["is_found"] else "   not the same"
            print(f"  {planted:<24}{found:<24}{run['ndcg_before']:.4f} -> {run['ndcg_found']:.4f}{mark}")
        noise = said["noise"]
        print(f"\n{'All were found.' if said['all_found'] else 'Not all were found.'}", end=" ")
        print(
            f"Where people open anything at all, weights would have moved in {noise['moved']} of {noise['logs']} logs."
        )
    return 0 if said["all_found"] and said["noise"]["moved"] <= 1 else 1


@contextmanager
def _usage(settings: Settings) -> Iterator[KeptUsage]:
    """What is kept of the usage of the memory that these settings name."""
    from mcp_memory.assembly import store_for
    from mcp_memory.stores.usage import usage_of

    if not os.path.exists(settings.path):
        raise BadSetting(f"There is no memory file {settings.path} yet. Say which one with --memory-file.")
    store = store_for(settings.path)
    try:
        yield usage_of(store)
    finally:
        store.close()


def _print_json(said: dict[str, Any]) -> None:
    print(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())
