"""Several processes on one file, dying as they please: no acknowledged write is lost."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.peers import Message, Peer, PeerFault, our_server
from tests.stores.asking import Asked, entity_line

PROCESSES = 4
WRITES = 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.jsonl"


def server(path: Path) -> Peer:
    return our_server("--profile", "official", "--memory-file", str(path))


def writes(who: int, count: int) -> list[Message]:
    """Pipelined calls, whose ids are the names they create."""
    entity: dict[str, Any] = {"entityType": "t", "observations": [f"said by {who}"]}
    return [
        {
            "jsonrpc": "2.0",
            "id": f"{who}-{number}",
            "method": "tools/call",
            "params": {"name": "create_entities", "arguments": {"entities": [{"name": f"{who}-{number}", **entity}]}},
        }
        for number in range(count)
    ]


def acknowledged(peer: Peer, count: int) -> list[str]:
    """The names whose creation was answered before the server ended."""
    names = []
    for _ in range(count):
        try:
            answer = peer.receive()
        except PeerFault:
            break
        assert not answer["result"].get("isError"), answer
        names.append(answer["id"])
    return names


def test_four_processes_lose_nothing(path: Path) -> None:
    with ExitStack() as stack:
        peers = [stack.enter_context(server(path)) for _ in range(PROCESSES)]
        for peer in peers:
            peer.initialize()
        for who, peer in enumerate(peers):
            peer.send(*writes(who, WRITES))
        answered = [acknowledged(peer, WRITES) for peer in peers]

    memory = Asked(path)
    assert [len(names) for names in answered] == [WRITES] * PROCESSES
    assert sorted(memory.names()) == sorted(name for names in answered for name in names)
    for names in answered:  # and each process's own are in the order in which it sent them
        assert [name for name in memory.names() if name in set(names)] == names
    assert memory.beside() == set()
    assert memory.is_sound()


def test_killed_processes_lose_nothing_that_was_answered(path: Path) -> None:
    chance = random.Random(18)
    answered: list[str] = []
    for round_ in range(4):
        with ExitStack() as stack:
            peers = [stack.enter_context(server(path)) for _ in range(2)]
            for peer in peers:
                peer.initialize()
            for who, peer in enumerate(peers):
                peer.send(*writes(round_ * 2 + who, WRITES))
            # It dies in the middle of whatever it does after that many answers.
            victim = peers[round_ % 2]
            answered += acknowledged(victim, chance.randrange(1, WRITES - 20))
            victim.process.kill()
            answered += acknowledged(victim, WRITES)
            answered += acknowledged(peers[1 - round_ % 2], WRITES)

    memory = Asked(path)
    names = memory.names()
    assert set(answered) <= set(names)
    assert len(names) == len(set(names))
    assert memory.beside() == set()
    assert memory.is_sound()


DIE_BEFORE_THE_RENAME = """
import os, sys
from mcp_memory.assembly import open_space
from mcp_memory.changes import EntityCreated, Plan
from mcp_memory.stores.wholefile import WholeFile

WholeFile.replace = lambda self: os._exit(9)
open_space(sys.argv[1]).commit(lambda graph: Plan([EntityCreated(graph.next_entity, "Bob", "t")]))
"""


def test_death_between_the_new_file_and_its_name_leaves_the_old_one(path: Path) -> None:
    path.write_bytes(entity_line("Ada"))
    memory = Asked(path)
    ended = subprocess.run([sys.executable, "-c", DIE_BEFORE_THE_RENAME, str(path)], check=False, timeout=60)
    assert ended.returncode == 9
    assert path.with_name("memory.jsonl.mcp-memory.tmp").read_bytes().endswith(entity_line("Bob"))

    assert memory.names() == ["Ada"]
    assert memory.beside() == set()
    memory.create("Eve")
    assert path.read_bytes() == entity_line("Ada") + b"\n" + entity_line("Eve")
    assert memory.is_sound()
