-- take_signal: give a signal to the iteration that has waited for it
-- ARGV    id, holder, entry, name, value
--         entry: the signal as it is stored; name, value: the step that stores it for a repetition of the iteration
-- RETURNS the state of the job; otherwise nothing was written: "lost" if the attempt does not hold the job any more; "taken" if another
--         branch has the signal
-- EVENTS  none
-- INVARIANT I24; a signal is taken once

return function(id, holder, entry, name, value)
  local stored = redis_call('HMGET', Key.job(id), 'holder', 'state')
  if stored[1] ~= holder then return 'lost' end
  local is_there = redis_call('LREM', Key.job_signals(id), 1, entry) == 1
  if not is_there and redis_call('HGET', Key.job_steps(id), name) ~= value then return 'taken' end
  JobSteps.write(id, name, value)
  redis_call('HDEL', Key.job(id), 'losses')
  return stored[2]
end
