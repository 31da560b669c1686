"""What was done to which file, so that it can be taken back: exactly, where nobody has touched the file since, and
otherwise without losing what others wrote."""

from __future__ import annotations

import os

import msgspec

from mcp_memory.clients import files
from mcp_memory.clients.edits import Edit
from mcp_memory.settings import DEFAULT_FILE, BadSetting, full_path

FILE = "init.json"


class Done(msgspec.Struct):
    """One file that was written."""

    path: str
    existed: bool
    digest: str  # of what was written
    undo: list[Edit]  # in the order in which they are to be done
    backup: str = ""
    folders: list[str] = []


class Run(msgspec.Struct):
    """One `mcp-memory init`."""

    client: str
    scope: str
    project: str
    number: int = 0  # counted up, so that the last is the first to be taken back
    files: list[Done] = []


def place() -> str:
    return os.path.join(os.path.dirname(full_path(DEFAULT_FILE)), FILE)


def runs() -> list[Run]:
    data = files.read(place())
    try:
        return [] if data is None else msgspec.json.decode(data, type=list[Run])
    except ValueError as fault:
        raise BadSetting(
            f"{place()} keeps what --undo needs, and cannot be understood ({fault}). Move it away to go on."
        ) from fault


def keep(all_runs: list[Run]) -> None:
    if all_runs:
        files.write(place(), msgspec.json.format(msgspec.json.encode(all_runs), indent=2) + b"\n", 0o600)
    elif os.path.exists(place()):
        os.unlink(place())
