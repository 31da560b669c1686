"""The bytes of the official server: what it writes for any character is what we write."""

from __future__ import annotations

from pathlib import Path

from tests.peers import official_server
from tests.stores.asking import Asked

# Everything with an escape of its own, every script with surprises, and both ends of every plane's edge.
POINTS = [*range(0x1, 0xD800), *range(0xE000, 0x10000), 0x1F600, 0xE0001, 0x10FFFF]
ALL = "".join(map(chr, POINTS))


def test_every_character_is_written_as_the_official_server_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    observations = [ALL[start : start + 4096] for start in range(0, len(ALL), 4096)]
    entity = {"name": ALL[:256], "entityType": ALL[8190:8240], "observations": observations}
    relation = {"from": ALL[:256], "to": ALL[:256], "relationType": ALL[:160]}
    with official_server(path) as official:
        official.initialize()
        official.call("create_entities", entities=[entity])
        official.call("create_relations", relations=[relation])
    written = path.read_bytes()
    memory = Asked(path)
    memory.store.compact()

    assert path.read_bytes() == written
    assert memory.texts(ALL[:256]) == observations
    assert memory.is_sound()
