-- create_entity --
insert into entities (id, name, entity_type, status, created_at, updated_at) values (?, ?, ?, ?, ?, ?)

-- rename_entity --
update entities set name = ? where id = ?

-- repoint_sources --
update relations set from_entity = ? where from_entity = ?

-- repoint_targets --
update relations set to_entity = ? where to_entity = ?

-- alter_entity --
update entities set entity_type = coalesce(?, entity_type), status = coalesce(?, status) where id = ?

-- touch_entity --
update entities set updated_at = ? where id = ?

-- delete_entity --
delete from entities where id = ?

-- forget_text --
delete from entity_fts where rowid = ?

-- forget_vector --
delete from entity_embeddings where rowid = ?

-- add_observation --
insert into observations (id, entity_id, content, kind, created_at) values (?, ?, ?, ?, ?)

-- restore_observation --
insert into observations (id, entity_id, content, kind, supersedes, superseded_at, similarity_flag, created_at)
values (?, ?, ?, ?, ?, ?, ?, ?)

-- supersede_observation --
update observations set superseded_at = ? where id = ?

-- link_superseding --
update observations set supersedes = ? where id = ?

-- unlink_superseded --
update observations set supersedes = null where supersedes = ?

-- delete_observation --
delete from observations where id = ?

-- move_observation --
update observations set entity_id = ? where id = ?

-- flag_observation --
update observations set similarity_flag = ? where id = ?

-- create_relation --
insert into relations (id, from_entity, to_entity, relation_type, context, created_at) values (?, ?, ?, ?, ?, ?)

-- restore_relation --
insert into relations (id, from_entity, to_entity, relation_type, context, active, ended_at, created_at)
values (?, ?, ?, ?, ?, ?, ?, ?)

-- end_relation --
update relations set active = 0, ended_at = ? where id = ?

-- revive_relation --
update relations set active = 1, ended_at = null, context = coalesce(?, context) where id = ?

-- repoint_relation --
update relations set from_entity = ?, to_entity = ? where id = ?

-- delete_relation --
delete from relations where id = ?

-- add_reflection --
insert into reflections (id, target_type, target_id, author, content, mood, created_at) values (?, ?, ?, ?, ?, ?, ?)

-- index_reflection --
insert into reflection_fts (rowid, content) values (?, ?)

-- index_text --
-- What entity_fts holds of an entity: the observations believed now, in order, joined as documented.
insert into entity_fts (rowid, name, entity_type, obs_text)
select id, name, entity_type,
       coalesce((select group_concat(content, ' | ') from
                 (select content from observations
                   where entity_id = entities.id and superseded_at is null order by id)), '')
  from entities where id = ? and status <> 'placeholder'
