"""What is asked of a server, and how to see whether it is there: one write of one fact each.

The calls are those that every server of this family understands: the official server's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mcp_memory.graph import Graph

HUB = "hub"  # an entity that everybody writes to
IN_PART = -1  # a count of what should be there whole or not at all


class Census:
    """Every fact of a graph, counted by what it says."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.texts: Counter[tuple[str, str]] = Counter()
        self.links: Counter[tuple[str, str, str]] = Counter()

    @classmethod
    def of_graph(cls, graph: Graph) -> Census:
        census = cls()
        for entity in graph.entities():
            census.names[entity.name] += 1
            census.texts.update((entity.name, text) for text in entity.texts())
        census.links.update(
            (graph.name_of(one.source), one.relation_type, graph.name_of(one.target))
            for one in graph.active_relations()
        )
        return census

    @classmethod
    def of_answer(cls, told: Any) -> Census:
        """The same of what `read_graph` answers. Raises where that is no graph."""
        census = cls()
        for entity in told["entities"]:
            census.names[entity["name"]] += 1
            census.texts.update((entity["name"], _said(one)) for one in entity.get("observations", []))
        census.links.update((one["from"], one["relationType"], one["to"]) for one in told.get("relations", []))
        return census


def _said(observation: Any) -> str:
    """An observation is a text, or an object that holds one."""
    return str(observation["content"]) if isinstance(observation, dict) else str(observation)


class Deed(NamedTuple):
    """One write of one fact: the call, and how often a graph holds the fact. With `takes`: it takes away another's."""

    tool: str
    arguments: dict[str, Any]
    count: Callable[[Census], int]
    what: str
    takes: Deed | None = None


def entity(name: str, *observations: str) -> Deed:
    """Create an entity. It is there once, with each of its observations."""

    def count(census: Census) -> int:
        counts = {census.names[name], *(census.texts[name, text] for text in observations)}
        return counts.pop() if len(counts) == 1 else IN_PART

    arguments = {"entities": [{"name": name, "entityType": "Thing", "observations": list(observations)}]}
    return Deed("create_entities", arguments, count, f"entity {name!r}")


def observation(name: str, text: str) -> Deed:
    arguments = {"observations": [{"entityName": name, "contents": [text]}]}
    return Deed("add_observations", arguments, lambda census: census.texts[name, text], f"{text!r} of {name!r}")


def relation(source: str, relation_type: str, target: str) -> Deed:
    arguments = {"relations": [{"from": source, "to": target, "relationType": relation_type}]}
    what = f"{source!r} {relation_type} {target!r}"
    return Deed("create_relations", arguments, lambda census: census.links[source, relation_type, target], what)


def forgetting(name: str, text: str, told: Deed) -> Deed:
    """Take an observation back that `told` made."""
    arguments = {"deletions": [{"entityName": name, "observations": [text]}]}
    return Deed("delete_observations", arguments, told.count, f"forgetting {told.what}", told)


def deletion(name: str, told: Deed) -> Deed:
    """Delete an entity that `told` made, with all it holds."""
    return Deed("delete_entities", {"entityNames": [name]}, told.count, f"deleting {told.what}", told)


def parting(source: str, relation_type: str, target: str, told: Deed) -> Deed:
    """Delete a relation that `told` made."""
    arguments = {"relations": [{"from": source, "to": target, "relationType": relation_type}]}
    return Deed("delete_relations", arguments, told.count, f"deleting {told.what}", told)


def merger(source: str, text: str, target: str, told: Deed) -> Deed:
    """Merge an entity that `told` made, of this one text, into another one, which has the text then."""

    def count(census: Census) -> int:
        there = told.count(census), census.texts[target, text]
        return there[0] if there in ((1, 0), (0, 1)) else IN_PART

    arguments = {"source": source, "target": target}
    return Deed("merge_entities", arguments, count, f"merging {source!r} into {target!r}", told)


def deeds(who: str, merges: bool = False) -> Iterator[Deed]:
    """An endless stream of different writes, some of them to the entity that everybody writes to.

    `merges`: the server has a tool for that."""
    number = 0
    while True:
        name = f"{who}-{number}"
        yield entity(name, f"first of {name}", f"second of {name}")
        yield observation(HUB, f"about {name}")
        third = observation(name, f"third of {name}")
        yield third
        yield relation(HUB, "knows", name)
        if number % 2:
            yield forgetting(name, f"third of {name}", third)
        if number % 3 == 0:
            passing = entity(f"{name}-passing", f"all of {name}-passing")
            met = relation(f"{name}-passing", "met", HUB)
            yield from (passing, relation(name, "met", HUB), met)
            yield parting(f"{name}-passing", "met", HUB, met)
            yield deletion(f"{name}-passing", passing)
        if merges and number % 3 == 1:
            text = f"all of {name}-twin"
            twin = entity(f"{name}-twin", text)
            yield twin
            yield merger(f"{name}-twin", text, name, twin)
        number += 1
