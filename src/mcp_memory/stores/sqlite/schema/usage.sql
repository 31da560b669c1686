-- What the documents have no table for: use after a search, beside the documented record of what was shown.
-- Made when the first search is written down, so a memory in which nobody searched has exactly the documented tables.

CREATE TABLE IF NOT EXISTS entity_use (
    entity_id INTEGER PRIMARY KEY REFERENCES entities(id) ON DELETE CASCADE,
    use_count INTEGER NOT NULL,
    last_use TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS entity_use_log (
    entity_id INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    use_date TEXT NOT NULL,
    use_count INTEGER NOT NULL,
    PRIMARY KEY (entity_id, use_date)
);

CREATE TABLE IF NOT EXISTS co_use (
    entity_a_id INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    entity_b_id INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    co_count INTEGER NOT NULL,
    last_co TEXT NOT NULL,
    PRIMARY KEY (entity_a_id, entity_b_id)
);

CREATE INDEX IF NOT EXISTS idx_co_use_b ON co_use(entity_b_id);

-- What a logged result had before habit, relevance and echo: the tuner replays a ranking from it.
CREATE TABLE IF NOT EXISTS search_base (
    event_id INTEGER NOT NULL REFERENCES search_events(event_id),
    entity_id INTEGER NOT NULL,
    base REAL NOT NULL,
    echo REAL NOT NULL,
    PRIMARY KEY (event_id, entity_id)
);

-- Counts the batches written, so that a process sees when another one wrote.
INSERT OR IGNORE INTO space_state (key, value) VALUES ('usage_batches', 0);
