-- write_intent: record that an effect is about to begin, if the job is in the state in which its attempt has begun
-- ARGV    id, holder, wanted, name, value
--         wanted: this state: "running", or "stopping" while effects are taken back
-- RETURNS as check_attempt; after another state than `wanted` nothing was written
-- EVENTS  none
-- INVARIANT I24; only the attempt that began the iteration last writes; no effect begins in a job that does not run

return function(id, holder, wanted, name, value)
  local state, is_late = JobAttempt.state(id, holder)
  if state ~= wanted or is_late then return state end
  -- A process with other code sees by it what the iteration has begun.
  JobSteps.write(id, name, '')
  redis_call('HSET', Key.job_units(id), name, value)
  return state
end
