"""Ways through a graph. Nothing here knows where the graph is kept: a walk asks a view for the
neighbours of a whole frontier at a time, so it costs one query per hop when the view is SQL.

The law of order: shorter before longer; between equally long ways the one that takes, at the first place
where they part, the neighbour that the view names first. It holds however the search went about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, count, islice
from operator import itemgetter, or_
from typing import Protocol

from mcp_memory.pace import here, spend

# What one search for all paths may cost: entities asked about plus steps tried, about 0.2 s when resident.
# Simple paths are exponentially many; somebody has to say when it is enough.
MOST_STEPS = 200_000

# A frontier is asked about in parts: between two of them others get their turn, and a call is called off.
FRONTIER_AT_ONCE = 500

second = itemgetter(1)


class Walkable(Protocol):
    """Anything that knows who is beside whom."""

    def neighbours(self, entity_ids: Iterable[int], /) -> Iterable[tuple[int, Sequence[int]]]:
        """Each of these with its neighbours, every one once and always in the same order, without itself."""


def shortest(view: Walkable, start: int, goal: int) -> list[int] | None:
    """The first of the shortest paths; None where there is no path. The view must be symmetric."""
    return next(_by_length(view, start, goal, None, _Meter(float("inf"))), None)


def simple_paths(
    view: Walkable, start: int, goal: int, max_edges: int, max_paths: int, most_steps: int = MOST_STEPS
) -> tuple[list[list[int]], bool]:
    """Paths of at most `max_edges` that visit nobody twice, in order; were there more, or too much to search?

    The view must be symmetric."""
    paths: list[list[int]] = []
    try:
        for path in _by_length(view, start, goal, max_edges, _Meter(most_steps)):
            if len(paths) == max_paths:
                return paths, True
            paths.append(path)
    except _TooMuch:
        return paths, True
    return paths, False


def reach(view: Walkable, seeds: Iterable[int], depth: int, limit: int) -> tuple[list[int], bool]:
    """Who can be reached from the seeds in `depth` steps, in order of discovery; did `limit` leave some out?"""
    found = dict.fromkeys(seeds)
    frontier = list(found)
    for _ in range(depth):
        if not frontier or len(found) > limit:
            break
        known = len(found)
        for start in range(0, len(frontier), FRONTIER_AT_ONCE):
            some = frontier[start : start + FRONTIER_AT_ONCE]
            spend(len(some))
            found.update(dict.fromkeys(chain.from_iterable(map(second, view.neighbours(some)))))
        frontier = list(islice(found, known, None))
    return list(islice(found, limit)), len(found) > limit


class _TooMuch(Exception):
    """The search cost what it may cost."""


class _Meter:
    def __init__(self, most: float) -> None:
        self._left = most
        self._pace = here()

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooMuch
        if self._pace is not None:
            self._pace.spend(steps)


class _Meeting:
    """Two searches towards each other, ring by ring, with everything the view has answered so far.

    `near[i]` are those exactly i steps from the start, `far[i]` those i steps from the goal."""

    def __init__(self, view: Walkable, start: int, goal: int, meter: _Meter) -> None:
        self._view = view
        self._meter = meter
        self._ends = {start, goal}  # where a way begins or ends, it does not pass
        self.known: dict[int, Sequence[int]] = {}
        self.near = [{start}]
        self.far = [{goal}]
        self._inside_near: set[int] = set()  # every ring but the last
        self._inside_far: set[int] = set()
        self._back = [{goal}]

    @property
    def is_over(self) -> bool:
        """Has one of the searches seen everybody it can reach?"""
        return not (self.near[-1] and self.far[-1])

    @property
    def size(self) -> int:
        """How many are joined with both, at least, once it is over."""
        return max(len(self._inside_near), len(self._inside_far))

    @property
    def bridged(self) -> int:
        """The longest way that the rings cover: both radii, and one step across."""
        return len(self.near) + len(self.far) - 1

    @property
    def _near_is_smaller(self) -> bool:
        return len(self.near[-1]) <= len(self.far[-1])

    def grow(self, length: int) -> None:
        """Let the rings cover every way of this length, the smaller side first."""
        # Meeting in the middle asks about the square root of what a search from one end would; and the
        # last step, which is half of the rest, is looked across and not taken.
        while self.bridged < length and not self.is_over:
            if self._near_is_smaller:
                rings, inside = self.near, self._inside_near
            else:
                rings, inside = self.far, self._inside_far
            inside |= rings[-1]
            rings.append(self._around(rings[-1]) - inside)

    def _around(self, ids: set[int]) -> set[int]:
        self._ask(ids)
        return set().union(*map(self.known.__getitem__, ids))

    def _ask(self, ids: set[int]) -> None:
        self._meter.spend(len(ids))
        unknown = ids.difference(self.known)
        if unknown:
            self.known.update(self._view.neighbours(unknown))

    def first_bridge(self) -> tuple[set[int], set[int]]:
        """Who stands on either side where the rings touch for the first time; nobody where they do not."""
        return self._bridge(self.near[-1], self.far[-1])

    def _bridge(self, near: set[int], far: set[int]) -> tuple[set[int], set[int]]:
        one, other = (near, far) if self._near_is_smaller else (far, near)
        self._ask(one)
        known = self.known
        standing = {here for here in one if not other.isdisjoint(known[here])}
        across = self._around(standing) & other if standing else standing
        self._ask(across)
        return (standing, across) if self._near_is_smaller else (across, standing)

    def first_layers(self, bridge: tuple[set[int], set[int]]) -> list[set[int]]:
        """Where a shortest way may stand, for each number of steps left."""
        layers = self.far[:-1]
        layers += reversed(bridge)
        for ring in self.near[-2:0:-1]:
            layers.append(self._around(layers[-1]) & ring)
        return layers[: self.bridged]  # for neighbours of each other the near side is the start itself

    def layers(self, length: int) -> list[set[int]]:
        """Where a way of this length may stand, for each number of steps left.

        Never more than can be reached in the steps done, nor than can reach the goal in exactly those
        left, so that trying to walk it seldom ends in the middle of nowhere."""
        layers = self._backwards()
        within = list(accumulate(self.near, or_))
        if self.bridged == length:
            near, layers[-1] = self._bridge(within[-1], layers[-1])
            layers.append(near - self._ends)
        for left in range(len(layers), length):
            layer = self._around(layers[-1]) - self._ends
            done = length - left
            layers.append(layer & within[done] if done < len(within) else layer)
        return layers

    def _backwards(self) -> list[set[int]]:
        """Where ways of each length to the goal begin, as far as the search from there has come."""
        while len(self._back) < len(self.far):
            self._back.append(self._around(self._back[-1]) - self._ends)
        return self._back[:]


def _by_length(view: Walkable, start: int, goal: int, max_edges: int | None, meter: _Meter) -> Iterator[list[int]]:
    """Every simple path, one length after the other."""
    if start == goal:
        yield [start]
        return
    meeting = _Meeting(view, start, goal, meter)
    has_met = False
    for length in count(1) if max_edges is None else range(1, max_edges + 1):
        meeting.grow(length)
        if has_met:
            yield from _walked(meeting.known, meeting.layers(length), start, meter)
        elif all(bridge := meeting.first_bridge()):
            has_met = True
            yield from _walked(meeting.known, meeting.first_layers(bridge), start, meter)
        if meeting.is_over and (not has_met or length >= meeting.size):
            return


def _walked(
    known: Mapping[int, Sequence[int]], layers: list[set[int]], start: int, meter: _Meter
) -> Iterator[list[int]]:
    """Every simple path that stands in the layer of each number of steps left."""
    path = {start: None}
    branches = [iter(known[start])]
    while branches:
        left = len(layers) - len(path)
        layer = layers[left]
        for there in branches[-1]:
            if there not in layer or there in path:
                continue
            if not left:
                yield [*path, there]
                continue
            meter.spend(1)
            path[there] = None
            branches.append(iter(known[there]))
            break
        else:
            branches.pop()
            path.popitem()
