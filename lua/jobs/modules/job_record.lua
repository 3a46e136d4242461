-- job_record: the stored job: its version, which grows with each change, its state and its record

-- Stores a change. `before`: the state until now, false for a new job.
function JobRecord.write(tenant, id, version, before, state, document)
  if before ~= state then
    if before then redis_call('HINCRBY', Key.job_counts(tenant), before, -1) end
    redis_call('HINCRBY', Key.job_counts(tenant), state, 1)
  end
  redis_call('HSET', Key.job(id), 'version', version, 'state', state, 'record', document)
end
