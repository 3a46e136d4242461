-- count_loss: count an attempt that has ended without a word, because its process died, hung or was frozen
-- ARGV    id, holder, log
--         holder: that of the lost attempt; log: a line for the live log
-- RETURNS how many attempts in a row were lost without storing a result
-- EVENTS  del of the bell of the job's log
-- INVARIANT an attempt is counted once

return function(id, holder, log)
  if redis_call('HGET', Key.job(id), 'holder') == holder then
    redis_call('HDEL', Key.job(id), 'holder')
    redis_call('HINCRBY', Key.job(id), 'losses', 1)
    JobLog.append_log(id, log)
  end
  return tonumber(redis_call('HGET', Key.job(id), 'losses') or '0')
end
