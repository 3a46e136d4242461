-- save_job: create or change a job, if nothing has changed it meanwhile
-- ARGV    tenant, id, expected:int, state, document, due, holder, base, is_child, log, notice:json, tube, task:rest
--         expected: the version that was read, 0 for a new job; document: the job as JSON; due: ms of the next iteration, "" if none
--         is due; holder: "token task" of the attempt that begins an iteration, "" if none does; base: the job of the
--         same kind and user without a key, "" for that itself; is_child: "1" if another job has started it, or "";
--         log: a line for the live log, or "";
--         notice: the row of the task that notifies the user, [] if there is none;
--         tube: that of the kind of the job; task: as in put, or nothing
-- RETURNS the new version, also for a repetition; 0 if the job has another version by now: nothing was written
-- EVENTS  del of bells, also that of the job's log; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I22, I23, I24; each change is seen once

-- The attempt that still runs may record the unit in hand, but no results of steps: a new start must not use them.
local function let_go(job)
  local attempt = redis_call('HGET', Key.job(job), 'holder')
  if attempt and attempt:sub(1, 5) ~= 'late:' then
    redis_call('HSET', Key.job(job), 'holder', 'late:' .. attempt)
  end
end

-- An ended child is dropped after some time (drop_jobs); its user did not start it, and does not delete it.
local function note_end(id, has_ended, is_child)
  if has_ended and is_child == '1' then
    redis_call('ZADD', Key.jobs_ended(), now, id)
  else
    redis_call('ZREM', Key.jobs_ended(), id)
  end
end

return function(tenant, id, expected, state, document, due, holder, base, is_child, log, notice, tube, task)
  local stored = redis_call('HMGET', Key.job(id), 'version', 'state', 'record', 'holder')
  local version = tonumber(stored[1] or '0')
  if version == expected + 1 and stored[3] == document and (holder == '' or stored[4] == holder) then return version end
  if version ~= expected then return 0 end
  if stored[2] ~= state then
    if stored[2] then redis_call('HINCRBY', Key.job_counts(tenant), stored[2], -1) end
    redis_call('HINCRBY', Key.job_counts(tenant), state, 1)
  end
  redis_call('HSET', Key.job(id), 'version', version + 1, 'state', state, 'record', document)
  if holder ~= '' then redis_call('HSET', Key.job(id), 'holder', holder) end
  redis_call('ZADD', Key.jobs(tenant), 'NX', now, id)
  if base ~= '' then redis_call('SADD', Key.job_keys(base), id) end
  if due == '' then
    redis_call('ZREM', Key.jobs_due(), id)
  else
    redis_call('ZADD', Key.jobs_due(), due, id)
  end
  local has_ended = state == 'stopped' or state == 'failed'
  note_end(id, has_ended, is_child)
  if has_ended then
    redis_call('DEL', Key.job_steps(id), Key.job_signals(id))
    redis_call('HDEL', Key.job(id), 'losses')
    let_go(id)
  end
  if log ~= '' then JobLog.append_log(id, log) end
  if task[1] then NewTasks.add(tube, task) end
  if notice[1] then NewTasks.add('job-notices', notice) end
  return version + 1
end
