"""Pairs of relation types that say the same thing from both ends; they live and die together."""

from __future__ import annotations

from mcp_memory.facts import Relation
from mcp_memory.graph import Graph

PAIRS = [("contiene", "parte_de")]
INVERSES = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
# How a relation made automatically is marked, in the words of the documented vocabulary.
AUTOMATIC = "Inversa automática de "


def inverse_of(relation_type: str) -> str | None:
    return INVERSES.get(relation_type)


def automatic_context(relation_type: str) -> str:
    return AUTOMATIC + relation_type


def with_inverse(graph: Graph, relation: Relation) -> list[Relation]:
    """A relation and, if there is one, the other half of its pair; active or not."""
    inverse = inverse_of(relation.relation_type)
    other = graph.relation(relation.target, relation.source, inverse) if inverse else None
    return [relation] if other is None or other is relation else [relation, other]
