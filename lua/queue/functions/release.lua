-- release: return a taken task to its place without counting the attempt
-- ARGV    id, token, due:int, body
--         body: replaces the task's body in the same step; "" leaves it (K-37)
-- RETURNS "ready", "waiting", "cancelled" or "stale"
-- EVENTS  del of the bell; outcomes, reported, finished if recipients had been cancelled
-- INVARIANT I8 an old token changes nothing; I11 a cancelled task is not made ready again; I12 a release counts no attempt

return function(id, token, due, body)
  local task = Record.read(id)
  if not task or task.token ~= token or task.state ~= 'taken' then return 'stale' end
  if redis_call('HEXISTS', Key.progress(id), 'cancel') == 1 then
    Kinds.of(task).cancel(id, task)
    return 'cancelled'
  end
  if Kinds.of(task).release(id, task) then
    Task.finish(id, task, 'cancelled')
    return 'cancelled'
  end
  Record.free(id, task)
  -- After the loss of a worker the next one must know it, and since when.
  if redis_call('HEXISTS', Key.progress(id), 'lost') == 0 then redis_call('HDEL', Key.progress(id), 'started') end
  if redis_call('EXISTS', Key.progress(id)) == 1 then task.tried = true end
  if body ~= '' then task.body = body end
  Counts.count(task.tube, 'released')
  return Task.return_at(id, task, due)
end
