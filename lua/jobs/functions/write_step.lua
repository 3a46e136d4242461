-- write_step: store a result of an iteration, until that ends
-- ARGV    id, holder, name, value
-- RETURNS as check_attempt; after "lost" and "stopped" nothing was written
-- EVENTS  none
-- INVARIANT I24; only the attempt that began the iteration last writes

return function(id, holder, name, value)
  local state, is_late = JobAttempt.state(id, holder)
  if state == 'lost' or is_late then return state end
  JobSteps.write(id, name, value)
  -- What goes on is no reason to suspect it.
  redis_call('HDEL', Key.job(id), 'losses')
  return state
end
