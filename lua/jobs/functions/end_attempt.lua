-- end_attempt: end an attempt whose iteration goes on in another one, so that it does not count as lost
-- ARGV    id, holder
-- RETURNS as check_attempt; after "lost" nothing was written
-- EVENTS  none
-- INVARIANT I24

return function(id, holder)
  local state = JobAttempt.state(id, holder)
  if state ~= 'lost' then redis_call('HDEL', Key.job(id), 'holder') end
  return state
end
