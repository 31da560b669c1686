"""The passages of a graph, kept up with it: lots that are packed once, and what of them no longer counts.

A changed entity is packed into a new lot and hidden in the older ones. Lots of like size are packed into one, so
there are few of them, and a change costs what the changed entities cost, not what the graph does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp_memory.search.passages import Array, Passages, np

if TYPE_CHECKING:
    from mcp_memory.graph import Graph

# A lot takes in the newer one behind it when that has grown to this share of its size.
LIKE_SIZE = 0.5
# A word stands for those that begin like it from so many letters on; one that may be unfinished from fewer. A word
# that nobody says may have another ending of so many letters.
FEWEST_LETTERS, FEWEST_TYPED, ENDING = 4, 3, 2
# With more than this share hidden, everything is packed anew.
MOST_HIDDEN = 0.25


class Lot:
    """Some passages, and which of them still count."""

    def __init__(self, passages: Passages) -> None:
        self.passages = passages
        self.alive: Array | None = None  # of each row; None: all of them
        self.hidden = 0
        self.length = float(passages.lengths.sum())  # of all that count

    def __len__(self) -> int:
        return len(self.passages) - self.hidden

    def says(self, stem: str) -> tuple[int, int]:
        """How many passages say it, and how many have it in their title."""
        rows, slots = self.passages.saying(stem)
        if self.alive is None:
            return len(rows), int(self.passages.counts[slots].sum())
        titled = self.passages.rows_of(slots)
        return int(np.count_nonzero(self.alive[rows])), int(np.count_nonzero(self.alive[titled]))

    def hide(self, owners: Sequence[int]) -> None:
        rows = self.passages.rows_of(self.passages.places_of(owners))
        if not len(rows):
            return
        if self.alive is None:
            self.alive = np.ones(len(self.passages), bool)
        self.alive[rows] = False
        self.hidden = len(self.passages) - int(np.count_nonzero(self.alive))
        self.length = float(self.passages.lengths[self.alive].sum())

    def living(self) -> list[int]:
        """The entities that still count here."""
        if self.alive is None:
            return list(self.passages.owners.tolist())
        kept: list[int] = self.passages.owners[np.unique(self.passages.slot[self.alive])].tolist()
        return kept


class PassageIndex:
    """The passages of a graph. Ask `lots` first: it takes in what was touched."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._touched: set[int] = set()
        self.packed: tuple[Passages, int] | None = None  # packed whole here, and at which entry of the feed
        graph.followers.append(self._touched)
        kept = graph.kept_passages(graph) if graph.kept_passages is not None else None
        if kept is None:
            self._pack()
        else:
            # Made of this graph or an earlier one on the same base: what is no longer as the base has it, is looked at.
            self._lots = [Lot(kept)]
            self._touched |= graph.by_id.covered | graph.by_id.live.keys()

    def _pack(self) -> None:
        passages = Passages(self._graph.entities())
        self._lots = [Lot(passages)]
        self.packed = passages, self._graph.seq
        self._touched.clear()

    def lots(self) -> list[Lot]:
        if self._touched:
            touched = sorted(self._touched)
            self._touched.clear()
            for lot in self._lots:
                lot.hide(touched)
            if self._lots[0].hidden > MOST_HIDDEN * len(self._lots[0].passages):
                self._pack()
            else:
                self._add(touched)
        return self._lots

    def _add(self, entity_ids: Sequence[int]) -> None:
        """A new lot; those before it that are not much larger go into it."""
        wanted = set(entity_ids)
        size = sum(len(entity.observations) + 1 for each in wanted if (entity := self._graph.by_id.get(each)))
        while len(self._lots) > 1 and size > LIKE_SIZE * len(self._lots[-1].passages):
            last = self._lots.pop()
            wanted |= set(last.living())
            size += len(last)
        found = [self._graph.by_id.get(entity_id) for entity_id in sorted(wanted)]
        packed = Passages(entity for entity in found if entity is not None and not entity.is_placeholder)
        if len(packed):
            self._lots.append(Lot(packed))

    # ── what a question needs to know of all of them ─────────────────────────────────────────────

    def __len__(self) -> int:
        return sum(map(len, self.lots()))

    def mean_length(self) -> float:
        """Of all passages."""
        return (sum(lot.length for lot in self._lots) / (sum(map(len, self._lots)) or 1)) or 1.0

    def says(self, stem: str) -> int:
        """How many passages say it, or have it in their title if none does."""
        said, titled = map(sum, zip(*(lot.says(stem) for lot in self._lots), strict=True))
        return said or titled

    def rarity(self, said: int) -> float:
        """What it proves that a passage says what so many do: 0 if all do."""
        total = sum(map(len, self._lots))
        return math.log(1 + (total - said + 0.5) / (said + 0.5))

    def kin(self, stems: Sequence[str], is_known: bool, is_unfinished: bool) -> list[str]:
        """The stems that begin like one of these. What nobody says may end otherwise."""
        fewest = FEWEST_TYPED if is_unfinished else FEWEST_LETTERS
        long_enough = [stem for stem in stems if len(stem) >= fewest]
        beginnings = {stem if is_known else stem[: max(fewest, len(stem) - ENDING)] for stem in long_enough}
        return sorted({one for lot in self._lots for some in beginnings for one in lot.passages.beginning_with(some)})

    def speakers(self, asked: frozenset[str]) -> set[str]:
        """Of these words those by which somebody is named whose words are quoted."""
        return {word for lot in self.lots() for word in asked if word in lot.passages.speakers}
