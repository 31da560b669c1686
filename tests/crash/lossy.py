"""A memory server that loses things, to be found out: it answers first and writes later, or never.

It speaks just enough of the protocol. Its first argument says how it sins; the second is its file."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


class Graph:
    def __init__(self, path: str, sin: str) -> None:
        self.path = path
        self.sin = sin
        self.entities: dict[str, list[str]] = {}
        self.relations: list[dict[str, str]] = []
        self.calls = 0
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            self.entities, self.relations = kept["entities"], kept["relations"]

    def save(self) -> None:
        self.calls += 1
        if self.sin == "dies" and self.calls > 3:
            os._exit(1)
        if self.sin == "forgets" and self.calls > 3:
            return
        # Whole under its name: nobody shall fail because of half a file who was to fail because of his sin.
        beside = f"{self.path}.{os.getpid()}"
        with open(beside, "w", encoding="utf-8") as file:
            json.dump({"entities": self.entities, "relations": self.relations}, file)
            if self.sin == "breaks" and self.calls > 5:
                file.write("}")
        os.replace(beside, self.path)

    def create_entities(self, entities: list[dict[str, Any]]) -> Any:
        for one in entities:
            self.entities.setdefault(one["name"], []).extend(one["observations"])
        self.save()
        return entities

    def add_observations(self, observations: list[dict[str, Any]]) -> Any:
        twice = 2 if self.sin == "repeats" else 1
        for one in observations:
            self.entities[one["entityName"]].extend(one["contents"] * twice)
        self.save()
        return observations

    def delete_observations(self, deletions: list[dict[str, Any]]) -> Any:
        for one in deletions:
            texts = self.entities[one["entityName"]]
            self.entities[one["entityName"]] = [text for text in texts if text not in one["observations"]]
        self.save()
        return deletions

    def delete_entities(self, entityNames: list[str]) -> Any:
        for name in entityNames:
            self.entities.pop(name, None)
        gone = {*entityNames}
        self.relations = [one for one in self.relations if gone.isdisjoint((one["from"], one["to"]))]
        self.save()
        return {"deleted": entityNames}

    def delete_relations(self, relations: list[dict[str, str]]) -> Any:
        self.relations = [one for one in self.relations if one not in relations]
        self.save()
        return {"deleted": relations}

    def create_relations(self, relations: list[dict[str, str]]) -> Any:
        self.relations += relations
        self.save()
        return relations

    def read_graph(self) -> Any:
        named = [{"name": name, "entityType": "t", "observations": texts} for name, texts in self.entities.items()]
        return {"entities": named, "relations": self.relations}


def main(sin: str, path: str) -> None:
    graph = Graph(path, sin)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "initialize":
            result: Any = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "lossy"}}
        else:
            params = message["params"]
            try:
                told = getattr(graph, params["name"])(**params["arguments"])
                result = {"content": [{"type": "text", "text": json.dumps(told)}]}
            except KeyError as missing:
                result = {"isError": True, "content": [{"type": "text", "text": f"no {missing}"}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
