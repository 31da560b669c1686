"""What was asked of which server, which of it was acknowledged, and whether that is there.

The law: an answer that reached us, even from a process that is dead by now, is a promise. What was promised
is there exactly once; what was not may be there, but not twice and not in part."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import Any, NamedTuple

from mcp_memory.torture.client import Gone, Refused, Server
from mcp_memory.torture.deeds import Census, Deed

REFUSED, GONE, SILENT = "refused", "gone", "silent"


class Asked(NamedTuple):
    server: Server
    ident: int
    deed: Deed
    asked_at: float


class Kept(NamedTuple):
    """A promise: what must be there, or must be gone, and when it was asked for and acknowledged."""

    deed: Deed
    asked_at: float
    acknowledged_at: float

    def is_kept(self, census: Census) -> bool:
        return self.deed.count(census) == (1 if self.deed.takes is None else 0)


class Verdict(NamedTuple):
    """What of the promises is not as it should be."""

    lost: list[Kept]
    twice: list[Deed]  # there more than once, or in part


class Promises:
    def __init__(self) -> None:
        self._asked: list[Asked] = []
        self.kept: dict[int, Kept] = {}  # by the identity of the deed
        self.open: dict[int, Asked] = {}  # asked and not acknowledged: may be there or not
        self.counts = dict.fromkeys((REFUSED, GONE, SILENT), 0)
        self.acknowledged_ever = 0

    @property
    def acknowledged(self) -> list[Deed]:
        return [one.deed for one in self.kept.values()]

    @property
    def unanswered(self) -> list[Deed]:
        return [one.deed for one in self.open.values()]

    @property
    def is_collected(self) -> bool:
        return not self._asked

    def ask(self, server: Server, deed: Deed) -> None:
        self._note(server, server.send(deed.tool, **deed.arguments), deed)

    def _note(self, server: Server, ident: int, deed: Deed) -> None:
        self._asked.append(Asked(server, ident, deed, server.asked_at[ident]))

    def wait_for(self, server: Server, count: int) -> None:
        """Until this server has answered so many of the calls that were not collected yet."""
        idents = [one.ident for one in self._asked if one.server is server]
        with suppress(TimeoutError):  # it is told when answers are collected
            server.was_acknowledged(idents[count - 1])

    def collect(self) -> None:
        """Wait for every answer that can still come."""
        asked, self._asked = self._asked, []
        for one in asked:
            if self._outcome(one):
                self._acknowledge(one)
            else:
                self._leave_open(one)

    def _outcome(self, one: Asked) -> bool:
        try:
            is_done = not _tells_of_an_error(one.server.outcome(one.ident))
        except Refused:
            self.counts[REFUSED] += 1
        except Gone:
            self.counts[GONE] += 1
        except TimeoutError:
            self.counts[SILENT] += 1
            one.server.patience = 0.1  # it will not answer the others either
        else:
            self.counts[REFUSED] += not is_done
            return is_done
        return False

    def _acknowledge(self, one: Asked) -> None:
        self.acknowledged_ever += 1
        if one.deed.takes is not None:  # what it takes away is not promised any more
            self.kept.pop(id(one.deed.takes), None)
            self.open.pop(id(one.deed.takes), None)
        self.kept[id(one.deed)] = Kept(one.deed, one.asked_at, one.server.answered_at[one.ident])

    def _leave_open(self, one: Asked) -> None:
        taken = one.deed.takes
        if taken is None:
            self.open[id(one.deed)] = one
        elif (kept := self.kept.pop(id(taken), None)) is not None:  # it may be gone by now, or not
            # If it is there, that says when it was made, and nothing of when it was to be taken away.
            self.open[id(taken)] = one._replace(deed=taken, asked_at=kept.asked_at)

    def verdict(self, census: Census) -> Verdict:
        """Look for everything. What is lost is told once and then no longer looked for."""
        assert self.is_collected, "collect first"
        lost = [one for one in self.kept.values() if not one.is_kept(census)]
        twice = [one.deed for one in lost if one.deed.takes is None and one.deed.count(census) > 1]
        twice += [deed for deed in self.unanswered if deed.count(census) not in (0, 1)]
        for deed in [*(one.deed for one in lost), *twice]:
            self.kept.pop(id(deed), None)
            self.open.pop(id(deed), None)
        doubled = {id(deed) for deed in twice}
        return Verdict([one for one in lost if id(one.deed) not in doubled], twice)

    def newest_survivor(self, census: Census) -> float:
        """When the last fact that is there was asked for."""
        made: list[Kept | Asked] = [*self.kept.values(), *self.open.values()]
        there = (one.asked_at for one in made if one.deed.takes is None and one.deed.count(census) == 1)
        return max(there, default=-inf)


def _tells_of_an_error(answer: Any) -> bool:
    """Some calls do what they can and tell item by item what they could not."""
    if not isinstance(answer, dict):
        return False
    items = (item for value in answer.values() if isinstance(value, list) for item in value)
    return bool(answer.get("error")) or any(isinstance(item, dict) and "error" in item for item in items)
