"""SQLite's way to the disk, through the weather: an apsw VFS over the system's own.

Writes fail, are done in part or take long; what was flushed is shown to the platter. Reading is left alone, and
so are locks and shared memory, which the system's own file does itself."""

from __future__ import annotations

import errno
from contextlib import nullcontext
from typing import Any

import apsw

from mcp_memory.torture.platter import Platter
from mcp_memory.torture.weather import Trouble

FLUSHES_ITS_NAME = ("-wal", "-journal")  # SQLite flushes the folder with the first flush of these
JULIAN_MILLISECONDS = 1000
ERRORS = {errno.ENOSPC: apsw.FullError, errno.EIO: apsw.IOError}


class TroubledDisk(apsw.VFS):
    """The default file system of SQLite from the moment it is made."""

    def __init__(self, trouble: Trouble, platter: Platter | None) -> None:
        self.trouble = trouble
        self.platter = platter
        self.real = apsw.vfs_names()[0]
        super().__init__("troubled", base=self.real, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return TroubledFile(self, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:
        super().xDelete(name, syncdir)
        if syncdir and self.platter is not None:
            self.platter.take_names()

    def xCurrentTimeInt64(self) -> int:
        return int(super().xCurrentTimeInt64()) + self.trouble.clock() * JULIAN_MILLISECONDS


class TroubledFile(apsw.VFSFile):
    def __init__(self, disk: TroubledDisk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        # A main file comes with its URI; files without a name are temporary.
        self.path: str | None = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.owes_name = bool(self.path) and str(self.path).endswith(FLUSHES_ITS_NAME)
        super().__init__(disk.real, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        grows = offset + len(data) > super().xFileSize()
        written, error = self.disk.trouble.writing(len(data), grows)
        if written:
            super().xWrite(bytes(data[:written]), offset)
        if error:
            raise ERRORS[error]("the weather")

    def xSync(self, flags: int) -> None:
        with self.disk.platter.timed() if self.disk.platter is not None else nullcontext():
            self._sync(flags)

    def _sync(self, flags: int) -> None:
        error = self.disk.trouble.flushing()
        if error:
            raise ERRORS[error]("the weather")
        super().xSync(flags)
        platter = self.disk.platter
        if platter is None or not self.path:
            return
        # Read by SQLite's own hands: closing another descriptor of the file would drop its locks.
        platter.take_content(self.path, self._content)
        if self.owes_name:
            self.owes_name = False
            platter.take_names()

    def _content(self) -> bytes:
        return bytes(super().xRead(super().xFileSize(), 0))
