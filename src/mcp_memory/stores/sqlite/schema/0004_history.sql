-- What history asks: what an entry altered, as it was before; which entries an entity is in; who is gone.

ALTER TABLE change ADD COLUMN was BLOB;

CREATE TABLE change_subject (
    entity_id INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (entity_id, seq)
) WITHOUT ROWID;

CREATE TABLE gone_entity (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL
);

CREATE INDEX idx_gone_entity_name ON gone_entity(name);

-- The last entry of the beginning: the state that the history starts from, written as changes.
INSERT INTO space_state (key, value)
 SELECT 'feed_floor', coalesce((SELECT max(seq) FROM change WHERE tool = 'adopt'), 0);
