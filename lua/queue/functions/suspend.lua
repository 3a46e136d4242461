-- suspend: return a taken task, not a parcel, until it is woken, at the latest until `due`; the attempt is not counted
-- ARGV    id, token, due:int, leaves_lane:int, checkpoint
--         leaves_lane: 0: its lane waits for it; 1: its lane goes on, and it enters the lane as the last one when it is woken;
--         checkpoint: for the next attempt, "" leaves it
-- RETURNS "waiting"; "ready" if it was woken while it was taken; "cancelled" or "stale"
-- EVENTS  del of the bell
-- INVARIANT I8 an old token changes nothing; I11 a cancelled task is not made ready again; I12 no attempt is counted; a task that has begun
--         does not expire any more (K-02)

return function(id, token, due, leaves_lane, checkpoint)
  local task, progress = Record.read(id), Key.progress(id)
  if not task or task.token ~= token or task.state ~= 'taken' then return 'stale' end
  if redis_call('HEXISTS', progress, 'cancel') == 1 then
    Task.finish(id, task, 'cancelled')
    return 'cancelled'
  end
  Record.free(id, task)
  task.expires, task.tried = nil, true
  if checkpoint ~= '' then redis_call('HSET', progress, 'checkpoint', checkpoint) end
  redis_call('HDEL', progress, 'started')
  Counts.count(task.tube, 'released')
  if redis_call('HDEL', progress, 'woken') == 1 then
    Task.give_back(id, task)
    return 'ready'
  end
  Timers.new_moment(due)
  if leaves_lane == 1 then Task.requeue_last(id, task, due) else Task.put_off(id, task, due) end
  return 'waiting'
end
