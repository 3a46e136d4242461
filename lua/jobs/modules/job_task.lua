-- job_task: the task that carries the next iteration of a job

-- Ends it, unless an attempt has it: nothing would come of it, and one that waits for a signal waits up to 30 days.
function JobTask.drop(id)
  local before = redis_call('HGET', Key.job(id), 'task')
  local task = before and Record.read(before)
  if task and not task.token then Task.finish(before, task, 'cancelled') end
  redis_call('HDEL', Key.job(id), 'task')
end

-- Puts it in place of the one before.
function JobTask.put(id, tube, row)
  JobTask.drop(id)
  redis_call('HSET', Key.job(id), 'task', row[1])
  NewTasks.add(tube, row)
end
