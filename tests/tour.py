"""Everything that a server offers, once: a call of every tool in an order that makes sense, every resource, prompt
and completion. Clients of all kinds take this tour; whoever adds a tool adds its stop here (a test below asks)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

Stop = tuple[str, dict[str, Any]]

TEA = [f"Likes tea number {n} from a garden in Assam" for n in range(12)]
ENGINES = [f"Wrote a note on engine part {n} made of brass" for n in range(12)]
ADA = {"name": "Ada", "entityType": "Person", "observations": ["leads Atlas", "was born in London", *TEA, *ENGINES]}
ATLAS = {"name": "Atlas", "entityType": "Project", "observations": ["ships in May"]}
KNOWS = {"from": "Ada", "to": "Bob", "relationType": "knows"}
LEADS = {"from": "Ada", "to": "Atlas", "relationType": "leads"}


def stops(folder: Path) -> list[Stop]:
    """A call of every tool, on an empty memory; each must succeed. `migrate` reads a file in this folder."""
    source = folder / "other.jsonl"
    other = {"type": "entity", "name": "Grace", "entityType": "Person", "observations": ["found a moth"]}
    source.write_text(json.dumps(other) + "\n", encoding="utf-8")
    return [
        ("create_entities", {"entities": [ADA, ATLAS, {"name": "Bob", "entityType": "Person"}, {"name": "Roberto"}]}),
        ("create_relations", {"relations": [LEADS, KNOWS]}),
        ("upsert_entities", {"entities": [{"name": "Bob", "observations": ["plays the violin"]}]}),
        ("add_observations", {"name": "Roberto", "observations": ["is called Bob by his friends"]}),
        ("read_graph", {}),
        ("open_nodes", {"names": ["Ada", "Atlas"]}),
        ("get_entity", {"name": "Atlas"}),
        ("batch_get_entities", {"names": ["Atlas", "Bob"]}),
        ("describe_entity", {"name": "Atlas"}),
        ("search_relations", {"from": "Ada"}),
        ("search_nodes", {"query": "violin"}),
        ("search_semantic", {"query": "who plays an instrument?"}),
        ("find_path", {"from": "Bob", "to": "Atlas"}),
        ("find_all_paths", {"from": "Bob", "to": "Atlas"}),
        ("get_neighbors", {"name": "Ada"}),
        ("extract_subgraph", {"names": ["Ada"]}),
        ("graph_stats", {}),
        ("list_entity_types", {}),
        ("list_relation_types", {}),
        ("find_duplicate_observations", {"entity_name": "Ada"}),
        ("settle_flags", {"name": "Ada"}),
        ("find_split_candidates", {}),
        ("analyze_entity_split", {"entity_name": "Ada"}),
        ("propose_entity_split", {"entity_name": "Ada"}),
        ("execute_entity_split", {"entity_name": "Ada", "approved_splits": [{"name": "Tea", "observations": TEA}]}),
        ("consolidation_report", {}),
        ("merge_entities", {"source": "Roberto", "target": "Bob"}),
        ("add_reflection", {"target_type": "global", "content": "Ada prefers short answers", "author": "nolan"}),
        ("search_reflections", {"query": "answers"}),
        ("end_relation", {"relation_id": 2}),
        ("delete_relations", {"relations": [KNOWS]}),
        ("delete_observations", {"name": "Atlas", "observations": ["ships in May"]}),
        ("delete_entities", {"entityNames": ["Atlas"]}),
        ("undo", {}),
        ("history", {"name": "Atlas"}),
        ("migrate", {"source_path": str(source)}),
        ("export_graph", {"format": "mermaid"}),
        ("compact", {}),
    ]


# Of what the tour creates, one for each variable of a resource template.
FILLED = {"name": "Ada", "entityType": "Person", "relationType": "leads"}
PROMPT_ARGUMENTS = {"about": "Ada", "task": "write about Ada's tea", "entityType": "Person"}
# What completing the first letter must offer at the end of the tour.
COMPLETED = {"name": "Ada", "about": "Ada", "entityType": "Person", "relationType": "leads"}


def filled(template: str) -> str:
    """A resource of a template."""
    return re.sub(r"\{(\w+)\}", lambda found: FILLED[found[1]], template)


def variables(template: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", template)


# What differs from run to run: times, how long something took, and what follows from either.
TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?")
FLEETING = {"bytesBefore", "bytesAfter", "limbic_score", "scoring"}


def timeless(answer: Any) -> Any:
    """An answer without what differs from run to run."""
    if isinstance(answer, dict):
        return {key: timeless(value) for key, value in answer.items() if key not in FLEETING}
    if isinstance(answer, list):
        return [timeless(value) for value in answer]
    return TIMES.sub("<time>", answer) if isinstance(answer, str) else answer
