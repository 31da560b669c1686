"""What tools answer, as types: for programs that call tools from code and want to know beforehand what comes back.

A model sees the answer itself, and would pay for these in every conversation; so they are listed only where a setting
wants it (docs/decisions/0023-output-schemas.md). Here is no tool whose answer depends on how it is asked. Keys that are
not named here may come besides, and what has a default may be missing."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from mcp_memory.tools.schemas import input_schema

Count = int | UnsetType
Text = str | UnsetType


class Wire(msgspec.Struct, rename="camel"):
    """The base of what travels in camelCase."""


class AnEntity(Wire):
    name: str
    entity_type: str
    observations: list[str]


class ARelation(Wire):
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    relation_type: str
    id: Count = UNSET
    context: Text = UNSET


class Page(Wire):
    """What says that there is more."""

    total: Count = UNSET
    next_offset: Count = UNSET
    cut: bool | UnsetType = UNSET
    hint: Text = UNSET


class Facts(Page, kw_only=True):
    entities: list[AnEntity]
    relations: list[ARelation]


class Entities(Wire):
    entities: list[AnEntity]


class Relations(Page, kw_only=True):
    relations: list[ARelation]


class Match(msgspec.Struct):
    id: int
    observation: str
    score: float


class Result(Wire):
    name: str
    entity_type: str
    observations: list[str]
    matches: list[Match]
    why: str
    limbic_score: float = msgspec.field(name="limbic_score")


class Progress(msgspec.Struct):
    embedded: int
    of: int


class Found(msgspec.Struct):
    results: list[Result]
    status: str
    engine: str
    note: Text = UNSET
    left_out: Count = UNSET
    progress: Progress | UnsetType = UNSET


class Path(msgspec.Struct):
    path: list[str]


class Paths(Page, kw_only=True):
    paths: list[list[str]]


class Statistics(Wire):
    entities: int
    relations: int
    total_observations: int
    search_index_entries: int
    interned_strings: int
    interned_bytes: int


class Kind(msgspec.Struct):
    type: str
    count: int


class Kinds(msgspec.Struct):
    types: list[Kind]


class Drawing(msgspec.Struct):
    format: str
    content: str


class Happened(msgspec.Struct):
    call: int
    at: str
    by: str
    tool: str
    did: list[str]
    more: Count = UNSET


class Calls(msgspec.Struct):
    calls: list[Happened]
    before: Count = UNSET


# ── writers: nothing must be there, because what was made before is answered with `repeated` ─────────


class MadeBefore(msgspec.Struct):
    call: int
    at: str


class Written(Wire, kw_only=True):
    repeated: MadeBefore | UnsetType = UNSET
    note: Text = UNSET


class Created(Written):
    entities: list[AnEntity] | UnsetType = UNSET


class ALink(Wire):
    """A relation that was made, or why it was not."""

    source: Text = msgspec.field(name="from", default=UNSET)
    target: Text = msgspec.field(name="to", default=UNSET)
    relation_type: Text = UNSET
    id: Count = UNSET
    error: Text = UNSET


class Linked(Written):
    relations: list[ALink] | UnsetType = UNSET
    errors: list[Any] | UnsetType = UNSET


class Upsert(Wire):
    name: str
    created: bool
    added_observations: list[str]


class Upserted(Written):
    results: list[Upsert] | UnsetType = UNSET


class Deleted(Written):
    deleted: list[str] | UnsetType = UNSET
    errors: list[Any] | UnsetType = UNSET


class Unlinked(Written):
    deleted: list[ARelation] | UnsetType = UNSET
    errors: list[Any] | UnsetType = UNSET


class Merged(Written):
    source: Text = UNSET
    target: Text = UNSET
    moved_observations: Count = UNSET
    added_observations: Count = UNSET
    redirected_relations: Count = UNSET


class Duplicate(msgspec.Struct):
    observation_id: int
    content: str


class Settled(Written, rename=None):
    entity_name: Text = UNSET
    settled: list[Duplicate] | UnsetType = UNSET
    still_flagged: Count = UNSET


class Undone(Written):
    undone: list[Happened] | UnsetType = UNSET
    call: Count = UNSET


class Migrated(Written, rename=None):
    entities_imported: Count = UNSET
    relations_imported: Count = UNSET
    errors: Count = UNSET
    skipped: Count = UNSET


class Compacted(Written):
    success: bool | UnsetType = UNSET
    message: Text = UNSET
    bytes_before: Count = UNSET
    bytes_after: Count = UNSET


ANSWERS: dict[str, type[msgspec.Struct]] = {
    "create_entities": Created,
    "create_relations": Linked,
    "upsert_entities": Upserted,
    "delete_entities": Deleted,
    "delete_relations": Unlinked,
    "read_graph": Facts,
    "get_entity": AnEntity,
    "batch_get_entities": Entities,
    "search_relations": Relations,
    "search_nodes": Facts,
    "search_semantic": Found,
    "find_path": Path,
    "find_all_paths": Paths,
    "get_neighbors": Facts,
    "extract_subgraph": Facts,
    "graph_stats": Statistics,
    "list_entity_types": Kinds,
    "list_relation_types": Kinds,
    "merge_entities": Merged,
    "settle_flags": Settled,
    "history": Calls,
    "undo": Undone,
    "migrate": Migrated,
    "export_graph": Drawing,
    "compact": Compacted,
}


def output_schema(tool: str) -> dict[str, Any] | None:
    """The schema of what a tool answers; None where that depends on how it is asked."""
    answer = ANSWERS.get(tool)
    return None if answer is None else input_schema(answer)
