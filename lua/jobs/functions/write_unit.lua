-- write_unit: record what became of an item or an effect, for ever
-- ARGV    id, holder, name, value, log, place, own
--         log: a line for the live log, or ""; own: the state of the job's own after it, as JSON, or ""; place: as in
--         write_own_state
-- RETURNS as check_attempt; after "lost" nothing was written
-- EVENTS  del of the bell of the job's log
-- INVARIANT I24; only the attempt that began the iteration last writes

return function(id, holder, name, value, log, place, own)
  local state, is_late = JobAttempt.state(id, holder)
  if state == 'lost' then return state end
  if not is_late then JobSteps.note(id, name) end
  redis_call('HSET', Key.job_units(id), name, value)
  -- What goes on is no reason to suspect it.
  redis_call('HDEL', Key.job(id), 'losses')
  if own ~= '' then JobSteps.write_own(id, place, own, is_late) end
  if log ~= '' then JobLog.append_log(id, log) end
  return state
end
