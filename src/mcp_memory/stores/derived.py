"""Files that can be made again: written beside their name, which they take when they are whole and on the disk."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

# What a process that died left half written is removed when nobody wrote to it for so long.
ABANDONED_SECONDS = 600


@contextmanager
def whole(path: str) -> Iterator[BinaryIO]:
    """A file to be written. Whatever is raised meanwhile, what stood under its name stays."""
    _remove_abandoned(path)
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # a power cut must not leave the name of a whole one on a part
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _remove_abandoned(path: str) -> None:
    folder, name = os.path.split(path)
    with suppress(OSError):
        for entry in os.scandir(folder or os.curdir):
            is_ours = entry.name.startswith(name + ".") and entry.name.endswith(".tmp")
            if is_ours and entry.stat().st_mtime < time.time() - ABANDONED_SECONDS:
                os.unlink(entry.path)
