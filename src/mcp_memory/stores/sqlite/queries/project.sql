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

-- pass_reflections --
update reflections set target_id = ? where target_type = 'entity' and target_id = ?

-- pass_access --
-- Usage of a merged entity counts for the one it became part of.
insert into entity_access (entity_id, access_count, last_access)
select ?1, access_count, last_access from entity_access where entity_id = ?2
on conflict (entity_id) do update set access_count = access_count + excluded.access_count,
                                      last_access = max(last_access, excluded.last_access)

-- pass_access_days --
insert into entity_access_log (entity_id, access_date, access_count)
select ?1, access_date, access_count from entity_access_log where entity_id = ?2
on conflict (entity_id, access_date) do update set access_count = access_count + excluded.access_count

-- pass_company_above --
-- Pairs are kept with the lower id first; a pair of the two themselves is dropped.
insert into co_occurrences (entity_a_id, entity_b_id, co_count, last_co)
select min(?1, entity_b_id), max(?1, entity_b_id), co_count, last_co
  from co_occurrences where entity_a_id = ?2 and entity_b_id <> ?1
on conflict (entity_a_id, entity_b_id) do update set co_count = co_count + excluded.co_count,
                                                     last_co = max(last_co, excluded.last_co)

-- pass_company_below --
insert into co_occurrences (entity_a_id, entity_b_id, co_count, last_co)
select min(?1, entity_a_id), max(?1, entity_a_id), co_count, last_co
  from co_occurrences where entity_b_id = ?2 and entity_a_id <> ?1
on conflict (entity_a_id, entity_b_id) do update set co_count = co_count + excluded.co_count,
                                                     last_co = max(last_co, excluded.last_co)

-- add_observation --
insert into observations (id, entity_id, content, kind, created_at) values (?, ?, ?, ?, ?)

-- restore_observation --
insert into observations (id, entity_id, content, kind, supersedes, superseded_at, similarity_flag, created_at)
values (?, ?, ?, ?, ?, ?, ?, ?)

-- revert_observation --
update observations set content = ?, kind = ?, supersedes = ?, superseded_at = ?, similarity_flag = ?, created_at = ?
 where id = ?

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

-- revert_relation --
update relations set context = ?, active = ?, ended_at = ?, created_at = ? where id = ?

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

-- forget_reflection_vector --
delete from reflection_embeddings where rowid = ?

-- delete_reflection --
delete from reflections where id = ?

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
