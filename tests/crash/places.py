"""Disks that are full and folders that may not be written, made for a test and gone after it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash.harness import COMMAND

# Linux: a process without these two obeys permissions even when it runs as root.
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, PR_CAPBSET_DROP = 1, 2, 24
OBEDIENT = f"""
import ctypes, os, sys
for power in ({CAP_DAC_OVERRIDE}, {CAP_DAC_READ_SEARCH}):
    if ctypes.CDLL(None, use_errno=True).prctl({PR_CAPBSET_DROP}, power, 0, 0, 0):
        sys.exit("cannot give up the powers of root")
os.execv(sys.argv[1], sys.argv[1:])
"""


def obedient() -> tuple[str, ...]:
    """The server's command, for a process that permissions bind: root may write what nobody may."""
    if sys.platform == "linux" and os.geteuid() == 0:
        return (sys.executable, "-c", OBEDIENT, *COMMAND)
    return COMMAND


@contextmanager
def forbidden(*paths: Path) -> Iterator[None]:
    """These files and folders may be read and not written."""
    modes = {path: path.stat().st_mode & 0o7777 for path in paths}
    try:
        for path, mode in modes.items():
            path.chmod(mode & ~0o222)
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


class Disk:
    """A small disk that can be filled to the last byte and emptied again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filling = folder / "filling"

    def fill(self) -> None:
        with open(self._filling, "ab", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                return

    def empty(self) -> None:
        self._filling.unlink()


@contextmanager
def small_disk(folder: Path, megabytes: int = 4) -> Iterator[Disk | None]:
    """A disk of its own mounted on this folder; None where that needs rights we do not have."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if (
        sys.platform != "linux"
        or os.geteuid() != 0
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        yield None
        return
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
