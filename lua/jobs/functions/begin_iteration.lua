-- begin_iteration: let an attempt begin an iteration, or go on with it, if nothing has changed the job meanwhile
-- ARGV    tenant, id, holder, expected:int, state, document, due, log
--         holder: "token task" of the attempt; expected: the version that was read; document: the job as JSON; due: ms of
--         its iteration; log: a line for the live log, or ""
-- RETURNS [the new version, what the iteration has stored: [name, value, …]], also for a repetition; [0, []] if the job
--         has another version by now: nothing was written
-- EVENTS  del of the bell of the job's log
-- INVARIANT I22, I24; nothing that another attempt writes is missing in what the iteration has stored

local function is_repeated(stored, holder, expected, document)
  return tonumber(stored[1] or '0') == expected + 1 and stored[3] == document and stored[4] == holder
end

return function(tenant, id, holder, expected, state, document, due, log)
  local stored = redis_call('HMGET', Key.job(id), 'version', 'state', 'record', 'holder')
  if not is_repeated(stored, holder, expected, document) then
    if tonumber(stored[1] or '0') ~= expected then return { 0, {} } end
    JobRecord.write(tenant, id, expected + 1, stored[2], state, document)
    redis_call('HSET', Key.job(id), 'holder', holder)
    redis_call('ZADD', Key.jobs_due(), due, id)
    if log ~= '' then JobLog.append_log(id, log) end
  end
  return { expected + 1, redis_call('HGETALL', Key.job_steps(id)) }
end
