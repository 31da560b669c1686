"""A merge is whole or it is not: whenever the process is killed, an entity is itself or part of the other."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from mcp_memory.assembly import open_space
from tests.conftest import STORES, link, person
from tests.crash.harness import Census, Server

ROUNDS = 6
PARTS = 40  # the most entities one call may create


def create_parts(server: Server) -> None:
    server.call("create_entities", entities=[{"name": "whole"}, {"name": "friend"}])
    server.call("create_entities", entities=[person(f"part {i}", f"about {i}", f"more of {i}") for i in range(PARTS)])
    server.call("create_relations", relations=[link(f"part {i}", f"kind {i}", "friend") for i in range(PARTS)])


def home_of(census: Census, number: int) -> str:
    """Where the facts of a part are: all of them in one place."""
    name = f"part {number}"
    home = name if census.names[name] else "whole"
    other = "whole" if home == name else name
    for text in (f"about {number}", f"more of {number}"):
        assert (census.texts[home, text], census.texts[other, text]) == (1, 0)
    kind = f"kind {number}"
    assert (census.links[home, kind, "friend"], census.links[other, kind, "friend"]) == (1, 0)
    return home


@pytest.mark.parametrize("store", STORES)
def test_a_killed_merge_leaves_no_half_of_it(store: str, tmp_path: Path) -> None:
    chance = random.Random(os.urandom(8))
    for turn in range(ROUNDS):
        path = tmp_path / f"{turn}-{store}"
        with Server(path) as server:
            create_parts(server)
            # Long lines: only a few wait in the pipe, so that the end comes while some are being done.
            asked = [
                server.send_long("merge_entities", {"source": f"part {i}", "target": "whole"})
                for i in range(chance.randrange(4, PARTS))
            ]
            server.kill()
            acknowledged = [i for i, ident in enumerate(asked) if server.was_acknowledged(ident)]

        space = open_space(path)
        census = Census.of_graph(space.graph())
        homes = [home_of(census, i) for i in range(PARTS)]
        assert {homes[i] for i in acknowledged} <= {"whole"}
        assert [finding.text for finding in space.check()] == []
        space.close()
