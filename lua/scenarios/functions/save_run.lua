-- save_run: append how an action of a run ended, unless another process has appended meanwhile
-- ARGV    run, entries:int, is_over:int, entry
--         entries: how many the writer knows; is_over: whether this was the last action of the run; entry: as JSON
-- RETURNS "saved"; "stale" if the run has another number of entries: nothing was written; "missing" if there is no such run
-- EVENTS  none
-- INVARIANT each entry follows the one that its writer knew, so an action ends once and what it releases is released once (C-29)

return function(run, entries, is_over, entry)
  local run_hash = Key.run(run)
  local stored = redis_call('HGET', run_hash, 'entries')
  if not stored then return 'missing' end
  if tonumber(stored) ~= entries then return 'stale' end
  redis_call('HSET', run_hash, entries, entry, 'entries', entries + 1)
  if is_over == 1 then
    local drop_at = now + Runs.retention_ms()
    redis_call('HSET', run_hash, 'ended', string.format('%.0f', now))
    redis_call('ZADD', Key.ended_runs(), drop_at, run)
    -- If no run ends any more, the server drops the key by itself a day later.
    redis_call('PEXPIREAT', run_hash, drop_at + DAY_MS)
    Runs.drop_ended_runs(10)
  end
  return 'saved'
end
