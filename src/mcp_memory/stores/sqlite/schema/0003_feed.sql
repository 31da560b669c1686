-- What the documents do not know: the feed, which is the truth, and how far its projections have come.

CREATE TABLE change (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    origin TEXT NOT NULL,
    tool TEXT NOT NULL,
    part INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE space_state (
    key TEXT PRIMARY KEY,
    value INTEGER NOT NULL
);

INSERT INTO space_state (key, value) VALUES ('projected_seq', 0);
-- Up to which observation duplicates were looked for; what an adopted file holds was looked at by who wrote it.
INSERT INTO space_state (key, value) SELECT 'examined_observation', coalesce(max(id), 0) FROM observations;

-- Deleting an observation makes SQLite look for rows that supersede it; without this index it reads them all.
CREATE INDEX idx_obs_supersedes ON observations(supersedes) WHERE supersedes IS NOT NULL;

INSERT INTO db_metadata (key, value) VALUES ('schema_version', '1');

-- Which space this is, wherever its file is copied to: what is derived from it is told apart by this.
INSERT INTO db_metadata (key, value) VALUES ('space_id', lower(hex(randomblob(8))));
