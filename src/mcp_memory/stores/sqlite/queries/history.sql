-- floor --
select coalesce((select value from space_state where key = 'feed_floor'), 0)

-- set_floor --
update space_state set value = ? where key = 'feed_floor'

-- first --
select min(seq) from change

-- whole --
select seq, at, body, origin, tool, part, was from change where seq > ? and seq <= ? order by seq

-- calls --
-- The first entries of calls, newest first; what is null, or empty, filters nothing.
select seq, at, body, origin, tool, part, was from change
 where part = 0 and seq > :floor and seq < :before
   and (:by = '' or instr(lower(origin), :by)) and (:tool = '' or tool = :tool)
   and (:since = '' or at >= :since) and (:until = '' or at <= :until)
 order by seq desc limit :limit

-- rest_of_call --
select seq, part, substr(body, 1, 5) from change where seq > ? order by seq limit 1

-- of_entity --
select seq from change_subject where entity_id = ? and seq > ? and seq < ? order by seq desc limit ?

-- noted --
-- The entries that note a request.
select seq, at, body, origin, tool, part from change where seq > ? and instr(body, ?) order by seq

-- one --
select seq, at, body, origin, tool, part, was from change where seq = ?

-- head --
select at, origin, tool, part from change where seq = ?

-- last_calls --
select seq from change where part = 0 and seq > ? and tool <> ? order by seq desc limit ?

-- call_after --
select min(seq) from change where part = 0 and seq > ?

-- at_moment --
select seq from change where at <= ? order by seq desc limit 1

-- ids_named --
select id from entities where name = ?1 union select id from gone_entity where name = ?1

-- name_of --
select name from entities where id = ?1 union all select name from gone_entity where id = ?1 limit 1

-- index_subject --
insert or ignore into change_subject (entity_id, seq) values (?, ?)

-- bury --
insert or replace into gone_entity (id, name) select id, name from entities where id = ?

-- bury_under --
insert or replace into gone_entity (id, name) values (?, ?)

-- set_was --
update change set was = ? where seq = ?

-- empty_subjects --
delete from change_subject

-- empty_gone --
delete from gone_entity

-- subjects --
select entity_id, seq from change_subject

-- nameless --
select count(distinct entity_id) from change_subject
 where entity_id not in (select id from entities) and entity_id not in (select id from gone_entity)

-- dropped --
select count(*), max(at) from change where part = 0 and seq > ? and seq <= ?

-- at_of --
select at from change where seq = ?

-- first_since --
-- The first entry of the history that was not written before this moment.
select min(seq) from change where seq > ? and at >= ?

-- first_of_newest --
-- The first entry of the oldest of so many newest calls.
select min(seq) from (select seq from change where part = 0 and seq > ? order by seq desc limit ?)

-- drop_entries --
delete from change where seq <= ?

-- drop_subjects --
delete from change_subject where seq <= ?

-- drop_gone --
delete from gone_entity where id not in (select entity_id from change_subject)
