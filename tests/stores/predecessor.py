"""Databases as the Python predecessor left them, from its first shape to its last.

It kept no version: each start created what was missing and added the columns that had come since, one
ALTER TABLE at a time. So a shape is how far its steps had come, and a column's place tells its age."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.stores.sqlite.connection import connect, load_vectors

Row = dict[str, Any]

STEPS = {
    "first": """
        CREATE TABLE IF NOT EXISTS entities (
            id          INTEGER PRIMARY KEY AUTOINCREMENT,
            name        TEXT    NOT NULL UNIQUE,
            entity_type TEXT    NOT NULL DEFAULT 'Generic',
            created_at  TEXT    NOT NULL DEFAULT (datetime('now')),
            updated_at  TEXT    NOT NULL DEFAULT (datetime('now'))
        );
        CREATE TABLE IF NOT EXISTS observations (
            id         INTEGER PRIMARY KEY AUTOINCREMENT,
            entity_id  INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
            content    TEXT    NOT NULL,
            created_at TEXT    NOT NULL DEFAULT (datetime('now'))
        );
        CREATE TABLE IF NOT EXISTS relations (
            id            INTEGER PRIMARY KEY AUTOINCREMENT,
            from_entity   INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
            to_entity     INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
            relation_type TEXT    NOT NULL,
            created_at    TEXT    NOT NULL DEFAULT (datetime('now')),
            UNIQUE(from_entity, to_entity, relation_type)
        );
        CREATE TABLE IF NOT EXISTS db_metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
        CREATE INDEX IF NOT EXISTS idx_obs_entity    ON observations(entity_id);
        CREATE INDEX IF NOT EXISTS idx_rel_from      ON relations(from_entity);
        CREATE INDEX IF NOT EXISTS idx_rel_to        ON relations(to_entity);
        CREATE INDEX IF NOT EXISTS idx_rel_type      ON relations(relation_type);
        CREATE INDEX IF NOT EXISTS idx_entities_name ON entities(name);
        CREATE INDEX IF NOT EXISTS idx_entities_type ON entities(entity_type);
    """,
    "vectors": """
        CREATE VIRTUAL TABLE IF NOT EXISTS entity_embeddings
            USING vec0(embedding float[384] distance_metric=cosine);
    """,
    "usage": """
        CREATE TABLE IF NOT EXISTS entity_access (
            entity_id    INTEGER PRIMARY KEY REFERENCES entities(id) ON DELETE CASCADE,
            access_count INTEGER NOT NULL DEFAULT 1,
            last_access  TEXT    NOT NULL DEFAULT (datetime('now'))
        );
        CREATE TABLE IF NOT EXISTS co_occurrences (
            entity_a_id INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
            entity_b_id INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
            co_count    INTEGER NOT NULL DEFAULT 1,
            last_co     TEXT    NOT NULL DEFAULT (datetime('now')),
            PRIMARY KEY (entity_a_id, entity_b_id)
        );
        CREATE INDEX IF NOT EXISTS idx_access_last ON entity_access(last_access);
        CREATE INDEX IF NOT EXISTS idx_cooc_b      ON co_occurrences(entity_b_id);
    """,
    "full text": """
        CREATE VIRTUAL TABLE IF NOT EXISTS entity_fts
            USING fts5(name, entity_type, obs_text, tokenize="unicode61");
    """,
    "trials": """
        CREATE TABLE IF NOT EXISTS search_events (
            event_id    INTEGER PRIMARY KEY AUTOINCREMENT,
            query_text  TEXT    NOT NULL,
            query_hash  TEXT    NOT NULL,
            timestamp   TEXT    NOT NULL DEFAULT (datetime('now')),
            treatment   INTEGER NOT NULL,
            k_limit     INTEGER NOT NULL,
            num_results INTEGER NOT NULL,
            duration_ms REAL,
            engine_used TEXT    NOT NULL
        );
        CREATE TABLE IF NOT EXISTS search_results (
            result_id     INTEGER PRIMARY KEY AUTOINCREMENT,
            event_id      INTEGER NOT NULL REFERENCES search_events(event_id),
            entity_id     INTEGER NOT NULL,
            entity_name   TEXT    NOT NULL,
            rank          INTEGER NOT NULL,
            limbic_score  REAL,
            cosine_sim    REAL,
            importance    REAL,
            temporal      REAL,
            cooc_boost    REAL,
            baseline_rank INTEGER,
            UNIQUE(event_id, entity_id)
        );
        CREATE TABLE IF NOT EXISTS implicit_feedback (
            feedback_id  INTEGER PRIMARY KEY AUTOINCREMENT,
            event_id     INTEGER NOT NULL REFERENCES search_events(event_id),
            entity_id    INTEGER NOT NULL,
            re_accessed  INTEGER NOT NULL DEFAULT 0,
            access_delta INTEGER,
            session_id   TEXT,
            FOREIGN KEY (event_id, entity_id) REFERENCES search_results(event_id, entity_id)
        );
        CREATE INDEX IF NOT EXISTS idx_search_events_hash    ON search_events(query_hash);
        CREATE INDEX IF NOT EXISTS idx_search_events_time    ON search_events(timestamp);
        CREATE INDEX IF NOT EXISTS idx_search_results_event  ON search_results(event_id);
        CREATE INDEX IF NOT EXISTS idx_search_results_entity ON search_results(entity_id);
        CREATE INDEX IF NOT EXISTS idx_implicit_event        ON implicit_feedback(event_id);
    """,
    "flags": "ALTER TABLE observations ADD COLUMN similarity_flag INTEGER NOT NULL DEFAULT 0",
    "access log": """
        CREATE TABLE IF NOT EXISTS entity_access_log (
            entity_id    INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
            access_date  TEXT    NOT NULL,
            access_count INTEGER NOT NULL DEFAULT 1,
            PRIMARY KEY (entity_id, access_date)
        );
    """,
    "kinds": "ALTER TABLE observations ADD COLUMN kind TEXT NOT NULL DEFAULT 'generic'",
    "supersession": """
        ALTER TABLE observations ADD COLUMN supersedes INTEGER NULL REFERENCES observations(id);
        ALTER TABLE observations ADD COLUMN superseded_at TEXT NULL;
    """,
    "status": "ALTER TABLE entities ADD COLUMN status TEXT NOT NULL DEFAULT 'activo'",
    "endings": """
        ALTER TABLE relations ADD COLUMN context TEXT NULL;
        ALTER TABLE relations ADD COLUMN active INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE relations ADD COLUMN ended_at TEXT NULL;
    """,
    "reflections": """
        CREATE TABLE IF NOT EXISTS reflections (
            id          INTEGER PRIMARY KEY AUTOINCREMENT,
            target_type TEXT NOT NULL,
            target_id   INTEGER,
            author      TEXT NOT NULL,
            content     TEXT NOT NULL,
            mood        TEXT,
            created_at  TEXT NOT NULL DEFAULT (datetime('now'))
        );
        CREATE VIRTUAL TABLE IF NOT EXISTS reflection_fts
            USING fts5(content, author, mood, content='reflections', content_rowid='id');
        CREATE VIRTUAL TABLE IF NOT EXISTS reflection_embeddings USING vec0(embedding float[384]);
    """,
    "last": "CREATE INDEX IF NOT EXISTS idx_obs_entity_superseded ON observations(entity_id, superseded_at)",
}
SHAPES = tuple(STEPS)
LAST = SHAPES[-1]


def vector(seed: int) -> bytes:
    return struct.pack("384f", *((seed * 37 + i) % 97 / 97 - 0.5 for i in range(384)))


# What was stored, told by the newest shape. An older one holds the columns and tables it knows.
ROWS: dict[str, list[Row]] = {
    "entities": [
        {"id": 1, "name": "Ada", "entity_type": "Persona", "created_at": "2025-01-01 10:00:00",
         "updated_at": "2025-03-01 10:00:00", "status": "activo"},
        {"id": 2, "name": "Proyecto Ñandú 🦤", "entity_type": "Proyecto", "created_at": "2025-01-02 10:00:00",
         "updated_at": "2025-01-02 10:00:00", "status": "pausado"},
        {"id": 5, "name": "Sesion: 2025-01-03", "entity_type": "Sesion", "created_at": "2025-01-03 10:00:00",
         "updated_at": "2025-01-09 10:00:00", "status": "archivado"},
        {"id": 6, "name": "empty", "entity_type": "Generic", "created_at": "2025-01-04 10:00:00",
         "updated_at": "2025-01-04 10:00:00", "status": "whatever a user wrote"},
    ],
    "observations": [
        {"id": 1, "entity_id": 1, "content": "likes tea", "created_at": "2025-01-01 10:00:00", "similarity_flag": 0,
         "kind": "generic", "supersedes": None, "superseded_at": "2025-02-01 00:00:00"},
        {"id": 2, "entity_id": 2, "content": "empezó en enero | con \"comillas\"", "created_at": "2025-01-02 10:00:00",
         "similarity_flag": 0, "kind": "hallazgo", "supersedes": None, "superseded_at": None},
        {"id": 4, "entity_id": 1, "content": "likes coffee", "created_at": "2025-02-01 00:00:00", "similarity_flag": 1,
         "kind": "decision", "supersedes": 1, "superseded_at": "2025-03-01 10:00:00"},
        {"id": 7, "entity_id": 5, "content": "", "created_at": "2025-01-03 10:00:00", "similarity_flag": 0,
         "kind": "generic", "supersedes": None, "superseded_at": None},
        {"id": 9, "entity_id": 1, "content": "likes\nwater 水", "created_at": "2025-03-01 10:00:00",
         "similarity_flag": 1, "kind": "estado", "supersedes": 4, "superseded_at": None},
    ],
    "relations": [
        {"id": 1, "from_entity": 2, "to_entity": 5, "relation_type": "contiene", "created_at": "2025-01-03 10:00:00",
         "context": None, "active": 1, "ended_at": None},
        {"id": 2, "from_entity": 5, "to_entity": 2, "relation_type": "parte_de", "created_at": "2025-01-03 10:00:00",
         "context": "Inversa automática de contiene", "active": 1, "ended_at": None},
        {"id": 4, "from_entity": 1, "to_entity": 2, "relation_type": "trabaja en", "created_at": "2025-01-05 10:00:00",
         "context": "since the start", "active": 0, "ended_at": "2025-04-01 00:00:00"},
        {"id": 6, "from_entity": 1, "to_entity": 1, "relation_type": "conoce", "created_at": "2025-01-06 10:00:00",
         "context": None, "active": 1, "ended_at": None},
    ],
    "reflections": [
        {"id": 1, "target_type": "entity", "target_id": 1, "author": "nolan", "content": "Ada cambia mucho",
         "mood": "curiosidad", "created_at": "2025-03-02 10:00:00"},
        {"id": 2, "target_type": "relation", "target_id": 4, "author": "sofia", "content": "terminó bien",
         "mood": None, "created_at": "2025-04-02 10:00:00"},
        {"id": 4, "target_type": "global", "target_id": None, "author": "sofia", "content": "todo en orden",
         "mood": "satisfaccion", "created_at": "2025-04-03 10:00:00"},
        {"id": 5, "target_type": "entity", "target_id": 99999, "author": "sofia", "content": "about nobody",
         "mood": "duda", "created_at": "2025-04-04 10:00:00"},
    ],
    "db_metadata": [
        {"key": "gamma", "value": "0.0145"},
        {"key": "beta_sal", "value": "0.475"},
        {"key": "last_tuned_at", "value": "2025-05-01T08:00:00+00:00"},
    ],
    "entity_access": [
        {"entity_id": 1, "access_count": 17, "last_access": "2025-04-05 10:00:00"},
        {"entity_id": 5, "access_count": 1, "last_access": "2025-01-03 10:00:00"},
    ],
    "entity_access_log": [
        {"entity_id": 1, "access_date": "2025-04-04", "access_count": 3},
        {"entity_id": 1, "access_date": "2025-04-05", "access_count": 14},
    ],
    "co_occurrences": [{"entity_a_id": 1, "entity_b_id": 5, "co_count": 4, "last_co": "2025-04-05 10:00:00"}],
    "search_events": [
        {"event_id": 3, "query_text": "té", "query_hash": "9f2c", "timestamp": "2025-04-05 10:00:00", "treatment": 1,
         "k_limit": 10, "num_results": 2, "duration_ms": 0.31, "engine_used": "limbic"},
    ],
    "search_results": [
        {"result_id": 5, "event_id": 3, "entity_id": 1, "entity_name": "Ada", "rank": 1, "limbic_score": 0.71,
         "cosine_sim": None, "importance": 0.9, "temporal": 0.99, "cooc_boost": 0.01, "baseline_rank": 2},
        {"result_id": 6, "event_id": 3, "entity_id": 41, "entity_name": "deleted since", "rank": 2, "limbic_score": 0.5,
         "cosine_sim": 0.4, "importance": 0.0, "temporal": 1.0, "cooc_boost": 0.0, "baseline_rank": 1},
    ],
    "implicit_feedback": [
        {"feedback_id": 2, "event_id": 3, "entity_id": 1, "re_accessed": 1, "access_delta": 40, "session_id": "s1"},
    ],
    "entity_embeddings": [{"rowid": id_, "embedding": vector(id_)} for id_ in (1, 2, 5)],
    "reflection_embeddings": [{"rowid": id_, "embedding": vector(50 + id_)} for id_ in (1, 2, 4)],
    # Stale, as a crash between two commits left it.
    "entity_fts": [{"rowid": 1, "name": "Ada", "entity_type": "Persona", "obs_text": "likes tea"}],
    "reflection_fts": [{"rowid": 1, "content": "Ada cambia mucho", "author": "nolan", "mood": "curiosidad"}],
}  # fmt: skip
# The highest id ever given, by table: rows beyond the last one were deleted again.
LAST_IDS = {"entities": 90, "observations": 900, "relations": 80, "reflections": 70, "search_events": 40}


def lay(path: Path, shape: str = LAST) -> apsw.Connection:
    """An empty database of this shape, and the connection that made it."""
    connection = connect(str(path), "normal")
    assert load_vectors(connection)
    for step in SHAPES[: SHAPES.index(shape) + 1]:
        connection.execute(STEPS[step])
    return connection


def build(path: Path, shape: str = LAST) -> None:
    """A database of this shape with everything in it that the shape can hold."""
    with closing(lay(path, shape)) as connection:
        fill(connection)


def fill(connection: apsw.Connection) -> None:
    with connection:
        for table in held(connection):
            for row in rows_of(connection, table):
                insert(connection, table, row)
        for table, last in LAST_IDS.items():
            connection.execute("update sqlite_sequence set seq = ? where name = ?", (last, table))


def insert(connection: apsw.Connection, table: str, row: Row) -> None:
    marks = ", ".join("?" * len(row))
    connection.execute(f"insert into {table} ({', '.join(row)}) values ({marks})", tuple(row.values()))


def held(connection: apsw.Connection) -> list[str]:
    """The tables with content that this database knows."""
    there = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
    return [table for table in ROWS if table in there]


def rows_of(connection: apsw.Connection, table: str) -> list[Row]:
    """The rows of a table, with the columns that this database knows."""
    columns = {name for (name,) in connection.execute("select name from pragma_table_xinfo(?)", (table,))} | {"rowid"}
    return [{name: value for name, value in row.items() if name in columns} for row in ROWS[table]]
