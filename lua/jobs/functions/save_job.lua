-- save_job: create or change a job, if nothing has changed it meanwhile
-- ARGV    tenant, id, expected:int, state, document, due, holder, base, is_child, from, again, log, notice:json, tube, task:rest
--         expected: the version that was read, 0 for a new job; document: the job as JSON; due: ms of the next iteration, "" if none
--         is due; holder: "token task" of the attempt that changes its job, "" if none does; base: the job of the
--         same kind and user without a key, "" for that itself; is_child: "1" if another job has started it, or "";
--         from: the name from which on the iteration that has begun is repeated, or ""; again: "1" if effects and items are
--         repeated, too, or "";
--         log: a line for the live log, or "";
--         notice: the row of the task that notifies the user, [] if there is none;
--         tube: that of the kind of the job; task: as in put, or nothing
-- RETURNS the new version, also for a repetition; otherwise nothing was written: 0 if the job has another version by now; -1 if
--         effects should be repeated while an attempt may be at them
-- EVENTS  del of bells, also that of the job's log; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I22, I23, I24; each change is seen once

local function has_ended(state)
  return state == 'stopped' or state == 'finished' or state == 'failed'
end

-- An ended child is dropped after some time (drop_jobs); its user did not start it, and does not delete it.
local function note_end(id, state, is_child)
  if has_ended(state) and is_child == '1' then
    redis_call('ZADD', Key.jobs_ended(), now, id)
  else
    redis_call('ZREM', Key.jobs_ended(), id)
  end
end

-- A new start must not use what the iteration before it has stored.
local function change_steps(id, before, after, from, again)
  if from ~= '' then
    JobSteps.reset(id, from, again == '1')
  elseif has_ended(after) and before ~= after then
    JobSteps.keep(id)
  elseif has_ended(before) and not has_ended(after) then
    JobSteps.drop(id)
  end
end

return function(tenant, id, expected, state, document, due, holder, base, is_child, from, again, log, notice, tube, task)
  local stored = redis_call('HMGET', Key.job(id), 'version', 'state', 'record', 'holder')
  local version = tonumber(stored[1] or '0')
  if version == expected + 1 and stored[3] == document and (holder == '' or stored[4] == holder) then return version end
  if version ~= expected then return 0 end
  if again == '1' and JobAttempt.is_running(id) then return -1 end
  JobRecord.write(tenant, id, version + 1, stored[2], state, document)
  if holder ~= '' then redis_call('HSET', Key.job(id), 'holder', holder) end
  redis_call('ZADD', Key.jobs(tenant), 'NX', now, id)
  if base ~= '' then redis_call('SADD', Key.job_keys(base), id) end
  if due == '' then
    redis_call('ZREM', Key.jobs_due(), id)
  else
    redis_call('ZADD', Key.jobs_due(), due, id)
  end
  note_end(id, state, is_child)
  change_steps(id, stored[2], state, from, again)
  if has_ended(state) then redis_call('DEL', Key.job_signals(id)) end
  if has_ended(state) or from ~= '' or (state == 'stopping' and stored[2] ~= state) then
    redis_call('HDEL', Key.job(id), 'losses')
    JobAttempt.let_go(id)
  end
  if log ~= '' then JobLog.append_log(id, log) end
  if task[1] then
    JobTask.put(id, tube, task)
  elseif due == '' or has_ended(state) then
    JobTask.drop(id)
  end
  if notice[1] then NewTasks.add('job-notices', notice) end
  return version + 1
end
