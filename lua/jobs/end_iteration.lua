-- end_iteration: end an iteration and put the task of the next one
-- ARGV    id, holder, expected:int, document, due, log, tube, task:rest
--         expected: the version with which the iteration began; document: the job with the next iteration; due: ms of it;
--         tube: that of the kind of the job; task: as in put
-- USES    new_tasks, job_log
-- LATE    tick
-- RETURNS 1; 0 if another attempt holds the job, or the job has changed since: nothing was written
-- EVENTS  del of bells, also that of the job's log; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I22, I23, I24; an iteration ends once

local stored = redis.call('HMGET', job_key(id), 'holder', 'version')
if stored[1] ~= holder or tonumber(stored[2]) ~= expected then return 0 end
redis.call('HINCRBY', job_key(id), 'version', 1)
redis.call('HSET', job_key(id), 'record', document)
redis.call('HDEL', job_key(id), 'holder')
redis.call('DEL', job_steps_key(id))
redis.call('ZADD', jobs_due_key(), due, id)
if log ~= '' then append_log(id, log) end
add_tasks(tube, task)
return 1
