"""Rows that plain SQL, or an older program, left in a state the documents do not allow.

What can be said right is said right; a row that belongs to nothing is taken out. Either way the row as
it was goes to the leftovers first, so nothing is lost."""

from __future__ import annotations

from typing import Any

import apsw

from mcp_memory.facts import PLACEHOLDER
from mcp_memory.stores.sqlite.leftovers import Leftovers

TEXTS = {
    "entities": ("name", "entity_type", "status", "created_at", "updated_at"),
    "observations": ("content", "kind", "superseded_at", "created_at"),
    "relations": ("relation_type", "context", "ended_at", "created_at"),
    "reflections": ("target_type", "author", "content", "mood", "created_at"),
}
# The text that a rule of uniqueness is about.
LABELS = {"entities": "name", "relations": "relation_type"}

NO_ENTITY = "not in (select id from entities)"
NO_EVENT = "not in (select event_id from search_events)"
ORPHANS = (
    ("observations", f"entity_id {NO_ENTITY}"),
    ("relations", f"from_entity {NO_ENTITY} or to_entity {NO_ENTITY}"),
    ("entity_access", f"entity_id {NO_ENTITY}"),
    ("entity_access_log", f"entity_id {NO_ENTITY}"),
    ("co_occurrences", f"entity_a_id {NO_ENTITY} or entity_b_id {NO_ENTITY}"),
    ("search_results", f"event_id {NO_EVENT}"),
    ("implicit_feedback", f"event_id {NO_EVENT}"),
)

# Table, which rows, what becomes of them, and why; without a why nothing of the row is lost.
CORRECTIONS = (
    (
        "observations",
        "supersedes not in (select id from observations)",
        "supersedes = null",
        "what it supersedes is gone",
    ),
    (
        "observations",
        "typeof(similarity_flag) <> 'integer'",
        "similarity_flag = cast(similarity_flag as integer)",
        "its flag is no number",
    ),
    (
        "entities",
        f"status = '{PLACEHOLDER}'",
        f"status = '{PLACEHOLDER}_'",
        "this status is reserved for entities that only relations know",
    ),
    (
        "relations",
        "typeof(active) <> 'integer' or active not in (0, 1)",
        "active = case when active then 1 else 0 end",
        "active is neither 0 nor 1",
    ),
    ("relations", "active = 1 and ended_at is not null", "ended_at = null", "it is active and yet has an end"),
    ("relations", "active = 0 and ended_at is null", "ended_at = created_at", None),
    (
        "reflections",
        "typeof(target_id) not in ('integer', 'null')",
        "target_id = null",
        "its target is no id",
    ),
)


def mend(connection: apsw.Connection, leftovers: Leftovers) -> None:
    """Inside a transaction, with foreign keys and triggers off."""
    for table, where in ORPHANS:
        leftovers.keep(table, where, "it belongs to a row that does not exist")
        connection.execute(f"delete from {table} where {where}")
    _mend_texts(connection, leftovers)
    for table, where, better, why in CORRECTIONS:
        if why is not None:
            leftovers.keep(table, where, why)
        connection.execute(f"update {table} set {better} where {where}")


def _mend_texts(connection: apsw.Connection, leftovers: Leftovers) -> None:
    """Every text becomes text: valid UTF-8, of type text, without a NUL."""
    connection.create_scalar_function("is_sound", _is_sound, deterministic=True)
    try:
        for table, names in TEXTS.items():
            kinds = " or ".join(f"typeof({name}) not in ('text', 'null')" for name in names)
            raw = ", ".join(f"cast({name} as blob)" for name in names)
            unsound = f"{kinds} or not is_sound({raw})"
            if not leftovers.keep(table, unsound, "it holds something that is no text"):
                continue
            for rowid, *values in connection.execute(f"select rowid, {raw} from {table} where {unsound}").fetchall():
                _rewrite(connection, table, rowid, dict(zip(names, map(_mended, values), strict=True)))
    finally:
        connection.create_scalar_function("is_sound", None)


def _is_sound(*texts: Any) -> bool:
    try:
        return not any(text is not None and "\0" in text.decode() for text in texts)
    except UnicodeDecodeError:
        return False


def _mended(text: Any) -> str | None:
    return None if text is None else text.decode(errors="replace").replace("\0", "\ufffd")


def _rewrite(connection: apsw.Connection, table: str, rowid: Any, values: dict[str, Any]) -> None:
    statement = f"update {table} set {', '.join(f'{name} = :{name}' for name in values)} where rowid = :rowid"
    try:
        connection.execute(statement, {**values, "rowid": rowid})
    except apsw.ConstraintError:  # another row is called this already
        label = LABELS[table]
        connection.execute(statement, {**values, label: f"{values[label]} #{rowid}", "rowid": rowid})
