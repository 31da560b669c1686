"""Both packages as a user has them: built, and installed by pip into an empty environment each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.peers import ROOT, Peer

# Whoever tries to reach the network gets nobody.
OFFLINE = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")


class Installed(NamedTuple):
    """An environment with one of the packages, and nothing else but what it asks for."""

    folder: Path
    name: str

    def program(self, name: str) -> str:
        return str(self.folder / self.name / ("Scripts" if sys.platform == "win32" else "bin") / name)

    def run(self, program: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program(program), *arguments],
            env=environment(home),
            cwd=home,
            capture_output=True,
            encoding="utf-8",
            timeout=240,
            check=False,
        )

    def server(self, home: Path, *arguments: str) -> Peer:
        """Its server on standard streams, in a home where nobody has ever been."""
        command = [self.program("mcp-memory"), "-f", str(home / "memory.db"), "--roots", str(home), *arguments]
        return Peer(command, environment(home))


def environment(home: Path) -> dict[str, str]:
    places = {"HOME": str(home), "USERPROFILE": str(home), "PYTHONUTF8": "1", "PYTHONPATH": ""}
    return {"PATH": "", "SYSTEMROOT": "", **places, **OFFLINE}


class Release(NamedTuple):
    """What came of building and installing."""

    folder: Path
    report: str
    code: int

    @property
    def full(self) -> Installed:
        return Installed(self.folder, "mcp-memory")

    @property
    def slim(self) -> Installed:
        return Installed(self.folder, "mcp-memory-slim")

    def wheel(self, name: str) -> Path:
        (found,) = self.folder.glob(f"{name.replace('-', '_')}-[0-9]*.whl")
        return found


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("release")
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "footprint.py"), str(folder)],
        capture_output=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
    return Release(folder, done.stdout + done.stderr, done.returncode)
