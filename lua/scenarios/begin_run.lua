-- begin_run: store a new run of scenarios; one that is there stays as it is
-- ARGV    run, tenant, person, kept:int, fields:rest
--         kept: how many runs of the person are listed; fields: name, value, … of the run
-- USES    runs
-- RETURNS [now] for a new run; else the fields of the stored one: name, value, …
-- EVENTS  none
-- INVARIANT one run for each event, however often it is processed (C-92)

local run_hash = run_key(run)
if redis.call('EXISTS', run_hash) == 1 then return redis.call('HGETALL', run_hash) end
redis.call('HSET', run_hash, 'tenant', tenant, 'person', person, 'began', string.format('%.0f', now), 'entries', 0, unpack(fields))
redis.call('PEXPIRE', run_hash, retention_ms() + 90 * DAY_MS)
local listed = runs_key(tenant, person)
redis.call('ZADD', listed, now, run)
redis.call('ZREMRANGEBYRANK', listed, 0, -kept - 1)
redis.call('PEXPIRE', listed, retention_ms())
return { now }
