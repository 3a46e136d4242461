-- put: add tasks to a tube, each ready at once or when it is due
-- ARGV    client, call:int, answered:int, tube, tasks:rest
--         client, call: identify this call, so that its repeat after a lost connection is recognised;
--         answered: calls below it are not repeated any more
--         tasks: for each id, tenant, lane, priority, due, expires, kind, attempts, user, tags (one per line), reply, body; "" for none
-- RETURNS "ready", "locked" or "waiting" for each task; "known" alone for a repeat
-- EVENTS  del of bells; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I1; tasks that fell due before enter their lane before the ones put now

return function(client, call, answered, tube, tasks)
  if redis_call('ZSCORE', Key.puts(client), call) then return { 'known' } end
  redis_call('ZREMRANGEBYSCORE', Key.puts(client), '-inf', '(' .. answered)
  redis_call('ZADD', Key.puts(client), call, call)
  redis_call('PEXPIRE', Key.puts(client), 3600000)
  return NewTasks.add(tube, tasks)
end
