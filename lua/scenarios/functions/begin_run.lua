-- begin_run: store a new run of scenarios; a run that is there stays as it is
-- ARGV    run, tenant, person, kept:int, scenarios, fields:rest
--         kept: how many runs of the person are listed; scenarios: their full names as JSON; fields: name, value, … of the run
-- RETURNS [now] for a new run; else the fields of the stored one: name, value, …
-- EVENTS  none
-- INVARIANT one run for each event, however often it is processed (C-92)

return function(run, tenant, person, kept, scenarios, fields)
  local run_hash = Key.run(run)
  if redis_call('EXISTS', run_hash) == 1 then return redis_call('HGETALL', run_hash) end
  redis_call(
    'HSET', run_hash, 'tenant', tenant, 'person', person, 'scenarios', scenarios, 'began', string.format('%.0f', now), 'entries', 0,
    unpack(fields)
  )
  redis_call('PEXPIRE', run_hash, Runs.longest_ms())
  local listed = Key.runs(tenant, person)
  redis_call('ZADD', listed, now, run)
  redis_call('ZREMRANGEBYRANK', listed, 0, -kept - 1)
  redis_call('PEXPIRE', listed, Runs.retention_ms())
  Runs.add_to_lists(run, tenant, scenarios)
  return { now }
end
