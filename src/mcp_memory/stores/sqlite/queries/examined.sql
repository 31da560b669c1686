-- last --
select value from space_state where key = 'examined_observation'

-- reach --
-- Several processes look; none takes back what another has done.
insert into space_state (key, value) values ('examined_observation', ?)
on conflict (key) do update set value = max(value, excluded.value)
