"""The words of the command line: what a person types, and what is printed for them to read."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from mcp_memory import __version__
from mcp_memory.commands import COMMANDS, OPTIONS, Command, Option, flag_of
from mcp_memory.server import main
from mcp_memory.settings import FIELDS, FLAGS, Request
from tests.conftest import person

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("", encoding="utf-8")
    for field in FIELDS.values():
        monkeypatch.delenv(field.env, raising=False)
    monkeypatch.setenv("MCP_MEMORY_SETTINGS", str(settings))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The exit code, what was printed, and what was complained about."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def official_file(tmp_path: Path) -> Path:
    """A file as the official server writes it, with one line that nobody can read."""
    file = tmp_path / "official.jsonl"
    lines = [
        {"type": "entity", **person("Ada", "likes tea")},
        {"type": "entity", **person("Grace", "writes compilers")},
        {"type": "relation", "from": "Ada", "to": "Grace", "relationType": "knows"},
    ]
    file.write_text("\n".join([*map(json.dumps, lines), '{"type":"ent']), encoding="utf-8")
    return file


def test_who_has_seen_enough_of_the_help_is_not_complained_to() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "mcp_memory", "--help"]

    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60)

    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_help_names_every_command_and_every_setting(run: Run) -> None:
    code, printed, _ = run("--help")

    assert code == 0
    assert all(f"\n  {name}" in printed for name in COMMANDS)
    assert all(field.flag in printed and field.env in printed for field in FIELDS.values())
    assert max(map(len, printed.splitlines())) <= 100


def test_the_version_is_the_package_version(run: Run) -> None:
    assert run("--version") == (0, f"mcp-memory {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["remember"], "There is no command 'remember'. The commands are serve, init"),
        (["import"], "It is used like this: mcp-memory import FILE"),
        (["stats", "--repair"], "It is used like this: mcp-memory stats"),
        (["--repair"], "It is used like this: mcp-memory serve"),
        (["doctor", "--repair=yes"], "--repair takes no value"),
        (["doctor", "--repiar"], "There is no option --repiar; did you mean --repair"),
        (["--transport", "tcp", "--bind", "8080"], "it must be HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080"),
        (["--transport", "http", "--bind", "0.0.0.0:0"], "nobody would have to show a token"),
        (["--tools", "forgetting"], "No tool family is named forgetting"),
        (["doctor", "-f", "missing.db"], "There is no memory file"),
    ],
)
def test_a_mistake_ends_with_a_sentence_and_an_exit_code(run: Run, arguments: list[str], complaint: str) -> None:
    code, printed, complained = run(*arguments)

    assert code in (1, 2)
    assert printed == ""
    assert complaint in complained


def test_no_option_of_a_command_is_mistaken_for_a_setting_or_for_another_command_s() -> None:
    assert not OPTIONS.keys() & FLAGS.keys()
    assert all(
        OPTIONS[flag_of(name)] == (name, option) or bool(OPTIONS[flag_of(name)][1].value) == bool(option.value)
        for command in COMMANDS.values()
        for name, option in command.options.items()
    )


def test_every_command_leads_to_a_function_that_takes_its_options(run: Run) -> None:
    for name, command in COMMANDS.items():
        parameters = inspect.signature(command.function).parameters.values()
        assert {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} == set(command.options)
        code, printed, _ = run(name, "--help")
        assert code == 0
        assert all(flag_of(option) in printed for option in command.options)
        assert max(map(len, printed.splitlines())) <= 100


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A command with options of every kind, and what arrived at it."""
    taken: dict[str, object] = {}

    def take(request: Request, word: str, other: str = "none", **options: object) -> int:
        taken.update({"word": word, "other": other, **options})
        return 0

    options = {
        "json": Option("Print JSON."),
        "weight": Option("A weight.", "X", Annotated[float, Meta(ge=0)], "a number from 0 up"),
        "weight_range": Option("Weights to try.", "X,Y,...", tuple[float, ...]),
        "most": Option("How many.", "N", int),
    }
    monkeypatch.setattr(Command, "function", property(lambda command: take))
    monkeypatch.setitem(COMMANDS, "take", Command("nowhere:take", "Take it.", ("WORD", "[OTHER]"), options))
    for name, option in options.items():
        monkeypatch.setitem(OPTIONS, flag_of(name), (name, option))
    return taken


def test_options_arrive_as_what_they_are_and_only_if_they_were_given(run: Run, taken: dict[str, object]) -> None:
    code, _, complained = run("--json", "take", "this", "--weight=0.5", "--weight-range", "1, 2.5", "--most", "7")

    assert (code, complained) == (0, "")
    assert taken == {"word": "this", "other": "none", "json": True, "weight": 0.5, "weight_range": (1, 2.5), "most": 7}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--weight", "-1"], "--weight cannot be '-1': it must be a number from 0 up."),
        (["--weight-range", "1,two"], "--weight-range cannot be '1,two': it must be numbers, with commas between."),
        (["--most", "few"], "--most cannot be 'few': it must be a whole number."),
        (["--most"], "--most needs a value after it."),
        (["b", "c"], "It is used like this: mcp-memory take WORD [OTHER] [OPTIONS]"),
    ],
)
def test_a_wrong_option_ends_with_a_sentence(
    run: Run, taken: dict[str, object], arguments: list[str], complaint: str
) -> None:
    code, _, complained = run("take", "a", *arguments)

    assert code == 2
    assert complaint in complained
    assert taken == {}


def test_a_journal_of_an_unknown_version_is_refused_and_not_touched(run: Run, tmp_path: Path) -> None:
    journal = tmp_path / "memory.db"
    journal.write_bytes(b"MCPMEMV3" + bytes(20))

    code, _, complained = run("-f", journal, "stats")

    assert code == 1
    assert "a journal of version '3'" in complained
    assert journal.read_bytes() == b"MCPMEMV3" + bytes(20)


@pytest.mark.parametrize("target", ["memory.db", "memory.jsonl"])
def test_import_takes_over_an_official_file_and_may_be_repeated(
    run: Run, official_file: Path, tmp_path: Path, target: str
) -> None:
    first = run("-f", tmp_path / target, "import", official_file)
    second = run("-f", tmp_path / target, "import", official_file)

    assert first[0] == second[0] == 0
    assert {"entities_imported", "2", "relations_imported", "1", "skipped"} <= set(first[1].split())
    assert run("-f", tmp_path / target, "doctor")[0] == 0
    assert "Person 2" in run("-f", tmp_path / target, "stats")[1]


@pytest.mark.parametrize("target", ["memory.db", "memory.jsonl", "memory.mcpmem"])
def test_import_brings_in_relations_to_what_nobody_has_created_yet(run: Run, tmp_path: Path, target: str) -> None:
    lines = [
        b'{"type":"relation","from":"Ada","to":"Later","relationType":"waits for"}',
        b'{"type":"entity","name":"Ada","entityType":"Person","observations":[]}',
        b'{"type":"relation","from":"Later","to":"Latest","relationType":"waits for"}',
    ]
    nameless = b'{"type":"relation","from":"Ada","to":"","relationType":"knows"}'
    old, back = tmp_path / "old.jsonl", tmp_path / "back.jsonl"
    old.write_bytes(b"\n".join([*lines, nameless]))
    code, printed, _ = run("-f", tmp_path / target, "import", old)
    again = run("-f", tmp_path / target, "import", old)
    run("-f", tmp_path / target, "export", back)

    assert (code, again[0]) == (0, 0)
    assert ["relations_imported 2", "skipped 1"] == [
        " ".join(line.split()) for line in printed.splitlines() if "relations_" in line or "skipped" in line
    ]
    assert sorted(back.read_bytes().split(b"\n")) == sorted(lines)
    assert (tmp_path / "old.jsonl.quarantine").read_bytes() == nameless + b"\n"
    assert run("-f", tmp_path / target, "doctor")[0] == 0


def test_import_of_a_missing_file_says_so(run: Run, tmp_path: Path) -> None:
    code, _, complained = run("-f", tmp_path / "memory.db", "import", tmp_path / "nothing.jsonl")

    assert code == 1
    assert "nothing.jsonl cannot be read" in complained


def test_stats_count_what_the_file_holds(run: Run, official_file: Path) -> None:
    code, printed, _ = run("-f", official_file, "stats")

    assert code == 0
    rows = dict(line.strip().split(maxsplit=1) for line in printed.splitlines())
    assert (rows["format"], rows["entities"], rows["observations"], rows["relations"]) == ("jsonl", "2", "2", "1")


def test_doctor_finds_nothing_in_a_healthy_file(run: Run, official_file: Path, tmp_path: Path) -> None:
    run("-f", tmp_path / "memory.db", "import", official_file)

    code, printed, _ = run("-f", tmp_path / "memory.db", "doctor")

    assert (code, printed) == (0, f"{tmp_path / 'memory.db'}: everything is as it should be.\n")


def test_a_file_is_recognised_by_what_is_in_it(run: Run, official_file: Path, tmp_path: Path) -> None:
    disguised = official_file.rename(tmp_path / "disguised.db")

    assert "jsonl" in run("-f", disguised, "stats")[1]


def test_the_demo_is_a_conversation_that_ends_well() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    shown = subprocess.run(
        [sys.executable, "-m", "mcp_memory", "demo"],
        capture_output=True,
        encoding="utf-8",
        env=environment,
        timeout=120,
        check=False,
    )

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.count("exit code 0") == 2
    assert '"structuredContent"' not in shown.stdout
    for said in ("create_entities", "create_relations", "search_nodes", "Moves to Lisbon in May"):
        assert said in shown.stdout
