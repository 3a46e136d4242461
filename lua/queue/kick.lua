-- kick: make a buried task ready again, with all its attempts, at the tail of its lane
-- ARGV    id
-- RETURNS 1, or 0 if it is not buried
-- EVENTS  del of the bell; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT tasks that fell due before enter their lane before the kicked one

return function(id)
  local task = Task.read(id)
  if not task or task.state ~= 'buried' then return 0 end
  local crowded = task.lane and Due.overdue(Key.due(), 1)[1] and Due.tick()
  redis_call('ZREM', Key.buried(), id)
  redis_call('HDEL', Key.task(id), 'attempts', 'allowed', 'token', 'owner', 'due')
  -- After the loss of a worker the next one must know it, and since when.
  if redis_call('HEXISTS', Key.task(id), 'lost') == 0 then redis_call('HDEL', Key.task(id), 'started') end
  if crowded then
    Task.put_off(id, task, now + 1)
  else
    task.order = Counts.next_order()
    redis_call('HSET', Key.task(id), 'order', task.order)
    Task.turn_to(id, task, 'ready')
    Task.rearm(id)
    Lane.make_takeable(id, task)
  end
  Counts.count(task.tube, 'kicked')
  return 1
end
