-- entities --
select id, name, entity_type, status, created_at, updated_at from entities order by id

-- observations --
select entity_id, id, content, created_at, kind, supersedes, superseded_at, similarity_flag from observations
 order by entity_id, id

-- relations --
-- `active` decides, as the documents say; an ended relation without a time ended when it was created.
select id, from_entity, to_entity, relation_type, created_at, context,
       case when active then null else coalesce(ended_at, created_at) end
  from relations order by id

-- reflections --
select id, target_type, target_id, author, content, mood, created_at from reflections order by id

-- next_ids --
select name, seq from sqlite_sequence where name in ('entities', 'observations', 'relations', 'reflections')
