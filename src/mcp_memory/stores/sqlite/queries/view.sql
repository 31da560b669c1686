-- entity --
select id, name, entity_type, status, created_at, updated_at from entities where id = ?

-- entity_named --
select id, status from entities where name = ?

-- name --
select name from entities where id = ?

-- observations --
select id, content, created_at, kind, supersedes, superseded_at, similarity_flag from observations
 where entity_id = ? order by id

-- relations --
-- Every relation touching one of a list of entities, each once.
select id, from_entity, to_entity, relation_type, created_at, context,
       case when active then null else coalesce(ended_at, created_at) end
  from relations
 where id in (select id from relations where from_entity in (select value from json_each(?1))
              union select id from relations where to_entity in (select value from json_each(?1)))
 order by id

-- relation_page --
-- Of a type, or of any ('').
select id, from_entity, to_entity, relation_type, created_at, context, null from relations
 where active and (?1 = '' or relation_type = ?1) order by id limit ?2 offset ?3

-- relation_count --
select count(*) from relations where active and (?1 = '' or relation_type = ?1)

-- neighbours --
-- For a whole frontier at once; placeholders are nobody's neighbours.
select here, there from (
    select from_entity as here, to_entity as there, id as relation_id from relations
     where active and from_entity in (select value from json_each(?1))
    union all
    select to_entity, from_entity, id from relations
     where active and to_entity in (select value from json_each(?1)))
  join entities e on e.id = there and e.status <> 'placeholder'
 where here <> there
 order by relation_id

-- reflections --
select id, target_type, target_id, author, content, mood, created_at from reflections
 where target_type = 'entity' and target_id = ? order by id

-- types --
select entity_type, count(*) from entities where status <> 'placeholder' group by entity_type order by 2 desc, min(id)

-- recent --
select name from entities where status <> 'placeholder' order by updated_at desc, id desc limit ?

-- size --
select coalesce(max(id), 0) from entities
