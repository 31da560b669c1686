"""A user goes from the official server to ours and back by changing one line of a configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.official.pair import Step
from tests.official.recorded import add, create, entity, forget, relate, relation
from tests.peers import Peer, official_server, our_server

FIRST: list[Step] = [
    create(entity("Ada", "wrote the first program", "żółć 😀 \u2028"), entity("Bob", kind="")),
    relate(relation("Ada", "Bob"), relation("Ada", "nobody yet", "dreams of")),
]
SECOND: list[Step] = [
    add("Ada", "met Bob", "wrote the first program"),
    create(entity("Ada", "is skipped"), entity("Carol", "is new")),
    relate(relation("Carol", "Ada")),
    forget("Ada", "met Bob"),
]
THIRD: list[Step] = [
    create(entity("nobody yet", "is somebody now")),
    add("Carol", "came with the other server"),
]

Start = Callable[[Path], Peer]


def ours(file: Path) -> Peer:
    return our_server("--profile", "official", "--memory-file", str(file))


def ours_in_full(file: Path) -> Peer:
    return our_server("--memory-file", str(file))


def continued(file: Path, start: Start, steps: list[Step]) -> Any:
    """One session on this file; the whole graph as its server shows it at the end."""
    with start(file) as peer:
        peer.initialize()
        for step in steps:
            assert isinstance(step, dict)
            said = peer.request(step["method"], step["params"])
            assert not said.get("isError"), said
        return peer.call("read_graph")["structuredContent"]


@pytest.mark.parametrize(
    "servers",
    [(official_server, ours, official_server), (ours, official_server, ours), (ours, ours, ours)],
    ids=["there and back", "here and back", "ours alone"],
)
def test_whoever_continues_a_file_finds_everything_and_writes_what_the_official_server_would(
    servers: tuple[Start, ...], tmp_path: Path
) -> None:
    alone, shared = tmp_path / "alone.jsonl", tmp_path / "shared.jsonl"
    for server, steps in zip(servers, (FIRST, SECOND, THIRD), strict=True):
        wanted = continued(alone, official_server, steps)

        assert continued(shared, server, steps) == wanted
        assert shared.read_bytes() == alone.read_bytes()


def test_what_the_official_server_wrote_is_read_by_the_full_profile_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    wanted = continued(file, official_server, [*FIRST, *SECOND])
    written = file.read_bytes()

    shown = continued(file, ours_in_full, [])

    assert [entity["name"] for entity in shown["entities"]] == [entity["name"] for entity in wanted["entities"]]
    assert file.read_bytes() == written
