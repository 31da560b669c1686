"""Virtual environments for the scripts beside this file: made in the checkout, filled from a lock.

Only the standard library and pip are needed, and pip not even inside the environment: installing with
the pip outside saves its unpacking and works where a system's Python comes without ensurepip."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent

if sys.version_info < (3, 11):
    sys.exit(f"mcp-memory needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try python3.11 or later.")


class Environment:
    """One virtual environment of this checkout."""

    def __init__(self, name: str) -> None:
        self.folder = CHECKOUT / name
        self.programs = self.folder / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.programs / ("python.exe" if os.name == "nt" else "python")

    def prepare(self, lock: Path) -> None:
        """Make it if it is missing or broken, and give it exactly what the lock names."""
        stamp = self.folder / "lock.sha256"
        wanted = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()
        if self._works() and stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"Making {self.folder.name} from {lock.relative_to(CHECKOUT).as_posix()} ...", flush=True)
        run(sys.executable, "-m", "venv", "--clear", "--without-pip", self.folder)
        self.install("--require-hashes", "-r", lock)
        stamp.write_text(wanted)

    def install(self, *what: str | Path) -> None:
        run(OUTSIDE, "-m", "pip", "--python", self.python, "install", "-q", *QUIETLY, *what)

    def _works(self) -> bool:
        try:
            return subprocess.run([self.python, "-c", "pass"], check=False).returncode == 0
        except OSError:
            return False


# The Python that this one was made from, if it is itself in such an environment, which has no pip.
OUTSIDE = getattr(sys, "_base_executable", sys.executable)
QUIETLY = ("--disable-pip-version-check", "--no-input", "--no-warn-script-location")


def run(*command: str | Path) -> None:
    """Run it, or end with its exit code: it has said what is wrong."""
    code = subprocess.run([str(part) for part in command], cwd=CHECKOUT, check=False).returncode
    if code:
        sys.exit(code)
