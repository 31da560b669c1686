-- The documented vector tables, created where sqlite-vec is there.

CREATE VIRTUAL TABLE entity_embeddings USING vec0(embedding float[384] distance_metric=cosine);

CREATE VIRTUAL TABLE reflection_embeddings USING vec0(embedding float[384] distance_metric=cosine);
