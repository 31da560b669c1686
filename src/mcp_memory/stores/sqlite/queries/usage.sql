-- is_there --
select exists (select 1 from sqlite_master where type = 'table' and name = 'search_base')

-- has_echo --
select exists (select 1 from pragma_table_info('search_base') where name = 'echo')

-- bring_echo --
-- Before there was an echo, nothing had one.
alter table search_base add column echo REAL NOT NULL DEFAULT 0

-- shown --
-- Who is gone meanwhile is passed over, here and below.
insert into entity_access (entity_id, access_count, last_access)
select id, ?2, datetime(?3, 'unixepoch') from entities where name = ?1
on conflict (entity_id) do update set access_count = access_count + excluded.access_count,
                                      last_access = max(last_access, excluded.last_access)

-- shown_that_day --
insert into entity_access_log (entity_id, access_date, access_count)
select id, date(?3, 'unixepoch'), ?2 from entities where name = ?1
on conflict (entity_id, access_date) do update set access_count = access_count + excluded.access_count

-- shown_together --
insert into co_occurrences (entity_a_id, entity_b_id, co_count, last_co)
select min(a.id, b.id), max(a.id, b.id), ?3, datetime(?4, 'unixepoch')
  from entities a, entities b where a.name = ?1 and b.name = ?2
on conflict (entity_a_id, entity_b_id) do update set co_count = co_count + excluded.co_count,
                                                     last_co = max(last_co, excluded.last_co)

-- used --
insert into entity_use (entity_id, use_count, last_use)
select id, 1, datetime(?2, 'unixepoch') from entities where name = ?1
on conflict (entity_id) do update set use_count = use_count + 1, last_use = max(last_use, excluded.last_use)

-- used_that_day --
insert into entity_use_log (entity_id, use_date, use_count)
select id, date(?2, 'unixepoch'), 1 from entities where name = ?1
on conflict (entity_id, use_date) do update set use_count = use_count + 1

-- used_together --
insert into co_use (entity_a_id, entity_b_id, co_count, last_co)
select min(a.id, b.id), max(a.id, b.id), 1, datetime(?3, 'unixepoch')
  from entities a, entities b where a.name = ?1 and b.name = ?2
on conflict (entity_a_id, entity_b_id) do update set co_count = co_count + 1, last_co = max(last_co, excluded.last_co)

-- event --
insert into search_events (query_text, query_hash, timestamp, treatment, k_limit, num_results, duration_ms, engine_used)
values (?, ?, datetime(?, 'unixepoch'), ?, ?, ?, ?, ?)
returning event_id

-- result --
insert into search_results (event_id, entity_id, entity_name, rank, limbic_score, cosine_sim, importance, temporal,
                            cooc_boost, baseline_rank)
select ?1, id, name, ?3, ?4, ?5, ?6, ?7, ?8, ?9 from entities where name = ?2
on conflict do nothing

-- base --
insert into search_base (event_id, entity_id, base, echo)
select ?1, id, ?3, ?4 from entities where name = ?2
on conflict do nothing

-- feedback --
-- Nothing is said of an event that retention has taken meanwhile.
insert into implicit_feedback (event_id, entity_id, re_accessed, access_delta, session_id)
select ?1, id, 1, ?3, ?4 from entities where name = ?2 and exists (select 1 from search_events where event_id = ?1)

-- oldest_kept --
select max(event_id) - ? from search_events

-- forget_feedback --
delete from implicit_feedback where event_id <= ?

-- forget_results --
delete from search_results where event_id <= ?

-- forget_base --
delete from search_base where event_id <= ?

-- forget_events --
delete from search_events where event_id <= ?

-- batch --
update space_state set value = value + 1 where key = 'usage_batches' returning value

-- batches --
select value from space_state where key = 'usage_batches'

-- all_uses --
select e.name, u.use_count, unixepoch(u.last_use), (select count(*) from entity_use_log where entity_id = u.entity_id)
  from entity_use u join entities e on e.id = u.entity_id

-- all_shown --
select e.name, a.access_count, unixepoch(a.last_access) from entity_access a join entities e on e.id = a.entity_id

-- all_company --
select a.name, b.name, c.co_count, unixepoch(c.last_co)
  from co_use c join entities a on a.id = c.entity_a_id join entities b on b.id = c.entity_b_id

-- metadata --
select key, value from db_metadata

-- set_metadata --
insert into db_metadata (key, value) values (?, ?) on conflict (key) do update set value = excluded.value

-- now --
select strftime('%Y-%m-%dT%H:%M:%SZ', 'now')

-- trials --
-- The newest; treatment -1 are word searches of the predecessor, which were not ranked.
select event_id, query_text, k_limit, treatment from search_events
 where treatment >= 0 order by event_id desc limit ?

-- results_of --
select r.entity_id, r.entity_name, r.rank, r.baseline_rank, r.cosine_sim, r.importance, r.temporal, r.cooc_boost,
       (select coalesce(sum(f.re_accessed), 0) from implicit_feedback f
         where f.event_id = r.event_id and f.entity_id = r.entity_id),
       b.base, b.echo
  from search_results r left join search_base b on b.event_id = r.event_id and b.entity_id = r.entity_id
 where r.event_id = ? order by r.rank

-- results_without_echo --
select r.entity_id, r.entity_name, r.rank, r.baseline_rank, r.cosine_sim, r.importance, r.temporal, r.cooc_boost,
       (select coalesce(sum(f.re_accessed), 0) from implicit_feedback f
         where f.event_id = r.event_id and f.entity_id = r.entity_id),
       b.base, null
  from search_results r left join search_base b on b.event_id = r.event_id and b.entity_id = r.entity_id
 where r.event_id = ? order by r.rank

-- results_of_predecessor --
select r.entity_id, r.entity_name, r.rank, r.baseline_rank, r.cosine_sim, r.importance, r.temporal, r.cooc_boost,
       (select coalesce(sum(f.re_accessed), 0) from implicit_feedback f
         where f.event_id = r.event_id and f.entity_id = r.entity_id),
       null, null
  from search_results r where r.event_id = ? order by r.rank

-- all_feedback --
-- Which question led to what, search by search, as far as the log goes back.
select f.event_id, s.query_text, e.name
  from implicit_feedback f join search_events s on s.event_id = f.event_id join entities e on e.id = f.entity_id
 where f.re_accessed > 0 order by f.event_id, f.feedback_id

-- entity --
select id from entities where name = ?

-- bring_entity --
insert or ignore into entities (name) values (?)

-- forget_entity --
delete from entities where id = ?

-- pass_use --
-- Use of a merged entity counts for the one it became part of.
insert into entity_use (entity_id, use_count, last_use)
select ?1, use_count, last_use from entity_use where entity_id = ?2
on conflict (entity_id) do update set use_count = use_count + excluded.use_count,
                                      last_use = max(last_use, excluded.last_use)

-- pass_use_days --
insert into entity_use_log (entity_id, use_date, use_count)
select ?1, use_date, use_count from entity_use_log where entity_id = ?2
on conflict (entity_id, use_date) do update set use_count = use_count + excluded.use_count

-- pass_use_above --
insert into co_use (entity_a_id, entity_b_id, co_count, last_co)
select min(?1, entity_b_id), max(?1, entity_b_id), co_count, last_co
  from co_use where entity_a_id = ?2 and entity_b_id <> ?1
on conflict (entity_a_id, entity_b_id) do update set co_count = co_count + excluded.co_count,
                                                     last_co = max(last_co, excluded.last_co)

-- pass_use_below --
insert into co_use (entity_a_id, entity_b_id, co_count, last_co)
select min(?1, entity_a_id), max(?1, entity_a_id), co_count, last_co
  from co_use where entity_b_id = ?2 and entity_a_id <> ?1
on conflict (entity_a_id, entity_b_id) do update set co_count = co_count + excluded.co_count,
                                                     last_co = max(last_co, excluded.last_co)

-- pass_results --
update or ignore search_results set entity_id = ?1 where entity_id = ?2

-- pass_base --
update or ignore search_base set entity_id = ?1 where entity_id = ?2

-- pass_feedback --
update implicit_feedback set entity_id = ?1 where entity_id = ?2
