"""One suite of behaviours over every store: bytes into the desk, bytes out, and a check-up at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcp_memory.assembly import open_space
from mcp_memory.desk import Desk
from mcp_memory.facts import Limits
from mcp_memory.space import Space
from mcp_memory.tools.catalog import catalog
from tests.alone import pytest_runtest_protocol

__all__ = ["pytest_runtest_protocol"]  # a hook: pytest finds it here

# What a test has to tell a person, by `record_property`: printed when all tests are done, whichever process ran it.
FIGURES = "figures"
Recorder = Callable[[str, object], None]
STORES = ("memory.db", "memory.jsonl", "memory.mcpmem")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, said in getattr(report, "user_properties", ()):
                if name == FIGURES and getattr(report, "when", "") == "call":
                    terminalreporter.write_line("")
                    terminalreporter.write(str(said))


class Refused(Exception):
    """A tool answered with an error; the text is what the client reads."""


class Caller:
    """Calls tools as a client does: JSON in, JSON out."""

    def __init__(self, space: Space, profile: str = "full") -> None:
        self.space = space
        self.desk = Desk(space, catalog(profile), Limits())

    def __call__(self, tool: str, /, **arguments: Any) -> Any:
        answer = self.desk.call(self.desk.tools[tool], msgspec.json.encode(arguments), origin="test")
        if answer.is_error:
            assert answer.structured is None
            raise Refused(msgspec.json.decode(answer.text or "")["error"])
        assert answer.structured is not None
        return msgspec.json.decode(answer.structured)

    def refusal(self, tool: str, /, **arguments: Any) -> str:
        """The error of a call that must fail, and must leave everything as it was."""
        before = snapshot(self.space)
        with pytest.raises(Refused) as refused:
            self(tool, **arguments)
        assert snapshot(self.space) == before
        return str(refused.value)


def snapshot(space: Space) -> Any:
    graph = space.graph()
    return msgspec.to_builtins((list(graph.by_id.values()), list(graph.relations.values()), graph.seq))


@pytest.fixture(scope="session", autouse=True)
def searches_have_time() -> Iterator[None]:
    """A search waits for what lacks its vector as long as it takes here, so that no answer depends on what else the
    machine does. That the wait has an end is for the servers of tests/crash/test_meaning.py to show."""
    patched = pytest.MonkeyPatch()
    patched.setattr("mcp_memory.meaning.FIRST_SECONDS", 60.0)
    patched.setattr("mcp_memory.meaning.SECONDS", 60.0)
    yield
    patched.undo()


@pytest.fixture(scope="session", autouse=True)
def no_model_is_remembered_for_whoever_runs_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    patched = pytest.MonkeyPatch()
    patched.setattr("mcp_memory.embedding.places.PLACES", str(tmp_path_factory.mktemp("home") / "places"))
    yield
    patched.undo()


@pytest.fixture(params=STORES)
def memory_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where a memory is kept, of each kind of store in turn."""
    return tmp_path / str(request.param)


@pytest.fixture
def space(memory_file: Path) -> Iterator[Space]:
    """An empty space; at the end of a test nothing may be wrong with it, nor with what a fresh open finds."""
    space = open_space(memory_file, roots=(str(memory_file.parent),))
    yield space
    assert [finding.text for finding in space.check()] == []
    space.close()
    again = open_space(memory_file)
    assert [finding.text for finding in again.check()] == []
    again.close()


@pytest.fixture
def call(space: Space) -> Caller:
    """Calls tools of the full profile."""
    return Caller(space)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def sqlite_space(database: Path) -> Iterator[Space]:
    """A space for what only a database can hold."""
    space = open_space(database, roots=(str(database.parent),))
    yield space
    assert [finding.text for finding in space.check()] == []
    space.close()


@pytest.fixture
def keep(sqlite_space: Space) -> Caller:
    """Calls tools on a store that holds kinds, status, supersession and ended relations."""
    return Caller(sqlite_space)


def person(name: str, *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": "Person", "observations": list(observations)}


def link(source: str, relation_type: str, target: str) -> dict[str, str]:
    return {"from": source, "to": target, "relationType": relation_type}


Link = Callable[[str, str, str], dict[str, str]]
