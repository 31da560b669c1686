"""The official conformance suite against our servers: run, read, and told as a page.

`python -m tests.conformance.suite` writes docs/conformance.md from a fresh run; `test_conformance.py` makes
the same run and compares."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.peers import NPM, npm_folder, script
from tests.wire.network import Server, running

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "conformance.md"
REVISIONS = ("2025-11-25", "2026-07-28")
SKILLS = ("sep-2640-skills-enumeration", "sep-2640-skills-manifest")
SERVERS = ("memory", "fixture")
PATIENCE = 120.0
NEVER_SCORED = re.compile(r"^ {2}- scenario: (\S+)\n {4}leg: server", re.MULTILINE)
FAILED = ("FAILURE", "WARNING")


class Run(NamedTuple):
    """What one run of the suite told: the counts of each scenario, and how it ended."""

    code: int
    said: str
    counts: dict[str, tuple[int, int]]  # passed and failed checks, by scenario


def everything() -> dict[tuple[str, str], Run]:
    """Every run, by server and revision; the skills' scenarios belong to no revision."""
    npm_folder()  # not installed by several threads at once
    with ExitStack() as stack, ThreadPoolExecutor(6) as pool:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        memory = Server("-m", "mcp_memory", "-f", str(folder / "memory.db"), "--transport", "http")
        fixture = Server("-m", "tests.conformance.fixture")
        servers = {"memory": stack.enter_context(running(memory)), "fixture": stack.enter_context(running(fixture))}
        wanted = {(name, revision): ["--requirements", revision] for name in SERVERS for revision in REVISIONS}
        wanted |= {
            ("memory", name): ["--scenario", name, "--spec-version", REVISIONS[-1], "--force"] for name in SKILLS
        }
        begun = {
            (name, what): pool.submit(run, servers[name], HERE / f"{name}.yml", folder / f"{name}-{what}", options)
            for (name, what), options in wanted.items()
        }
        return {place: each.result() for place, each in begun.items()}


def run(server: Server, baseline: Path, results: Path, options: list[str]) -> Run:
    """Let the suite ask a server; what may fail stands in the baseline."""
    command = [*script("@modelcontextprotocol/conformance", "dist/index.js"), "server"]
    command += ["--url", f"http://127.0.0.1:{server.port}/mcp", *options, "-o", str(results)]
    if "--requirements" in options:
        command += ["--expected-failures", str(baseline)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=PATIENCE, cwd=results.parent
    )
    counts = {}
    for file in sorted(results.glob("*/checks.json")):
        found = re.match(r"server-(.+)-\d{4}-\d\d-\d\dT", file.parent.name)
        assert found, file
        said = [check["status"] for check in json.loads(file.read_text(encoding="utf-8"))]
        counts[found[1]] = (said.count("SUCCESS"), sum(map(said.count, FAILED)))
    return Run(done.returncode, done.stdout.decode(errors="replace"), counts)


# ── what it requires ─────────────────────────────────────────────────────────────────────────────


def never_scored(revision: str) -> set[str]:
    """Scenarios that the suite runs with a revision and does not count."""
    package = npm_folder() / "node_modules/@modelcontextprotocol/conformance"
    text = (package / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8")
    return set(NEVER_SCORED.findall(text))


def excepted(server: str) -> set[str]:
    """Scenarios that a server's baseline names."""
    text = (HERE / f"{server}.yml").read_text(encoding="utf-8")
    return {entry.partition(":")[0] for entry in re.findall(r"^ {2}- (\S+)", text, re.MULTILINE)}


# ── the page ─────────────────────────────────────────────────────────────────────────────────────


def page(runs: dict[tuple[str, str], Run]) -> str:
    version = json.loads((NPM / "package.json").read_text(encoding="utf-8"))["dependencies"][
        "@modelcontextprotocol/conformance"
    ]
    return "\n".join([HEAD.format(version=version), *_tables(runs), ""])


def _tables(runs: dict[tuple[str, str], Run]) -> Iterator[str]:
    for revision in REVISIONS:
        memory, fixture = (runs[name, revision].counts for name in SERVERS)
        unscored = never_scored(revision)
        scored = [name for name in fixture if name not in unscored]
        yield f"## {revision}"
        yield ""
        yield f"Scored, fixture: {_sum(fixture, scored)}. Scored, memory: {_sum(memory, scored)}."
        yield ""
        yield from _table(scored, memory, fixture)
        yield ""
        yield "Run with it and never scored:"
        yield ""
        yield from _table([name for name in fixture if name in unscored], memory, fixture)
        yield ""
    yield "## Skills"
    yield ""
    yield "The Skills extension belongs to no revision; its scenarios are run against the memory server."
    yield ""
    yield "| Scenario | memory |"
    yield "|---|---|"
    for name in SKILLS:
        yield f"| {name} | {_cell(runs['memory', name].counts[name])} |"


def _table(names: list[str], memory: dict[str, tuple[int, int]], fixture: dict[str, tuple[int, int]]) -> Iterator[str]:
    needs = excepted("memory")
    yield "| Scenario | memory | fixture |"
    yield "|---|---|---|"
    for name in sorted(names):
        about = f" {NEEDS}" if name in needs and not name.startswith("tasks-") else ""
        yield f"| {name} | {_cell(memory[name])}{about} | {_cell(fixture[name])} |"


def _cell(counts: tuple[int, int]) -> str:
    passed, failed = counts
    if not passed and not failed:
        return "did not apply"
    return f"{passed} passed" + (f", {failed} failed" if failed else "")


def _sum(counts: dict[str, tuple[int, int]], names: list[str]) -> str:
    return _cell((sum(counts[name][0] for name in names), sum(counts[name][1] for name in names)))


NEEDS = "(asks for the fixture)"
HEAD = """# Conformance

Written by `python -m tests.conformance.suite` from a run of the official conformance suite
(`@modelcontextprotocol/conformance` {version}); a test makes the same run and compares. Change the code, not this page.

Two servers are asked over HTTP. **memory** is the server that people use. **fixture** is the same wire (sessions,
streams, questions, sealed state, headers) under the tools, prompts and resources that the suite invents, which are in
`tests/conformance/fixture.py`. Numbers are checks; a scenario whose checks found nothing to look at did not apply.

What the memory server fails asks for something of the fixture, and stands by name in `tests/conformance/memory.yml`;
what the fixture fails is never scored, and stands in `tests/conformance/fixture.yml`. The suite fails when an entry of
these files passes after all. Where the memory server passes a check of a scenario that asks for the fixture, its
refusal of what it does not know was right for that check.
"""


if __name__ == "__main__":
    PAGE.write_text(page(everything()), encoding="utf-8")
