-- save_run: append how an action of a run ended, unless another process has appended meanwhile
-- ARGV    run, entries:int, is_over:int, is_fault:int, entry
--         entries: how many the writer knows; is_over: whether this was the last action of the run; is_fault: whether it failed or is
--         unknown; entry: as JSON
-- RETURNS "saved"; "stale" if the run has another number of entries, or was dropped: nothing was written; "missing" if there is no such run
-- EVENTS  none
-- INVARIANT each entry follows the one that its writer knew, so an action ends once and what it releases is released once (C-29)

return function(run, entries, is_over, is_fault, entry)
  local run_hash = Key.run(run)
  local stored, ended = unpack(redis_call('HMGET', run_hash, 'entries', 'ended'))
  if not stored then return 'missing' end
  if ended or tonumber(stored) ~= entries then return 'stale' end
  redis_call('HSET', run_hash, entries, entry, 'entries', entries + 1)
  if is_fault == 1 then Runs.count_fault(run) end
  if is_over == 1 then Runs.finish(run) end
  return 'saved'
end
