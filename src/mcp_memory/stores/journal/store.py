"""A space in a `.mcpmem` file: every plan is appended, as records, in one write.

The law: a reply is given when the records of its plan stand in the file, all of them. One writer of ours
at a time (a lock file beside). Who reads leaves the file as it is; who writes first cuts off what is no record at
its end, and keeps it aside before. A file that is something else is never touched. The file knows neither
ids nor times: those of a process live as long as the process, also when somebody else writes the file anew."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from zlib import crc32

from mcp_memory.changes import Entry
from mcp_memory.graph import Graph
from mcp_memory.stores.journal import mcpmem
from mcp_memory.stores.journal.appending import Overtaken, Tape
from mcp_memory.stores.journal.flushed import MARK, Place, end_of, note, noted, place
from mcp_memory.stores.journal.mcpmem import Record, TooLarge
from mcp_memory.stores.journal.reading import Reading, read, time_of
from mcp_memory.stores.journal.recognition import recognised
from mcp_memory.stores.journal.remains import kept
from mcp_memory.stores.journal.replay import Replay, Stretch
from mcp_memory.stores.journal.scribe import Scribe, whole
from mcp_memory.stores.onefile import KEPT_ASIDE, PATIENCE, OneFile
from mcp_memory.stores.plain import NO_PLACE, refuse_unkeepable
from mcp_memory.stores.store import HEALED, RESTORED, CannotHold, Finding, StoreBusy, StoreFault
from mcp_memory.stores.wholefile import MISSING, Stamp, stamp_of

log = logging.getLogger("mcp_memory")

REPORTED = 5  # stretches told one by one; the rest is counted
# From so many records on, the first of a journal are a new file and no transaction.
WHOLE_FROM = 256


class JournalStore(OneFile):
    """One `.mcpmem` file of version 1 or 2; a new one is of version 2, an old one stays what it is until `compact`.

    A store appends to what it told last: plans are made on the graph that `news_since` was asked about or
    that `load` gave, and the names in the records are found there."""

    longest_text = mcpmem.LONGEST_TEXT
    new_version = mcpmem.NEWEST  # of a file that is not there yet

    def __init__(self, path: str | os.PathLike[str], *, durability: str = "normal", patience: float = PATIENCE) -> None:
        self._tape = Tape(os.path.abspath(path))
        super().__init__(path, durability=durability, patience=patience)
        self._reported: set[tuple[int, Stretch]] = set()
        self._scribe: Scribe | None = None
        self._planned = 0  # the last entry that the scribe wrote down
        self._seq = 0
        self._forget()

    def _aim(self) -> None:
        super()._aim()
        self._tape.close()
        self._tape = Tape(self._file.target)

    def _forget(self) -> None:
        self._graph: Graph | None = None
        self._stamp: Stamp | None = None  # of the file as it was read or written last
        self._version = self._start = self._end = 0
        self._mark = b""
        # Is there something behind `_end` that is no record yet, or never will be, or beside, of who was killed?
        self._is_loose = False
        self._is_noted = False  # is there a note about this file that says how far it is on the disk?

    @property
    def journal_version(self) -> int:
        """Of the records in the file, as it was read last, or of those that will be."""
        return self._version or self.new_version

    # ── writing ──────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def begin(self, wait: bool = True) -> Iterator[None]:
        self._acquire(self.patience if wait else 0)
        try:
            yield
            if self._scribe is not None:
                self._append(self._scribe.records)
        finally:
            self._scribe = None
            self._lock.release()

    def write(self, entries: list[Entry]) -> None:
        graph = self._graph
        if self._scribe is None:
            if graph is None or graph.seq != self._seq:
                raise StoreFault("A plan can only be written down beside the graph it was made on; load it first.")
            self._scribe, self._planned = Scribe(graph), self._seq
        if entries[0].seq != self._planned + 1:
            raise StoreFault(f"Entry {entries[0].seq} does not follow entry {self._planned}; load the graph again.")
        refuse_unkeepable(entries, "journal", self.path)
        try:
            for entry in entries:
                self._scribe.write(entry.changes)
        except TooLarge as fault:
            raise CannotHold(NO_PLACE.format(format="journal", what=fault, path=self.path)) from None
        except UnicodeEncodeError:
            raise CannotHold("A text holds half of a surrogate pair, which UTF-8 cannot write. Leave it out.") from None
        self._planned = entries[-1].seq

    def _append(self, records: list[Record]) -> None:
        if records:
            version = self.journal_version
            try:
                if self._is_loose:
                    self._put_in_order()
                if not self._is_noted:
                    self._note_all()
                data = self._written(records, version)
            except Overtaken:
                self._stamp = None
                raise StoreBusy(
                    f"Another program wrote {self.path} while this call did; nothing was changed. Repeat the call."
                ) from None
            except OSError as error:
                self._fail(error, "write")
            self._version, self._start = version, mcpmem.HEAD
            self._end += len(data)
            self._mark = (self._mark + data)[-MARK:]
            self._unflushed = not self._sync
        self._seq = self._planned

    def _written(self, records: list[Record], version: int) -> bytes:
        """Put these into the file; what it gained, at both ends."""
        if len(records) >= WHOLE_FROM and self._end <= mcpmem.HEAD and all(kind in ADDING for kind, _ in records):
            return self._begin_with(records, version)
        data = mcpmem.frame(mcpmem.transaction(records), version)
        if self._version and not self._start:
            return self._put_magic_before(data, version)
        if not self._version:
            data = mcpmem.MAGIC[version] + data
        self._append_bytes(data)
        return data

    def _append_bytes(self, data: bytes) -> None:
        if self._stamp is None:
            raise Overtaken
        is_new = self._stamp == MISSING
        self._stamp = self._tape.append(data, self._stamp, self._end, self._sync)
        if is_new and self._sync:
            self._file.flush_name()
        if self._sync:
            self._note(place(self._end + len(data), (self._mark + data)[-MARK:]))

    def _begin_with(self, records: list[Record], version: int) -> bytes:
        """What is brought into an empty journal takes its name as a whole and needs no transaction: if the file is
        damaged later, that costs records and not all of them."""
        if self._look() != self._stamp:
            raise Overtaken
        data = mcpmem.MAGIC[version] + mcpmem.frame(records, version)
        self._replace(data)
        self._end, self._mark = 0, b""
        return data

    def _put_magic_before(self, data: bytes, version: int) -> bytes:
        """A file without magic is given one with its next record; what it gains at both ends."""
        content, stamp = self._content()
        if stamp != self._stamp or len(content) != self._end:
            raise Overtaken
        magic = mcpmem.MAGIC[version]
        self._replace(magic + content + data)
        return magic + data

    def _replace(self, content: bytes) -> None:
        try:
            self._refuse_read_only()
            self._stamp = self._file.prepare(content, True)
            self._file.replace()
            self._file.flush_name()
        except BaseException:
            with suppress(OSError):
                self._file.discard()
            raise
        finally:
            self._tape.close()  # it held the old file
        self._is_noted = False
        with suppress(OSError):  # the next write tries again
            note(self._lock.path, place(len(content), content[-MARK:]), lasting=True)
            self._is_noted = True

    def settle(self, seconds: float | None = None) -> None:
        if self._unflushed:
            end = end_of(self._file.target)
            super().settle(seconds)
            if end is not None:
                self._note(end)

    def _note(self, end: Place) -> None:
        with suppress(OSError):  # the note that is there says less
            note(self._lock.path, end)

    def _note_all(self) -> None:
        """Before the first write: what stands there is on the disk, and from here on it is known what is."""
        end = end_of(self._file.target)  # first: somebody who knows no lock may go on writing
        self._file.flush()
        note(self._lock.path, end or place(0, b""), lasting=True)
        self._is_noted = True

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    def news_since(self, graph: Graph) -> list[Entry] | None:
        stamp = self._look()
        if self._stamp is None or graph.seq != self._seq:
            return None
        self._graph = graph
        if self._is_loose and self._lock.held:
            return None  # to be put right before anything is written behind it
        if stamp == self._stamp:
            return []
        if stamp[2] != self._stamp[2] or stamp[1] < self._end or not self._start:
            return None
        return self._catch_up(graph)

    def _catch_up(self, graph: Graph) -> list[Entry] | None:
        """Read on where reading or writing ended."""
        base = self._end - len(self._mark)
        try:
            with open(self._file.target, "rb", buffering=0) as file:
                stamp = stamp_of(os.fstat(file.fileno()))
                file.seek(base)
                data = file.read()
        except OSError as error:
            self._fail(error, "read")
        if self._stamp is None or stamp[2] != self._stamp[2] or not data.startswith(self._mark):
            return None
        at = time_of(stamp[0])
        replay = Replay(at, graph)
        try:
            replay.run(mcpmem.scan(data, len(self._mark), self._version), len(self._mark))
        except mcpmem.TooDamaged:
            return None  # loading says what is wrong
        if replay.bad or (replay.tail is not None and self._lock.held):
            return None
        self._stamp = stamp
        self._end = base + replay.end
        self._mark = data[max(0, replay.end - MARK) : replay.end]
        self._is_loose = replay.tail is not None
        if not replay.changes:
            return []
        self._seq += 1
        return [Entry(self._seq, at, replay.changes)]

    def load(self) -> Graph:
        """The file as it stands, under the ids that this process knows its facts by."""
        known = self._graph if self._graph is not None and self._graph.seq == self._seq else None
        before = self._stamp, self._end
        data, stamp = self._content()
        reading = read(data, time_of(stamp[0]), self.path)
        self._report(data, reading.unserved)
        self._is_noted = noted(self._lock.path, data) is not None
        content = reading.content if known is None else recognised(reading.content, known)
        graph = content.graph()
        if known is None or before != (stamp, reading.end):
            self._seq += 1
        graph.seq = self._seq
        self._graph, self._stamp = graph, stamp
        self._version, self._start, self._end = reading.version, reading.start, reading.end
        self._mark, self._is_loose = reading.mark, reading.tail is not None or self._file.has_leftover()
        return graph

    def _content(self) -> tuple[bytes, Stamp]:
        try:
            return self._file.read()
        except OSError as error:
            self._fail(error, "read")

    def _put_in_order(self) -> None:
        """Before anything is written behind it: what it was appended to could not be read."""
        content, stamp = self._content()
        reading = read(content, time_of(stamp[0]), self.path)
        if stamp != self._stamp or reading.end != self._end:
            raise Overtaken
        self._stamp = self._tidy(content, reading)
        self._is_loose = False

    def _tidy(self, content: bytes, reading: Reading) -> Stamp:
        """Keep aside what is no record at the end, cut it off, and remove what a killed process left; the file's
        stamp after that. For who holds the lock."""
        if reading.tail is not None:
            self._quarantine.keep([kept(content, reading.tail)])
            Tape(self._file.target).cut(reading.end)
        self._file.discard()
        return self._look()

    def _report(self, content: bytes, stretches: list[Stretch]) -> None:
        """Say once what is not served."""
        found = {(crc32(content[each.start : each.end]), each): each for each in stretches}
        new = [stretch for said, stretch in found.items() if said not in self._reported]
        self._reported.update(found)
        for stretch in new[:REPORTED]:
            log.warning("%s: bytes %d to %d are not served: %s", self.path, stretch.start, stretch.end, stretch.reason)
        if len(new) > REPORTED:
            log.warning("%s: %d more stretches are not served", self.path, len(new) - REPORTED)
        if new:
            log.warning("The rest is served. Before any of it leaves the file it is kept in %s", self._quarantine.path)

    # ── upkeep ───────────────────────────────────────────────────────────────────────────────────

    def check(self, repair: bool) -> list[Finding]:
        """Is every byte of the file a record, and is nothing lying about? What the records say, `load` tells."""
        content, stamp = self._content()
        reading = read(content, time_of(stamp[0]), self.path)
        tail, bad, left = reading.tail, reading.bad, self._has_leftover()
        is_tidy = repair and (tail is not None or left) and self._tidied()
        if repair and bad:
            self.compact()
        aside = self._quarantine.path
        remedy = KEPT_ASIDE.format(place=aside) + RESTORED
        findings = [
            Finding(
                f"bytes {one.start} to {one.end} of {self.path} are not served: {one.reason}",
                repair,
                remedy=remedy,
                moved_to=aside,
            )
            for one in bad
        ]
        if tail is not None:
            text = f"{self.path} ends in {tail.end - tail.start} bytes that are not served: {tail.reason}"
            findings.append(Finding(text, is_tidy, remedy=HEALED, moved_to=aside))
        if left:
            text = f"{self._file.temporary} was left by a process that died"
            findings.append(Finding(text, repaired=is_tidy, remedy=HEALED))
        return findings

    def _tidied(self) -> bool:
        """Put the end of the file in order, as the next write would."""
        try:
            with self.locked():
                content, stamp = self._content()
                self._tidy(content, read(content, time_of(stamp[0]), self.path))
        except (OSError, Overtaken, StoreFault) as error:
            log.warning("%s: tidying up waits for the next write: %s", self.path, error)
            return False
        return True

    def compact(self, progress: Callable[[int, int | None], None] | None = None) -> None:
        """Write the shortest journal of the same facts, of the newest version; what was not served is kept aside."""
        with self.begin():
            content, stamp = self._content()
            reading = read(content, time_of(stamp[0]), self.path)
            try:
                self._quarantine.keep(kept(content, stretch) for stretch in reading.unserved)
                version = self.new_version if stamp == MISSING else mcpmem.NEWEST
                self._replace(mcpmem.MAGIC[version] + mcpmem.frame(whole(reading.content.graph()), version))
            except OSError as error:
                self._fail(error, "write")
            self._stamp = None  # to be read again, with the ids that are known
        if progress is not None:
            progress(1, 1)

    def close(self) -> None:
        self._lock.close()
        self._tape.close()
        self._forget()


# Records that take nothing away: who reads only some of them knows less, and nothing wrong.
ADDING = {mcpmem.CREATE_ENTITY, mcpmem.CREATE_RELATION, mcpmem.ADD_OBSERVATIONS}
