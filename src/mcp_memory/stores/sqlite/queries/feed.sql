-- append --
insert into change (seq, at, origin, tool, part, body, was) values (?, ?, ?, ?, ?, ?, ?)

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
select value from space_state where key = 'projected_seq'

-- set_projected --
update space_state set value = ? where key = 'projected_seq'
