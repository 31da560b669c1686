-- append --
insert into change (seq, at, origin, tool, part, body, was) values (?, ?, ?, ?, ?, ?, ?)

-- append_next --
-- Only if nothing was written since; what history let go of was written all the same.
insert into change (seq, at, origin, tool, part, body, was)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7
 where coalesce((select max(seq) from change),
                (select cast(value as integer) from space_state where key = 'feed_floor'), 0) = ?1 - 1

-- news --
select seq, at, body, origin, tool, part from change where seq > ? order by seq

-- some_news --
-- With what was before: whoever projects an entry wants to know whom it is about.
select seq, at, body, origin, tool, part, was from change where seq > ? order by seq limit ?

-- entry --
select at, body from change where seq = ?

-- space_id --
select value from db_metadata where key = 'space_id'

-- last --
select coalesce(max(seq), 0) from change

-- projected --
select coalesce((select value from space_state where key = 'projected_seq'), 0)

-- set_projected --
update space_state set value = ? where key = 'projected_seq'
