"""A space in the official server's own file: the bytes it would write, replaced whole or not at all.

The law: a reply is given when the new file stands under its name. One writer of ours at a time (a lock
file beside), a newer file of anybody's is read before it is replaced, and no line is dropped that was
not kept aside first. Ids count from the start of the file and live as long as the process."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mcp_memory.changes import Entry
from mcp_memory.graph import Graph
from mcp_memory.stores.lines import BadLine, Reading, changes_of, foreign, lines_of, nothing_of_ours, read_lines
from mcp_memory.stores.onefile import KEPT_ASIDE, PATIENCE, TIDIED, TIDYING_PATIENCE, OneFile
from mcp_memory.stores.plain import refuse_unkeepable
from mcp_memory.stores.sheet import Sheet
from mcp_memory.stores.store import (
    RESTORED,
    CannotHold,
    Finding,
    StoreBusy,
    StoreDamaged,
    StoreFault,
)
from mcp_memory.stores.wholefile import Stamp

log = logging.getLogger("mcp_memory")

BY_HAND = "mend the lines, save them as a .jsonl file of their own and run mcp-memory import on that, or "
REPORTED = 5  # bad lines told one by one; the rest is counted


class JsonlStore(OneFile):
    """One `.jsonl` (or `.json`) file. A new version is on the disk before it gets the name; with durability `sync`
    its directory is flushed before every answer too."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: str = "normal",
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(path, durability=durability, patience=patience)
        self._unsaved = False
        self._reported: set[bytes] = set()
        self._sheet = Sheet(Entry(0, "", []))
        self._forget()

    def _forget(self) -> None:
        self._stamp: Stamp | None = None  # of the version that the sheet is about
        # Another number than any sheet before had: a graph of an older one shall not be taken for one of this, which
        # knows its facts by other ids.
        self._sheet = Sheet(Entry(self._sheet.seq + 1, "", []))
        self._bad: list[BadLine] = []
        self._to_keep: list[bytes] = []  # lines that the next save would lose

    # ── writing ──────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def begin(self, wait: bool = True) -> Iterator[None]:
        self._acquire(self.patience if wait else 0)
        try:
            yield
            if self._unsaved:
                self._save()
        except BaseException:
            if self._unsaved:
                self._forget()
            raise
        finally:
            self._unsaved = False
            self._lock.release()

    def write(self, entries: list[Entry]) -> None:
        refuse_unkeepable(entries, "JSONL", self.path)
        self._refuse_read_only()
        self._unsaved = True
        try:
            self._sheet.apply(entries)
        except UnicodeEncodeError:
            raise CannotHold("A text holds half of a surrogate pair, which UTF-8 cannot write. Leave it out.") from None

    def _save(self) -> None:
        data = self._sheet.render()
        try:
            self._keep_aside()
            stamp = self._file.prepare(data, self._sync)
            if self._file.look() != self._stamp:
                raise StoreBusy(
                    f"Another program replaced {self.path} while this call wrote; nothing was changed. Repeat the call."
                )
            self._file.replace()
        except BaseException as error:
            with suppress(OSError):
                self._file.discard()
            if isinstance(error, OSError):
                self._fail(error, "write")
            raise
        self._stamp = stamp
        self._bad = []
        self._unflushed = not self._sync
        if self._sync:
            try:
                self._file.flush_name()
            except OSError as error:
                self._fail(error, "flush")

    def _keep_aside(self) -> None:
        if self._to_keep:
            new = self._quarantine.missing(self._to_keep)
            self._quarantine.keep(new)
            if new:
                log.warning("%s is written anew; %d lines it held go to %s", self.path, len(new), self._quarantine.path)
            self._to_keep = []

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    def news_since(self, graph: Graph) -> list[Entry] | None:
        if self._look() != self._stamp or graph.seq != self._sheet.seq:
            return None
        return []

    def load(self) -> Graph:
        if self._look() != self._stamp:
            self._read()
        return self._sheet.graph()

    def _read(self) -> None:
        self._forget()
        reading, stamp = self._facts()
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(stamp[0] // 1_000_000_000))
        self._sheet = Sheet(Entry(self._sheet.seq, at, changes_of(reading)))
        self._stamp = stamp
        self._bad = reading.bad
        self._to_keep = [*(bad.raw for bad in reading.bad), *reading.altered]
        self._report(reading.bad)
        self._tidy()

    def _facts(self) -> tuple[Reading, Stamp]:
        try:
            data, stamp = self._file.read()
        except OSError as error:
            self._fail(error, "read")
        what = foreign(data)
        if what is None:
            reading = read_lines(data)
            if not nothing_of_ours(reading):
                return reading, stamp
            what = "text without a single line of a memory"
        raise StoreDamaged(
            f"{self.path} is not a JSONL memory file but {what}; it was left as it is. "
            "Name another memory file, or bring the facts of this one over with `mcp-memory import`."
        )

    def _report(self, bad: list[BadLine]) -> None:
        new = [line for line in bad if line.raw not in self._reported]
        self._reported.update(line.raw for line in new)
        for line in new[:REPORTED]:
            log.warning("%s: line %d is not served: %s", self.path, line.number, line.reason)
        if len(new) > REPORTED:
            log.warning("%s: %d more lines are not served", self.path, len(new) - REPORTED)
        if new:
            log.warning("The rest is served. Lines that are not are kept in %s", self._quarantine.path)

    def _tidy(self) -> None:
        """Keep bad lines aside and remove what a killed process left, if that can be done now.

        A reader may fail at this: every save does it again and does not go on without it."""
        if not self._bad and not self._file.has_leftover():
            return
        mine = not self._lock.held
        try:
            if mine:
                self._acquire(TIDYING_PATIENCE)
            try:
                self._quarantine.keep(bad.raw for bad in self._bad)
                self._file.discard()
            finally:
                if mine:
                    self._lock.release()
        except (OSError, StoreFault) as error:
            log.warning("%s: tidying up waits for the next write: %s", self.path, error)

    # ── upkeep ───────────────────────────────────────────────────────────────────────────────────

    def check(self, repair: bool) -> list[Finding]:
        """Does the file say what the store believes, and is nothing lying about?"""
        self.load()
        return [*self._check_served(repair), *self._check_lines(repair), *self._check_beside(repair)]

    def _check_served(self, repair: bool) -> list[Finding]:
        """What stands in the file and is in no answer. It cannot be put right, but it can be put aside."""
        bad, place = self._bad, self._quarantine.path
        if bad and repair:
            self.compact()
        return [
            Finding(
                f"line {line.number} of {self.path} is not served: {line.reason}",
                repair,
                remedy=KEPT_ASIDE.format(place=place) + BY_HAND + RESTORED,
                moved_to=place,
            )
            for line in bad
        ]

    def _check_lines(self, repair: bool) -> Iterator[Finding]:
        reading, stamp = self._facts()
        if stamp != self._stamp:
            return  # replaced a moment ago: the next call loads it
        told = list(lines_of(Sheet(Entry(0, "", changes_of(reading))).graph()))
        for what, lines in (
            ("is believed", list(lines_of(self._sheet.graph()))),
            ("would be written", self._sheet.lines()),
        ):
            if lines == told:
                continue
            pairs = enumerate(zip(told, lines, strict=False), 1)
            place = next(
                (f"fact {n}" for n, (one, other) in pairs if one != other), f"{len(told)} and {len(lines)} facts"
            )
            yield Finding(f"{self.path} differs from what {what}: {place}", repair, remedy=TIDIED)
            if repair:
                self._forget()
                return

    def _check_beside(self, repair: bool) -> Iterator[Finding]:
        missing = self._quarantine.missing(bad.raw for bad in self._bad)
        left = self._has_leftover()
        if repair and (missing or left):
            self._tidy()
        if missing:
            text = f"{len(missing)} bad lines of {self.path} are not kept in {self._quarantine.path}"
            yield Finding(text, repair and not self._quarantine.missing(missing), remedy=TIDIED)
        if left:
            text = f"{self._file.temporary} was left by a process that died"
            yield Finding(text, repair and not self._file.has_leftover(), remedy=TIDIED)

    def compact(self, progress: Callable[[int, int | None], None] | None = None) -> None:
        """Write the file anew, in the official server's own bytes."""
        with self.begin():
            self.load()
            self._refuse_read_only()
            self._unsaved = True
        if progress is not None:
            progress(1, 1)

    def close(self) -> None:
        self._lock.close()
        self._forget()
