-- end_iteration: end an iteration and put the task of the next one
-- ARGV    id, holder, expected:int, document, due, log, tube, task:rest
--         expected: the version with which the iteration began; document: the job with the next iteration; due: ms of it;
--         tube: that of the kind of the job; task: as in put
-- RETURNS 1; 0 if another attempt has taken the job, or the job has changed since: nothing was written
-- EVENTS  del of bells, also that of the job's log; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I22, I23, I24; an iteration ends once

return function(id, holder, expected, document, due, log, tube, task)
  local stored = redis_call('HMGET', Key.job(id), 'holder', 'version')
  if stored[1] ~= holder or tonumber(stored[2]) ~= expected then return 0 end
  redis_call('HINCRBY', Key.job(id), 'version', 1)
  redis_call('HSET', Key.job(id), 'record', document)
  redis_call('HDEL', Key.job(id), 'holder', 'losses')
  redis_call('DEL', Key.job_steps(id))
  redis_call('ZADD', Key.jobs_due(), due, id)
  if log ~= '' then JobLog.append_log(id, log) end
  NewTasks.add(tube, task)
  return 1
end
