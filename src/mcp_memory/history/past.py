"""What a tool may ask about the past: the calls there were, the way back from one, the graph as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mcp_memory.changes import AnyChange, CallsUndone, Entry
from mcp_memory.facts import BadInput, Limits, MemoryFault
from mcp_memory.graph import Graph
from mcp_memory.history.moments import end
from mcp_memory.history.obstacles import abandoned, culprits, obstacles
from mcp_memory.history.rewinding import Before, WayBack
from mcp_memory.history.telling import Telling

if TYPE_CHECKING:
    from mcp_memory.stores.store import Calls, History

MOST_TOLD = 3  # obstacles
# Graphs of the past that are kept: one question about the past is seldom the only one.
MOST_KEPT = 2
HUGE = 200_000  # entities; of such graphs one is kept


class CannotUndo(MemoryFault):
    """What was built on a call since. Nothing was changed."""

    code = "cannot_undo"


class Past:
    """The feed behind a graph, for one call."""

    def __init__(self, history: History, graph: Graph, limits: Limits, origin: str = "") -> None:
        self.history = history
        self.graph = graph
        self.limits = limits
        self.origin = origin

    # ── what happened ────────────────────────────────────────────────────────────────────────────

    def name_of(self, entity_id: int) -> str:
        """A name, also of an entity that is gone."""
        if entity_id in self.graph.by_id:
            return self.graph.name_of(entity_id)
        return self.history.name_of(entity_id) or f"entity {entity_id}"

    def entities_named(self, name: str) -> set[int]:
        """Every entity that bears this name or bore it."""
        found = set(self.history.ids_named(name))
        bearer = self.graph.ids[name]
        return found if bearer is None else found | {bearer}

    def calls(self, wanted: Calls) -> Iterator[Entry]:
        return self.history.calls(wanted)

    def lines(self, entry: Entry, about: set[int] | None = None, relation_id: int | None = None) -> Iterator[str]:
        """What an entry did, in words."""
        return Telling(entry, self.name_of).lines(about, relation_id)

    def says(self, entry: Entry, words: str, about: set[int] | None = None, relation_id: int | None = None) -> bool:
        """Do these words, folded, stand anywhere in what an entry did? However long its texts are."""
        whole = Telling(entry, self.name_of, is_whole=True).lines(about, relation_id)
        return any(words in line.casefold() for line in whole)

    def call(self, number: int) -> list[Entry]:
        """Every entry of the call with this number."""
        found = self.history.call(number)
        if found:
            return found
        floor = self.history.floor
        if 0 < number <= floor:
            raise BadInput(
                f"Call {number} is older than this history, which begins after {floor}: what was then is kept, but "
                "not how it came about."
            )
        raise BadInput(f"There is no call {number}. history lists the calls with their numbers.")

    # ── the way back ─────────────────────────────────────────────────────────────────────────────

    def undoing_last(self, count: int) -> tuple[list[Entry], list[AnyChange]]:
        """The last calls, newest first (the first entry of each), and the changes that take all of them back."""
        numbers = self.history.newest(count)
        if len(numbers) < count:
            known = f"only {len(numbers)} calls" if numbers else "no call"
            raise BadInput(f"There is {known} in this history that could be taken back.")
        entries = list(self.history.between(numbers[-1] - 1, self.graph.seq))
        way = WayBack(self.graph, Before(entries))
        first = {entry.seq: entry for entry in entries}
        return [first[number] for number in numbers], [CallsUndone(numbers), *way.changes()]

    def undoing(self, number: int) -> tuple[Entry, list[AnyChange]]:
        """One call, and the changes that take it back though later ones stay; CannotUndo if they do not allow it."""
        entries = self.call(number)
        later = list(self.history.between(entries[-1].seq, self.graph.seq))
        before = Before(entries)
        way = WayBack(self.graph, before)
        if later:
            self._refuse_what_is_built_on(number, way, later)
            dated = Before(later).dates
            before.dates = {entity: date for entity, date in before.dates.items() if entity not in dated}
            way.dying |= abandoned(way)
        changes = way.changes()
        return entries[0], [CallsUndone([number]), *changes]

    def _refuse_what_is_built_on(self, number: int, way: WayBack, later: list[Entry]) -> None:
        found = list(obstacles(way, later))
        if not found:
            return
        self._refuse_what_was_taken_back(number, later)
        reasons = []
        for obstacle in found[:MOST_TOLD]:
            calls = culprits(later, obstacle.key)
            by = " and ".join(f"call {entry.seq} {entry.tool}" for entry in calls[-2:])
            reasons.append(obstacle.reason + (f" ({by})" if by else ""))
        if len(found) > MOST_TOLD:
            reasons.append(f"and {len(found) - MOST_TOLD} more")
        since = len({entry.call for entry in later}) + 1
        raise CannotUndo(
            f"Call {number} cannot be taken back alone, later calls build on it: {'; '.join(reasons)}. Nothing was "
            f"changed. Undo those calls first, or everything since with last: {since}."
        )

    @staticmethod
    def _refuse_what_was_taken_back(number: int, later: list[Entry]) -> None:
        taken = [
            (entry.call, change.calls) for entry in later for change in entry.changes if type(change) is CallsUndone
        ]
        gone = {call for _, calls in taken for call in calls}
        for call, calls in taken:
            if number in calls and call not in gone:  # an undo may itself have been taken back
                raise CannotUndo(
                    f"Call {number} was taken back already, by call {call}. Nothing was changed. To bring it back undo "
                    f"call {call}."
                )

    # ── as it was ────────────────────────────────────────────────────────────────────────────────

    def moment(self, given: str) -> int:
        """The last entry of a moment: the number of a call, or a time in UTC."""
        floor, last = self.history.floor, self.history.last
        given = given.strip()
        if given.isascii() and given.isdigit():
            number = int(given)
            if number > last:
                newest = self.history.newest(1)
                known = f"the last is {newest[0]}" if newest else "there is none"
                raise BadInput(f"There is no call {number} yet; {known}.")
            pieces = self.history.call(number)
            return self._not_before(pieces[-1].seq if pieces else number, floor)
        moment = end(given, "as_of, unless it is the number of a call,")
        found = self.history.at(moment)
        return self._not_before(found or 0, floor)

    def _not_before(self, seq: int, floor: int) -> int:
        if seq < floor:
            raise BadInput(f"This history begins after call {floor}; what was before is not known any more.")
        return seq

    def graph_at(self, seq: int) -> Graph:
        """The graph as it was after this entry, beside the one there is."""
        graph = self.graph.fresh()
        if graph.seq <= seq:
            graph.apply(self.history.between(graph.seq, seq))
        else:
            way = WayBack(graph, Before(self.history.between(seq, graph.seq)))
            graph.apply([Entry(seq, "", way.changes())])
        return graph


class PastGraphs:
    """The graphs of the past that were asked for last."""

    def __init__(self) -> None:
        self._base: object = None
        self._kept: dict[int, Graph] = {}

    def at(self, past: Past, seq: int) -> Graph:
        if past.graph.base is not self._base:  # loaded anew: perhaps another file
            self._base = past.graph.base
            self._kept.clear()
        graph = self._kept.pop(seq, None)
        if graph is None:
            most = 1 if past.graph.entity_count > HUGE else MOST_KEPT
            while len(self._kept) >= most:
                del self._kept[next(iter(self._kept))]
            graph = past.graph_at(seq)
        self._kept[seq] = graph
        return graph
