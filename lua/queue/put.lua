-- put: add tasks to a tube, each ready at once or when it is due
-- ARGV    client, call:int, answered:int, tube, tasks:rest
--         client, call: identify this call, so that its repeat after a lost connection is recognised;
--         answered: calls below it are not repeated any more
--         tasks: for each id, tenant, lane, priority, due, expires, kind, attempts, user, tags (one per line), reply, body; "" for none
-- USES    new_tasks
-- LATE    tick
-- RETURNS "ready", "locked" or "waiting" for each task; "known" alone for a repeat
-- EVENTS  del of bells; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I1; tasks that fell due before enter their lane before the ones put now

if redis.call('ZSCORE', puts_key(client), call) then return { 'known' } end
redis.call('ZREMRANGEBYSCORE', puts_key(client), '-inf', '(' .. answered)
redis.call('ZADD', puts_key(client), call, call)
redis.call('PEXPIRE', puts_key(client), 3600000)
return add_tasks(tube, tasks)
