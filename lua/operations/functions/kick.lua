-- kick: make a buried task ready again, with all its attempts, at the tail of its lane
-- ARGV    id
-- RETURNS 1, or 0 if it is not buried
-- EVENTS  del of the bell; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT tasks that fell due before enter their lane before the kicked one

return function(id)
  local task = Record.read(id)
  if not task or task.state ~= 'buried' then return 0 end
  local crowded = task.lane and Due.overdue(Key.due(), 1)[1] and Due.tick()
  redis_call('ZREM', Key.buried(), id)
  DeadLetters.leave(id)
  task.attempts, task.due = nil, nil
  redis_call('HDEL', Key.progress(id), 'allowed')
  -- After the loss of a worker the next one must know it, and since when.
  if redis_call('HEXISTS', Key.progress(id), 'lost') == 0 then redis_call('HDEL', Key.progress(id), 'started') end
  if crowded then
    Task.put_off(id, task, now + 1)
  else
    task.order = Counts.next_order()
    Task.give_back(id, task)
  end
  Counts.count(task.tube, 'kicked')
  return 1
end
