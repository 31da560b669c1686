-- entity_ids --
select id from entities

-- reflection_texts --
select id, content from reflections

-- orphan_reflection_vectors --
select rowid from reflection_embeddings where rowid not in (select id from reflections)

-- forget_reflection_vector --
delete from reflection_embeddings where rowid = ?

-- counts --
select (select count(*) from entities), (select count(*) from relations), (select count(*) from reflections)

-- free_keys --
-- The keys that the schema writes itself.
delete from db_metadata where key in ('schema_version', 'space_id')
