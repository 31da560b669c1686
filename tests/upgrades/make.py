"""How the memories of earlier versions beside this file were made: by those versions themselves.

    git archive COMMIT src | tar x -C FOLDER
    .venv-dev/bin/python -m tests.upgrades.make FOLDER/src tests/upgrades/LABEL.tar.gz

The same conversation, as far as that version has the tools for it, over stdio, once for each format it knows:
`memory.*` was closed, `killed.*` is what kill -9 left after the last answer. `told.json` is what that version
itself said about them in the end. An archive is never made anew: what matters is that it is old. The first
number is that of the schema; each archive is of the commit that first wrote files of its shape:

    1-first 80f9e13, 1-snapshot 4a2a7cb, 1-usage 5ac2991, 1-vectors 638cb2a,
    2-history b2794b4, 2-echo dd573fd, 2-flags 0eac881, 2-transcripts 4b50115"""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

FILES = ("memory.db", "killed.db", "memory.jsonl", "killed.jsonl", "memory.mcpmem", "killed.mcpmem")
PROVES = {"memory.jsonl": "stores/jsonl.py", "memory.mcpmem": "stores/journal/__init__.py"}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "upgrades", "version": "1.0"},
}
NAMES = ("Ada", "名前", 'q"\\ Żółć', "Cy", "tea house")


def person(name: str, *texts: str) -> dict[str, Any]:
    return {"name": name, "entityType": "Person", "observations": list(texts)}


def link(one: str, kind: str, other: str) -> dict[str, str]:
    return {"from": one, "to": other, "relationType": kind}


CONVERSATION: list[tuple[str, dict[str, Any]]] = [
    ("create_entities", {"entities": [person("Ada", "likes tea", "plays chess"), person("Bob", "tall", "likes tea")]}),
    ("create_entities", {"entities": [person("名前", "línea\nnueva"), person('q"\\ Żółć', "🫖", "100% wool_coat")]}),
    ("create_entities", {"entities": [person("gone"), {"name": "tea house", "entityType": "Place"}]}),
    ("create_relations", {"relations": [link("Ada", "contiene", "Bob"), link("Bob", "knows", "名前")]}),
    ("create_relations", {"relations": [link("Ada", "visits", "tea house"), link("gone", "knows", "Ada")]}),
    ("add_observations", {"name": "Ada", "observations": ["likes coffee"], "kind": "milestone",
                          "supersedes": "likes tea"}),
    ("add_observations", {"observations": [{"entityName": "Ada", "contents": ["moved to Rome", "speaks Latin"]}]}),
    ("add_observations", {"observations": [{"entityName": "tea house", "contents": ["opens at nine"]}]}),
    ("upsert_entities", {"entities": [person("Cy", "wrote the letter"), person("Ada", "plays chess", "sings")]}),
    ("add_reflection", {"target_type": "entity", "target_id": 1, "content": "good company"}),
    ("end_relation", {"relation_id": 4}),
    ("search_semantic", {"query": "who drinks coffee"}),
    ("open_nodes", {"names": ["Ada", "tea house"]}),
    ("search_semantic", {"query": "tea"}),
    ("get_entity", {"name": "tea house"}),
    ("delete_observations", {"name": "Cy", "observations": ["nothing"]}),
    ("merge_entities", {"source": "Bob", "target": "Ada"}),
    ("delete_entities", {"entityNames": ["gone"]}),
    ("delete_observations", {"deletions": [{"entityName": "Ada", "observations": ["speaks Latin"]}]}),
    ("create_entities", {"entities": [person("mistake", "never happened")]}),
    ("undo", {}),
    ("create_relations", {"relations": [link("Cy", "writes to", "名前")]}),
]  # fmt: skip


class Old:
    """A server of an earlier version, and what it can do."""

    def __init__(self, source: Path, file: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mcp_memory", "--memory-file", str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "HOME": str(file.parent), "PYTHONPATH": str(source), "MCP_MEMORY_MODEL": "none"},
        )
        self.last = 0
        self.ask("initialize", HELLO)
        self.tools = {tool["name"] for tool in self.ask("tools/list", {})["result"]["tools"]}

    def ask(self, method: str, params: Any) -> Any:
        assert self.process.stdin and self.process.stdout
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.last:
                return answer

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        return None if result.get("isError") else result["structuredContent"]

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def live(source: Path, file: Path) -> dict[str, Any]:
    """Lead the conversation on this file; what the server said about the memory in the end."""
    old = Old(source, file)
    done = [tool for tool, given in CONVERSATION if tool in old.tools and old.call(tool, given) is not None]
    told = {
        "calls": done,
        "graph": old.call("read_graph", {}),
        "described": {name: old.call("describe_entity", {"name": name}) for name in NAMES},
        "reflections": old.call("search_reflections", {"query": "company"}) if "add_reflection" in done else None,
    }
    if file.name.startswith("killed"):
        old.call("create_entities", {"entities": [person("said last", "and then the power went")]})
        old.process.kill()
        told["graph"]["entities"].append(person("said last", "and then the power went"))
    old.close()
    return told


def main(source: Path, archive: Path) -> None:
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            needs = PROVES.get(name.replace("killed", "memory"))
            if needs is None or (source / "mcp_memory" / needs).exists():
                told[name] = live(source, Path(folder) / name)
        (Path(folder) / "told.json").write_text(json.dumps(told, ensure_ascii=False, indent=1), encoding="utf-8")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for file in sorted(Path(folder).iterdir()):
                if file.is_file() and not file.name.endswith((".lock", "-shm")):
                    tar.add(file, file.name, filter=_anonymous)
        archive.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))
    print(f"{archive.name}: {archive.stat().st_size:,} bytes; {', '.join(sorted(told))}")


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Nobody's name goes into the archive."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
