-- is_there --
-- Tables of an earlier shape do not count: what stands in them is made anew.
select exists (select 1 from sqlite_master where type = 'index' and name = 'idx_text_vectors')
   and exists (select 1 from pragma_table_info('vector_models') where name = 'dimension')

-- drop_vectors --
drop table if exists text_vectors

-- drop_models --
drop table if exists vector_models

-- add_model --
insert or ignore into vector_models (stamp, dimension) values (?, ?)

-- model --
select id from vector_models where stamp = ?

-- models --
select stamp, id, dimension from vector_models order by id

-- count --
select count(*) from text_vectors where model_id = ?

-- find --
select vector from text_vectors where model_id = ? and key = ?

-- keep --
insert or ignore into text_vectors (model_id, key, vector) values (?, ?, ?)

-- all --
select rowid, vector from text_vectors where model_id = ?

-- keys --
select rowid, key from text_vectors where model_id = ?

-- drop --
delete from text_vectors where rowid = ?

-- forget --
delete from text_vectors where rowid in (select rowid from text_vectors where model_id = ? limit ?)

-- forget_model --
delete from vector_models where id = ?

-- note_complete --
-- The model, and the entry of the feed up to which everything has its vector.
insert into db_metadata (key, value) values ('embedded_until', ?)
on conflict (key) do update set value = excluded.value

-- complete --
select value from db_metadata where key = 'embedded_until'

-- shown_by --
-- The model whose vectors stand in the documented tables.
select value from db_metadata where key = 'embedding_model'

-- show_model --
insert into db_metadata (key, value) values ('embedding_model', ?)
on conflict (key) do update set value = excluded.value

-- entity_shown --
select embedding from entity_embeddings where rowid = ?

-- entity_hide --
delete from entity_embeddings where rowid = ?

-- entity_show --
-- Only of what there is: who is gone meanwhile leaves nothing behind.
insert into entity_embeddings (rowid, embedding) select id, ?2 from entities where id = ?1

-- reflection_shown --
select embedding from reflection_embeddings where rowid = ?

-- reflection_hide --
delete from reflection_embeddings where rowid = ?

-- reflection_show --
insert into reflection_embeddings (rowid, embedding) select id, ?2 from reflections where id = ?1

-- entity_all_shown --
select embedding from entity_embeddings

-- reflection_all_shown --
select embedding from reflection_embeddings
