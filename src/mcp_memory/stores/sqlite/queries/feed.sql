-- append --
insert into change (seq, at, origin, tool, part, body) values (?, ?, ?, ?, ?, ?)

-- news --
select seq, at, body, origin, tool, part from change where seq > ? order by seq

-- some_news --
select seq, at, body, origin, tool, part from change where seq > ? order by seq limit ?

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
