-- kick: give a buried task another life, at the tail of its lane
-- ARGV    id
-- USES    gather, ready
-- RETURNS 1, or 0 if it is not buried
-- EVENTS  del of the bell

local task = read_task(id)
if not task or task.state ~= 'buried' then return 0 end
redis.call('ZREM', buried_key(), id)
redis.call('HDEL', task_key(id), 'attempts', 'token', 'owner', 'started', 'due')
task.order = next_order()
redis.call('HSET', task_key(id), 'order', task.order)
turn_to(id, task, 'ready')
rearm(id)
make_takeable(id, task)
count(task.tube, 'kicked')
return 1
