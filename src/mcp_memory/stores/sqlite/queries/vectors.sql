-- is_there --
select exists (select 1 from sqlite_master where type = 'index' and name = 'idx_text_vectors')

-- add_model --
insert or ignore into vector_models (stamp) values (?)

-- model --
select id from vector_models where stamp = ?

-- models --
select stamp, (select count(*) from text_vectors where model_id = m.id) from vector_models m order by id

-- find --
select vector from text_vectors where model_id = ? and key = ?

-- keep --
insert or ignore into text_vectors (model_id, key, vector) values (?, ?, ?)
