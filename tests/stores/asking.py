"""A space on a JSONL file or a journal, asked as a client would ask it: tool by tool, without a wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from mcp_memory.desk import Desk
from mcp_memory.facts import OFFICIAL_LIMITS, Limits
from mcp_memory.space import Space
from mcp_memory.stores.journal import JournalStore
from mcp_memory.stores.jsonl import JsonlStore
from mcp_memory.tools.catalog import catalog


class Refused(Exception):
    """What a tool said instead of doing it."""


class Asked:
    """One process's view of a memory file. Every test ends with all of them closed (conftest.py)."""

    opened: ClassVar[list[Asked]] = []

    def __init__(self, path: Path, profile: str = "official", **options: Any) -> None:
        self.opened.append(self)
        self.path = path
        self.store = (JournalStore if path.suffix == ".mcpmem" else JsonlStore)(path, **options)
        self.space = Space(self.store)
        self.tools = catalog(profile)
        self.desk = Desk(self.space, self.tools, OFFICIAL_LIMITS if profile == "official" else Limits())

    def __call__(self, tool: str, /, **arguments: Any) -> Any:
        answer = self.desk.call(self.tools[tool], json.dumps(arguments).encode())
        if answer.is_error:
            raise Refused(answer.text)
        assert answer.structured is not None
        return json.loads(answer.structured)

    def create(self, *names: str, observations: tuple[str, ...] = ()) -> Any:
        new = [{"name": name, "entityType": "t", "observations": list(observations)} for name in names]
        return self("create_entities", entities=new)

    def relate(self, source: str, target: str, relation_type: str = "knows") -> Any:
        return self("create_relations", relations=[{"from": source, "to": target, "relationType": relation_type}])

    def observe(self, name: str, *texts: str) -> Any:
        return self("add_observations", observations=[{"entityName": name, "contents": list(texts)}])

    def names(self) -> list[str]:
        return [entity["name"] for entity in self("read_graph")["entities"]]

    def texts(self, name: str) -> list[str]:
        told: list[str] = self("open_nodes", names=[name])["entities"][0]["observations"]
        return told

    def version(self) -> tuple[int, bytes]:
        """What changes when the file is written, and not when it is read."""
        return self.path.stat().st_mtime_ns, self.path.read_bytes()

    def beside(self) -> set[str]:
        """The names of the files that stand beside the memory file, without its lock."""
        return {file.name for file in self.path.parent.iterdir()} - {self.path.name, f"{self.path.name}.lock"}

    def quarantine(self) -> list[bytes]:
        return self.path.with_name(f"{self.path.name}.quarantine").read_bytes().split(b"\n")[:-1]

    def is_sound(self) -> bool:
        """Does nothing differ between the graph, the store and the file?"""
        found = [finding.text for finding in self.space.check()]
        assert found == []
        return True


def entity_line(name: str, *texts: str, entity_type: str = "t") -> bytes:
    """A line as JSON.stringify writes it."""
    entity = {"type": "entity", "name": name, "entityType": entity_type, "observations": texts}
    return json.dumps(entity, ensure_ascii=False, separators=(",", ":")).encode()


def relation_line(source: str, target: str, relation_type: str = "knows") -> bytes:
    relation = {"type": "relation", "from": source, "to": target, "relationType": relation_type}
    return json.dumps(relation, ensure_ascii=False, separators=(",", ":")).encode()


@contextmanager
def closing_all() -> Iterator[None]:
    """Close every space that was opened meanwhile: none settles while another test looks."""
    try:
        yield
    finally:
        while Asked.opened:
            Asked.opened.pop().space.close()
