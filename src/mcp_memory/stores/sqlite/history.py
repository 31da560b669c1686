"""What the feed of a database tells about the past: entries newest first, by entity, by who and when.

The law: nothing here changes the feed. Answers are complete up to the last commit, though the index by
entity follows in quiet moments: what it has not seen yet is looked through."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Any

from mcp_memory.changes import FLAGGING, NOTED, Entry, encode_changes
from mcp_memory.graph import Graph
from mcp_memory.history.examining import Fingerprint, subjects
from mcp_memory.space import CHANGES_PER_ENTRY
from mcp_memory.stores.sqlite.connection import plain_words
from mcp_memory.stores.sqlite.opening import OpenFile
from mcp_memory.stores.sqlite.queries import Queries
from mcp_memory.stores.sqlite.refeeding import facts_of, portions
from mcp_memory.stores.sqlite.rows import entry_of, length_of
from mcp_memory.stores.store import Calls, Dropped

SQL = Queries("history")
FEED = Queries("feed")
# So many entries are fetched at a time.
PAGE = 64
FEW = 3
BEGINNING = "beginning"  # what the entries of a state are called that stands for the history before it


class FeedHistory:
    """The feed of one file, for reading. Whoever asks holds the space's lock."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file

    def _rows(self, statement: str, given: Any = ()) -> list[Any]:
        with plain_words(self._file.path):
            return self._file.ready().execute(statement, given).fetchall()

    def _one(self, statement: str, given: Any = ()) -> Any:
        with plain_words(self._file.path):
            return self._file.ready().execute(statement, given).get

    @property
    def floor(self) -> int:
        """The last entry of the beginning. What came before it is not known call by call."""
        return int(self._one(SQL.floor) or 0)

    @property
    def first(self) -> int:
        """The first entry there is, of the beginning or of the history."""
        return int(self._one(SQL.first) or 1)

    def set_floor(self, seq: int) -> None:
        """Say which entry is the last of the beginning. Inside the write that brings a whole feed."""
        with plain_words(self._file.path):
            self._file.ready().execute(SQL.set_floor, (seq,))

    @property
    def last(self) -> int:
        return int(self._one(FEED.last))

    def between(self, after: int, upto: int) -> Iterator[Entry]:
        """The entries with after < seq <= upto, oldest first, with what they altered."""
        while after < upto:
            rows = self._rows(SQL.whole, (after, min(after + PAGE, upto)))
            yield from map(entry_of, rows)
            after = min(after + PAGE, upto)

    def noted(self, after: int) -> Iterator[Entry]:
        """The entries after this one that note a request, oldest first."""
        return map(entry_of, self._rows(SQL.noted, (after, NOTED)))

    def calls(self, wanted: Calls) -> Iterator[Entry]:
        """The first entries of the calls that were wanted, newest first."""
        before = self.last + 1 if wanted.before is None else wanted.before
        if wanted.entities is not None:
            yield from self._calls_about(wanted, before)
            return
        while True:
            rows = self._rows(
                SQL.calls,
                {
                    "floor": self.floor,
                    "before": before,
                    "by": wanted.by.lower(),
                    "tool": wanted.tool,
                    "since": wanted.since,
                    "until": wanted.until,
                    "limit": PAGE,
                },
            )
            yield from map(entry_of, rows)
            if len(rows) < PAGE:
                return
            before = rows[-1][0]

    def _calls_about(self, wanted: Calls, before: int) -> Iterator[Entry]:
        """Entries that these entities are in, newest first; pieces of one call each for itself."""
        assert wanted.entities is not None
        floor, indexed = self.floor, self._one(FEED.projected)
        fresh = (
            entry.seq
            for entry in reversed(list(self.between(max(indexed, floor), before - 1)))
            if not wanted.entities.isdisjoint(subjects(entry))
        )
        ways = [self._indexed(entity_id, floor, min(before, indexed + 1)) for entity_id in wanted.entities]
        previous = 0
        for seq in merge(fresh, *ways, reverse=True):
            if seq == previous:
                continue
            previous = seq
            at, origin, tool, _ = self._rows(SQL.head, (seq,))[0]
            if wanted.since and at < wanted.since:
                continue
            if (
                wanted.by.lower() in origin.lower()
                and wanted.tool in ("", tool)
                and (not wanted.until or at <= wanted.until)
            ):
                yield entry_of(self._rows(SQL.one, (seq,))[0])

    def _indexed(self, entity_id: int, floor: int, before: int) -> Iterator[int]:
        while True:
            rows = self._rows(SQL.of_entity, (entity_id, floor, before, PAGE))
            yield from (seq for (seq,) in rows)
            if len(rows) < PAGE:
                return
            before = rows[-1][0]

    def call(self, number: int) -> list[Entry]:
        """Every entry of the call with this number; [] if there is none."""
        rows = self._rows(SQL.one, (number,))
        if not rows or rows[0][5] or number <= self.floor:
            return []
        end = self._one(SQL.call_after, (number,)) or self.last + 1
        return [entry_of(rows[0]), *self.between(number, end - 1)]

    def newest(self, count: int) -> list[int]:
        """The numbers of the last calls, newest first, without what the server did by itself."""
        return [seq for (seq,) in self._rows(SQL.last_calls, (self.floor, FLAGGING, count))]

    def size_of(self, entry: Entry) -> int:
        """How many changes the whole call of this first entry made, without reading them."""
        size, seq = len(entry.changes), entry.seq
        while rows := self._rows(SQL.rest_of_call, (seq,)):
            seq, part, beginning = rows[0]
            if not part:
                break
            size += length_of(beginning)
        return size

    def at(self, moment: str) -> int | None:
        """The last entry that was written by then; None when that is before the first."""
        found: int | None = self._one(SQL.at_moment, (moment,))
        return found

    def ids_named(self, name: str) -> list[int]:
        """Every entity that bears this name or bore it."""
        return [entity_id for (entity_id,) in self._rows(SQL.ids_named, (name,))]

    def name_of(self, entity_id: int) -> str | None:
        found: str | None = self._one(SQL.name_of, (entity_id,))
        return found

    # ── letting go of the oldest ─────────────────────────────────────────────────────────────────

    def beginning_for(self, cutoff: str | None, most_calls: int | None) -> int:
        """The last entry that need not be known as history: written before `cutoff`, or by more than so many calls."""
        floor, last = self.floor, self.last
        ends = [floor]
        if cutoff is not None:
            kept = self._one(SQL.first_since, (floor, cutoff))
            ends.append(last if kept is None else kept - 1)
        if most_calls is not None:
            kept = self._one(SQL.first_of_newest, (floor, most_calls))
            ends.append(last if kept is None else kept - 1)
        return max(ends)

    def begin_after(self, seq: int, state: Graph) -> Dropped:
        """Make the state after this entry the beginning, in place of every entry up to it. Inside a write."""
        connection = self._file.ready()
        calls, until = self._rows(SQL.dropped, (self.floor, seq))[0]
        at = self._one(SQL.at_of, (seq,))
        # The pieces of the state take the last numbers of what they stand for: so there must not be more of them.
        facts = sum(weight for _, weight in facts_of(state))
        most = max(CHANGES_PER_ENTRY, facts if seq < FEW else -(-2 * facts // (seq - 1)))
        first = seq + 1 - max(sum(1 for _ in portions(facts_of(state), most)), 1)
        with plain_words(self._file.path):
            connection.execute(SQL.drop_entries, (seq,))
            # Nothing to begin with is a beginning too, and the number must stay.
            for part, changes in enumerate(portions(facts_of(state), most) if facts else [[]]):
                connection.execute(FEED.append, (first + part, at, "", BEGINNING, part, encode_changes(changes), None))
            connection.execute(SQL.set_floor, (seq,))
            connection.execute(SQL.drop_subjects, (seq,))
            connection.execute(SQL.drop_gone)
        return Dropped(calls, until)

    # ── upkeep ───────────────────────────────────────────────────────────────────────────────────

    @property
    def indexed(self) -> int:
        """The last entry that the index by entity knows."""
        return int(self._one(FEED.projected))

    def fingerprint(self) -> Fingerprint:
        """Of the index by entity, as it stands."""
        found = Fingerprint()
        with plain_words(self._file.path):
            for entity_id, seq in self._file.ready().execute(SQL.subjects):
                found.add(entity_id, seq)
        return found

    def nameless(self) -> int:
        """How many entities the history tells about without knowing their names."""
        return int(self._one(SQL.nameless))
