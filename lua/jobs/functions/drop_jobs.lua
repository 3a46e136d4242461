-- drop_jobs: drop children that ended before the retention of histories; what they have done for ever stays recorded
-- ARGV    limit:int
-- RETURNS how many were dropped
-- EVENTS  del of bells
-- INVARIANT I23; a job started again under the name of a dropped one repeats no effect

-- `tenant/kind~key.user`: the jobs with keys of a kind and user are listed under `tenant/kind.user`.
local function drop(id)
  local tenant = id:match('^[^/]*')
  local base = id:gsub('~[^.]*', '', 1)
  local state = redis_call('HGET', Key.job(id), 'state')
  redis_call('ZREM', Key.jobs(tenant), id)
  redis_call('SREM', Key.job_keys(base), id)
  if state then redis_call('HINCRBY', Key.job_counts(tenant), state, -1) end
  JobSteps.drop(id)
  redis_call('DEL', Key.job(id), Key.job_signals(id), Key.job_log(id), Key.job_bell(id))
end

return function(limit)
  local retention = tonumber(redis_call('HGET', Key.settings(), 'retention_ms') or 30 * DAY_MS)
  local ended = redis_call('ZRANGEBYSCORE', Key.jobs_ended(), '-inf', now - retention, 'LIMIT', 0, limit)
  for _, id in ipairs(ended) do drop(id) end
  if #ended > 0 then redis_call('ZREM', Key.jobs_ended(), unpack(ended)) end
  return #ended
end
