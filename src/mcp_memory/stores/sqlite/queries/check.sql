-- wake_texts --
select rowid from entity_fts limit 1

-- wake_reflections --
select rowid from reflection_fts limit 1

-- integrity --
pragma integrity_check(10)

-- foreign_keys --
pragma foreign_key_check

-- stale_texts --
-- Entities whose full-text row is missing or says something else than the tables.
select e.id from entities e left join entity_fts f on f.rowid = e.id
 where e.status <> 'placeholder'
   and (f.rowid is null or f.name is not e.name or f.entity_type is not e.entity_type
        or f.obs_text is not coalesce((select group_concat(content, ' | ') from
              (select content from observations
                where entity_id = e.id and superseded_at is null order by id)), ''))

-- orphan_texts --
select rowid from entity_fts where rowid not in (select id from entities where status <> 'placeholder')

-- stale_reflections --
select r.id, r.content from reflections r left join reflection_fts f on f.rowid = r.id
 where f.rowid is null or f.content is not r.content

-- orphan_reflections --
select rowid from reflection_fts where rowid not in (select id from reflections)

-- forget_reflection --
delete from reflection_fts where rowid = ?

-- orphan_vectors --
select rowid from entity_embeddings where rowid not in (select id from entities)

-- say_version --
insert or replace into db_metadata (key, value) values ('schema_version', ?)

-- say_projected --
-- The tables may lag behind: then they differ from the feed, and are made anew.
insert or replace into space_state (key, value) select 'projected_seq', coalesce(max(seq), 0) from change

-- say_floor --
insert or replace into space_state (key, value)
select 'feed_floor', coalesce(max(seq), 0) from change where tool in ('adopt', 'beginning')
