-- end_iteration: end an iteration, or suspend it: put the task of the next one, or of its continuation, and end its own
-- ARGV    id, holder, expected:int, document, due, log, own, waits_for:json, notice:json, tube, task:rest
--         expected: the version with which the iteration began; document: the job as it goes on; due: ms of that; own: the state of the
--         job's own in a suspended iteration, "" if the iteration ends; waits_for: the signals that a suspended iteration
--         waits for, false if it ends; notice: the row of the task that notifies the user, [] if there is none; tube: that of
--         the kind of the job; task: as in put
-- RETURNS "ended"; otherwise nothing was written: "signalled" if one of these signals is there; "changed" if another attempt has taken
--         the job, or the job has changed since
-- EVENTS  del of bells, also that of the job's log; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I8, I22, I23, I24; an iteration ends once, with its task; a signal wakes a suspended iteration

-- Returns whether the job has a signal with one of these names. The data are not decoded: they may be large and deep.
local function has_signal(id, names)
  local wanted = {}
  for _, name in ipairs(names) do wanted[name] = true end
  if not next(wanted) then return false end
  for _, entry in ipairs(redis_call('LRANGE', Key.job_signals(id), 0, -1)) do
    local head = entry:sub(1, entry:find(',"data":', 1, true) - 1)
    if wanted[cjson.decode(head .. '}').name] then return true end
  end
  return false
end

return function(id, holder, expected, document, due, log, own, waits_for, notice, tube, task)
  local stored = redis_call('HMGET', Key.job(id), 'holder', 'version')
  if stored[1] ~= holder or tonumber(stored[2]) ~= expected then return 'changed' end
  if waits_for and has_signal(id, waits_for) then return 'signalled' end
  redis_call('HINCRBY', Key.job(id), 'version', 1)
  redis_call('HSET', Key.job(id), 'record', document)
  redis_call('HDEL', Key.job(id), 'holder', 'losses')
  if waits_for then
    if own ~= '' then redis_call('HSET', Key.job(id), 'own', own) end
  else
    JobSteps.drop(id)
    redis_call('HDEL', Key.job(id), 'own')
  end
  redis_call('ZADD', Key.jobs_due(), due, id)
  if log ~= '' then JobLog.append_log(id, log) end
  JobTask.put(id, tube, task)
  if notice[1] then NewTasks.add('job-notices', notice) end
  JobAttempt.settle(holder)
  return 'ended'
end
