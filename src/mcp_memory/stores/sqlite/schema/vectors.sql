-- What texts mean, as numbers, beside the documented vector tables: one row for each text and model.
-- Made when the first vector is written down.

CREATE TABLE IF NOT EXISTS vector_models (
    id INTEGER PRIMARY KEY,
    stamp TEXT NOT NULL UNIQUE,     -- name of the model, and version of how texts are prepared for it
    dimension INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS text_vectors (
    model_id INTEGER NOT NULL REFERENCES vector_models(id),
    key INTEGER NOT NULL,           -- a digest of the text
    vector BLOB NOT NULL            -- half-precision numbers, least byte first
);

CREATE UNIQUE INDEX IF NOT EXISTS idx_text_vectors ON text_vectors(model_id, key);
