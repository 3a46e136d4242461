-- put_once: add a task unless its source has put one under the same name within a day
-- ARGV    source, name, tube, task:rest
--         source: what the name is unique in, for example a bot; task: as in put
-- USES    new_tasks
-- LATE    tick
-- RETURNS "ready", "locked" or "waiting"; "known" for a repeat
-- EVENTS  del of bells; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I1; one task for each name, also after the task has ended

if tonumber(redis.call('ZSCORE', seen_key(source), name) or '0') > now - DAY_MS then return 'known' end
redis.call('ZREMRANGEBYSCORE', seen_key(source), '-inf', now - DAY_MS)
redis.call('ZADD', seen_key(source), now, name)
redis.call('PEXPIRE', seen_key(source), DAY_MS)
return add_tasks(tube, task)[1]
