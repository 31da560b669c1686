-- marks --
select key, value from space_state where key in ('examined_observation', 'examined_by_words', 'examined_seq')

-- reach --
-- Several processes look; none takes back what another has done.
insert into space_state (key, value) values ('examined_observation', ?)
on conflict (key) do update set value = max(value, excluded.value)

-- note --
-- Of these the last one counts: what it is behind is looked at again.
insert into space_state (key, value) values ('examined_by_words', ?), ('examined_seq', ?)
on conflict (key) do update set value = excluded.value
