-- forget_intent: remove the record of an effect whose call certainly did nothing
-- ARGV    id, holder, name
-- RETURNS as check_attempt; after "lost" nothing was removed
-- EVENTS  none
-- INVARIANT I24; only the attempt that began the iteration last writes

return function(id, holder, name)
  local state = JobAttempt.state(id, holder)
  if state ~= 'lost' then redis_call('HDEL', Key.job_units(id), name) end
  return state
end
