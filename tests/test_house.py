"""The rules of the house, each as a sentence: what may import what, and which papers must agree with the code."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

import mcp_memory

CHECKOUT = Path(__file__).parent.parent
PACKAGE = CHECKOUT / "src" / "mcp_memory"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Where the thinking is done. It gets what it needs passed in: no file, no clock, no wire.
INNER = (
    "facts",
    "changes",
    "graph",
    "base",
    "packing",
    "sections",
    "shelf",
    "views",
    "walks",
    "drawing",
    "history",
    "search",
    "tools",
    "curation",
)
OUTSIDE_WORLD = {
    "apsw",
    "sqlite3",
    "sqlite_vec",
    "socket",
    "select",
    "selectors",
    "asyncio",
    "time",
    "datetime",
    "http",
}
OUTER_PARTS = {"assembly", "cli", "demo", "server", "settings", "torture", "wire"}
STATEMENT = re.compile(
    r"\b(select\b.+\bfrom|insert\s+(or\s+\w+\s+)?into|delete\s+from|update\s+\w+\s+set|create\s+(virtual\s+)?table"
    r"|pragma\s+\w+)\b",
    re.IGNORECASE | re.DOTALL,
)


def part_of(module: Path) -> str:
    """`tools` for src/mcp_memory/tools/recall.py, `facts` for src/mcp_memory/facts.py."""
    return module.relative_to(PACKAGE).with_suffix("").parts[0]


def imports_of(module: Path) -> Iterator[str]:
    """What runs when the module or its functions run; imports for the type checker are no imports."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def texts_of(module: Path) -> Iterator[str]:
    """Every text in the code except docstrings."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True).stdout
    return [file for name in listed.decode().split("\0") if name and (file := CHECKOUT / name).is_file()]


def page(name: str) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


def commands_in(text: str) -> list[str]:
    return re.findall(r"^python3 scripts/\w+\.py$", text, re.MULTILINE)


# ── the code ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) in INNER], ids=lambda m: m.stem)
def test_the_inner_parts_know_no_driver_socket_clock_or_event_loop(module: Path) -> None:
    assert OUTSIDE_WORLD.isdisjoint(name.partition(".")[0] for name in imports_of(module))


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) in INNER], ids=lambda m: m.stem)
def test_imports_point_inwards(module: Path) -> None:
    ours = {name.split(".")[1] for name in imports_of(module) if name.startswith("mcp_memory.")}

    assert ours.isdisjoint(OUTER_PARTS)


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) != "stores"], ids=lambda m: m.stem)
def test_sql_is_written_only_under_stores(module: Path) -> None:
    assert [text for text in texts_of(module) if STATEMENT.search(text)] == []


def test_the_sql_rule_can_see_sql() -> None:
    assert any(STATEMENT.search(query.read_text(encoding="utf-8")) for query in PACKAGE.rglob("*.sql"))


def test_the_way_to_initialize_loads_nothing_slow(tmp_path: Path) -> None:
    """What a client waits for at each start: measured in modules, because time depends on the machine."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    server = [sys.executable, "-X", "importtime", "-m", "mcp_memory", "-f", str(tmp_path / "memory.db")]
    slow = {
        "apsw",
        "argparse",
        "asyncio",
        "dataclasses",
        "httptools",
        "json",
        "logging",
        "numpy",
        "pathlib",
        "pydantic",
        "tomllib",
    }
    said: list[bytes] = []
    # One pipe for both: what was imported before the answer stands before the answer.
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode())
        process.stdin.write(b"\n")
        process.stdin.flush()
        while not (line := process.stdout.readline()).startswith(b"{"):
            assert line, b"".join(said).decode()
            said.append(line)
        process.kill()
    answer = json.loads(line)
    loaded = {line.decode().rpartition("|")[2].strip() for line in said}

    assert answer["result"]["serverInfo"]["name"] == "memory"
    assert "mcp_memory.wire.session" in loaded
    assert slow.isdisjoint(loaded)


# ── the package ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_holds_every_module_and_every_query(wheel: zipfile.ZipFile) -> None:
    files = [*MODULES, *PACKAGE.rglob("*.sql"), PACKAGE / "py.typed"]

    assert {file.relative_to(PACKAGE.parent).as_posix() for file in files} <= set(wheel.namelist())


def test_the_wheel_brings_the_command_and_the_version(wheel: zipfile.ZipFile) -> None:
    information = f"mcp_memory-{mcp_memory.__version__}.dist-info"

    assert "mcp-memory = mcp_memory.server:main" in wheel.read(f"{information}/entry_points.txt").decode()


def test_the_wheel_puts_the_manual_where_man_looks(wheel: zipfile.ZipFile) -> None:
    name = f"mcp_memory-{mcp_memory.__version__}.data/data/share/man/man1/mcp-memory.1"

    assert wheel.read(name).decode() == page("docs/mcp-memory.1")


def test_the_public_names_are_there_when_asked_for() -> None:
    for name in mcp_memory.__all__:
        assert getattr(mcp_memory, name) is not None
    with pytest.raises(AttributeError):
        _ = mcp_memory.close_space


# ── the two commands ─────────────────────────────────────────────────────────────────────────────


def test_the_readme_shows_two_commands_and_the_second_is_what_ci_runs() -> None:
    assert commands_in(page("README.md")) == ["python3 scripts/start.py", "python3 scripts/check.py"]
    assert commands_in(page(".ci/run")) == ["python3 scripts/check.py"]


@pytest.mark.parametrize("lock", ["run", "dev"])
def test_a_lock_pins_every_package_with_hashes_and_names_no_place(lock: str) -> None:
    text = page(f"requirements/{lock}.txt")
    pins = [line for line in text.splitlines() if re.match(r"[a-z]", line)]

    assert pins and all(re.match(r"[\w.-]+==\S+ .*\\$", line) for line in pins)
    assert text.count(" \\\n    --hash=sha256:") >= len(pins)
    assert not re.search(r"https?:|--(extra-)?index-url|--find-links|file:", text)


def test_the_locks_hold_what_the_package_asks_for() -> None:
    project = tomllib.loads(page("pyproject.toml"))
    wanted = {"run": project["project"]["dependencies"]}
    wanted["dev"] = wanted["run"] + project["dependency-groups"]["dev"]

    for lock, packages in wanted.items():
        pinned = set(re.findall(r"^([\w.-]+)==", page(f"requirements/{lock}.txt"), re.MULTILINE))
        assert {re.split(r"[<>=~!;\[ ]", package)[0] for package in packages} <= pinned


# ── the papers ───────────────────────────────────────────────────────────────────────────────────


def test_the_generated_pages_are_up_to_date() -> None:
    check = subprocess.run(
        [sys.executable, "scripts/docs.py", "--check"], cwd=CHECKOUT, capture_output=True, check=False
    )

    assert check.returncode == 0, "run: python scripts/docs.py"


@pytest.mark.parametrize(
    "paper", [file for file in tracked_files() if file.suffix == ".md"], ids=lambda file: file.name
)
def test_links_between_the_papers_lead_somewhere(paper: Path) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", paper.read_text(encoding="utf-8"))
    inside = [link for link in links if "://" not in link]

    assert [link for link in inside if not (paper.parent / unquote(link)).exists()] == []


def test_every_dependency_has_a_decision() -> None:
    project = tomllib.loads(page("pyproject.toml"))
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    wanted += [one for extra in project["project"]["optional-dependencies"].values() for one in extra]
    names = {re.split(r"[<>=~!;\[ ]", package)[0] for package in wanted}
    decided = "\n".join(paper.read_text(encoding="utf-8") for paper in (CHECKOUT / "docs" / "decisions").glob("*.md"))

    assert {name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", decided, re.IGNORECASE)} == set()


def test_every_page_that_is_named_is_there() -> None:
    """In comments and texts, where no link is."""
    named = {
        f"{file.relative_to(CHECKOUT)}: {name}"
        for file in tracked_files()
        if file.suffix in (".py", ".md", ".toml")
        for name in re.findall(r"(?<![\w/.-])docs/[\w/-]+\.(?:md|1)\b", file.read_text(encoding="utf-8"))
        if not (CHECKOUT / name).exists()
    }

    assert named == set()


def test_the_guided_tour_passes_every_part_and_invents_none() -> None:
    tour = page("docs/reading-the-source.md")
    named = set(re.findall(r"`([\w/.-]+\.(?:py|sql)|[\w/]+/)`", tour))
    parts = {module.relative_to(PACKAGE).parts[0] for module in MODULES} - {"__pycache__"}

    assert [name for name in named if not (PACKAGE / name).exists() and not (CHECKOUT / name).exists()] == []
    assert {part if part.endswith(".py") else f"{part}/" for part in parts} - named == set()


def test_the_changelog_tells_about_this_version() -> None:
    assert f"## [{mcp_memory.__version__}]" in page("CHANGELOG.md")


def test_no_tracked_file_knows_a_machine() -> None:
    """Paths of somebody's computer, and addresses other than a computer's own."""
    place = re.compile(
        r"(?<![\w.~/])/(?:home|Users|root|work|tmp/scratch)/\w"
        + r"|[A-Z]:\\Users\\\w|\b(?!127\.|0\.0\.0\.0)\d+(?:\.\d+){3}\b(?!\.)"
    )
    found = [
        f"{file.relative_to(CHECKOUT)}: {match[0]}"
        for file in tracked_files()
        if file != Path(__file__) and file.parent.name != "requirements"
        for match in place.finditer(file.read_bytes().decode(errors="replace"))
    ]

    assert found == []
