-- put_once: add a task unless its source has put one under the same name within a day
-- ARGV    source, name, tube, task:rest
--         source: what the name is unique in, for example a bot; task: as in put
-- RETURNS "ready", "locked" or "waiting"; "known" for a repeat
-- EVENTS  del of bells; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I1; one task for each name, also after the task has ended

return function(source, name, tube, task)
  if tonumber(redis_call('ZSCORE', Key.seen(source), name) or '0') > now - DAY_MS then return 'known' end
  redis_call('ZREMRANGEBYSCORE', Key.seen(source), '-inf', now - DAY_MS)
  redis_call('ZADD', Key.seen(source), now, name)
  redis_call('PEXPIRE', Key.seen(source), DAY_MS)
  return NewTasks.add(tube, task)[1]
end
