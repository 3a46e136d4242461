-- plain_task: a task without parts, which ends with one result (kinds.lua)

PlainTask.INDEXED = true

function PlainTask.load() end

function PlainTask.has_progress(task) return task.tried end

function PlainTask.attach() end

function PlainTask.record() end

function PlainTask.release() return false end

function PlainTask.lose() return false end

function PlainTask.end_work() return 1 end

function PlainTask.promote() return nil end

function PlainTask.settle(_, _, attempt) return attempt.result == 'retry' or attempt.result == 'bury' end

function PlainTask.most_attempts(task) return Task.most_attempts(task.tube, task.max) end

-- Returns "waiting" or "ready".
function PlainTask.put_back(id, task, attempt)
  if attempt.checkpoint ~= '' then redis_call('HSET', Key.progress(id), 'checkpoint', attempt.checkpoint) end
  if Task.option(task.tube, 'retry') ~= 'park' then return Task.return_at(id, task, attempt.due) end
  if attempt.due > now then Timers.new_moment(attempt.due) end
  Task.requeue_last(id, task, attempt.due)
  return attempt.due > now and 'waiting' or 'ready'
end

function PlainTask.cancel(id, task) Task.finish(id, task, 'cancelled') end

function PlainTask.withdraw(id, task) Task.finish(id, task, 'cancelled') end

function PlainTask.expire(id, task) Task.finish(id, task, 'expired') end

local function drop(id)
  redis_call('ZREM', Key.finished(), id)
  redis_call('DEL', Key.task(id), Key.progress(id))
end

-- Drops ended tasks that were kept for a while (K-34).
function PlainTask.drop_ended()
  local ended = Due.overdue(Key.finished(), Due.PAGE)
  for _, id in ipairs(ended) do drop(id) end
  return #ended == Due.PAGE
end
