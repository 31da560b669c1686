"""What is known of use: what happened, and what it adds up to.

Few of the entities are ever used, so all of it is kept in memory. Whoever alters it holds a lock; whoever
ranks by it does not, so nothing here is altered that somebody may be reading: it is replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from mcp_memory.changes import AnyChange, EntityAbsorbed, EntityDeleted
from mcp_memory.search.echo import Echoes
from mcp_memory.search.limbic import Company, Ranked, Use

if TYPE_CHECKING:
    from mcp_memory.graph import Graph

DAY = 86400


class Search(msgspec.Struct, eq=False):
    """One search and what it served, best first."""

    query: str
    origin: str
    at: float
    limit: int
    engine: str
    duration_ms: float | None
    rows: list[Ranked]
    is_logged: bool
    event_id: int | None = None  # once it is written as a trial
    used: dict[str, None] = {}

    def serves(self, name: str) -> bool:
        return any(row.candidate.name == name for row in self.rows)


class Credit(msgspec.Struct):
    """Something served was used, for the first time after its search."""

    name: str
    at: float
    search: Search
    beside: list[str]  # what had been used before after the same search


class Ending(msgspec.Struct):
    """An entity is no more; what was known of its use goes to the one that absorbed it, if one did."""

    name: str
    into: str | None = None


Note = Search | Credit | Ending


def endings_in(changes: Iterable[AnyChange], graph: Graph) -> list[Ending]:
    """Which entities of this graph are no more after these changes."""
    endings = []
    for change in changes:
        if isinstance(change, EntityDeleted | EntityAbsorbed) and change.id in graph.by_id:
            into = change.into if isinstance(change, EntityAbsorbed) else 0
            endings.append(Ending(graph.name_of(change.id), graph.name_of(into) if into in graph.by_id else None))
    return endings


class Habits(msgspec.Struct):
    """Everything that was ever used: few of the entities, so it is kept in memory whole."""

    uses: dict[str, Use] = {}
    company: dict[str, dict[str, Company]] = {}
    echoes: Echoes = msgspec.field(default_factory=Echoes)

    def use_of(self, name: str) -> Use | None:
        return self.uses.get(name)

    def company_of(self, name: str) -> Mapping[str, Company]:
        return self.company.get(name) or {}

    def take(self, credit: Credit) -> None:
        use = self.uses.get(credit.name) or Use()
        is_new_day = not use.count or int(credit.at // DAY) != int(use.last // DAY)
        # Replaced, not altered: another thread may be ranking.
        self.uses[credit.name] = Use(use.count + 1, max(use.last, credit.at), use.days + is_new_day)
        for other in credit.beside:
            self._join(credit.name, other, Company(1, credit.at))
        self.echoes.note(credit.search.query, credit.name, is_first=not credit.beside)

    def _join(self, one: str, other: str, company: Company) -> None:
        for here, there in ((one, other), (other, one)):
            known = self.company.get(here, {})
            old = known.get(there) or Company()
            self.company[here] = {**known, there: Company(old.count + company.count, max(old.last, company.last))}

    def end(self, ending: Ending) -> None:
        use = self.uses.pop(ending.name, None)
        company = self.company.pop(ending.name, {})
        for other in company:
            self.company[other] = {name: one for name, one in self.company[other].items() if name != ending.name}
        if ending.into is None:
            self.echoes.forget(ending.name)
            return
        self.echoes.rename(ending.name, ending.into)
        if use is not None:
            old = self.uses.get(ending.into) or Use()
            days = max(use.days, old.days)  # at least; the tables know exactly
            self.uses[ending.into] = Use(use.count + old.count, max(use.last, old.last), days)
        for other, one in company.items():
            if other != ending.into:
                self._join(ending.into, other, one)
