"""Files of other programs, handled with care: read as UTF-8 or not at all, written whole or not at all, with their
permissions, through links, and with a copy beside."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from hashlib import sha256

from mcp_memory.facts import MemoryFault

BOM = b"\xef\xbb\xbf"
BACKUP = ".before-mcp-memory"


class Untouchable(MemoryFault):
    """A file that may or can not be written. The text says why, and what would help."""


def read(path: str) -> bytes | None:
    """What is in it; None if there is no such file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise Untouchable(f"{path} cannot be read: {fault.strerror or fault}. Nothing was changed.") from fault


def decoded(path: str, data: bytes) -> str:
    try:
        return data.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as fault:
        raise Untouchable(
            f"{path} is not written in UTF-8 (at byte {fault.start}). Save it as UTF-8; nothing was changed."
        ) from fault


def encoded(text: str, before: bytes | None) -> bytes:
    """The text as bytes, marked as the file was."""
    return (BOM if before and before.startswith(BOM) else b"") + text.encode()


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def write(path: str, data: bytes, new_mode: int | None = None) -> list[str]:
    """Put this in the place of the file, at once; the folders that had to be made for it, outermost first. A file
    that is new gets the permissions that new files get, or `new_mode`."""
    real = os.path.realpath(path)
    mode = _mode_of(real)
    if mode is not None and not mode & 0o222:
        raise Untouchable(
            f"{path} is read-only. Make it writable, or edit it by hand with what --print shows. Nothing was changed."
        )
    made = _make_folder(os.path.dirname(real))
    draft = f"{real}.{secrets.token_hex(4)}.draft"
    try:
        _write_new(draft, data, new_mode if mode is None else mode)
        os.replace(draft, real)
    except OSError as fault:
        remove(draft, made)
        raise Untouchable(f"{path} cannot be written: {fault.strerror or fault}. It is as it was.") from fault
    return made


def back_up(path: str, data: bytes) -> str:
    """A copy beside the file, readable by nobody who cannot read the file."""
    number = 1
    while os.path.lexists(place := f"{path}{BACKUP}{'' if number == 1 else f'.{number}'}"):
        number += 1
    try:
        _write_new(place, data, _mode_of(path))
    except OSError as fault:
        raise Untouchable(f"{place} cannot be written: {fault.strerror or fault}. Nothing was changed.") from fault
    return place


def remove(path: str, folders: list[str]) -> None:
    """Take away a file that was made here, and the folders that were made for it if nothing else is in them."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.realpath(path))
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _mode_of(path: str) -> int | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise Untouchable(f"{path} is no file. Nothing was changed.")
    return stat.S_IMODE(found.st_mode)


def _write_new(path: str, data: bytes, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o666 if mode is None else 0o600), "wb") as file:
        if mode is not None:
            os.chmod(path, mode | stat.S_IWUSR)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _make_folder(folder: str) -> list[str]:
    missing: list[str] = []
    while folder and not os.path.isdir(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    try:
        for each in missing:
            os.mkdir(each)
    except OSError as fault:
        raise Untouchable(f"{missing[-1]} cannot be made: {fault.strerror or fault}. Nothing was changed.") from fault
    return missing
