-- kick: make a buried task ready again, with all its attempts, at the tail of its lane
-- ARGV    id
-- USES    counts, lane, task, due
-- LATE    tick
-- RETURNS 1, or 0 if it is not buried
-- EVENTS  del of the bell; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT tasks that fell due before enter their lane before the kicked one

local task = read_task(id)
if not task or task.state ~= 'buried' then return 0 end
local crowded = task.lane and overdue(due_key(), 1)[1] and tick()
redis.call('ZREM', buried_key(), id)
redis.call('HDEL', task_key(id), 'attempts', 'allowed', 'token', 'owner', 'due')
-- After the loss of a worker the next one must know it, and since when.
if redis.call('HEXISTS', task_key(id), 'lost') == 0 then redis.call('HDEL', task_key(id), 'started') end
if crowded then
  put_off(id, task, now + 1)
else
  task.order = next_order()
  redis.call('HSET', task_key(id), 'order', task.order)
  turn_to(id, task, 'ready')
  rearm(id)
  make_takeable(id, task)
end
count(task.tube, 'kicked')
return 1
