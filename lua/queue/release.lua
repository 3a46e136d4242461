-- release: return a taken task to its place without counting the attempt
-- ARGV    id, token, due:int, body
--         body: replaces the task's body in the same step; "" leaves it (K-37)
-- USES    counts, timers, task, parcels
-- LATE    wake_later
-- RETURNS "ready", "waiting", "cancelled" or "stale"
-- EVENTS  del of the bell; outcomes, reported, finished if recipients had been cancelled
-- INVARIANT I8 an old token changes nothing; I11 a cancelled task is not made ready again; I12 a release counts no attempt

local task = read_task(id)
if not task or task.token ~= token or task.state ~= 'taken' then return 'stale' end
if redis.call('HEXISTS', task_key(id), 'cancel') == 1 then
  cancel_task(id, task)
  return 'cancelled'
end
if task.history then close_skipped(id, task) end
if task.history and task.left == 0 then
  end_task(id, task, 'cancelled')
  return 'cancelled'
end
redis.call('HDEL', task_key(id), 'token', 'owner')
-- After the loss of a worker the next one must know it, and since when.
if redis.call('HEXISTS', task_key(id), 'lost') == 0 then redis.call('HDEL', task_key(id), 'started') end
if body ~= '' then redis.call('HSET', task_key(id), 'body', body) end
if redis.call('HINCRBY', task_key(id), 'attempts', -1) <= 0 then redis.call('HDEL', task_key(id), 'attempts') end
count(task.tube, 'released')
if due <= now then
  give_back(id, task)
  return 'ready'
end
new_moment(due)
put_off(id, task, due)
return 'waiting'
