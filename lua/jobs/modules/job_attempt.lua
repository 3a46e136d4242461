-- job_attempt: the attempt that has taken a job; its holder is `token task`

local function lease_of(holder) return string.match(holder, '(%d+ .*) (%S+)$') end

-- Returns whether it still has its task.
function JobAttempt.is_running(id)
  local token, task = lease_of(redis_call('HGET', Key.job(id), 'holder') or '')
  local lease = task and redis_call('HGET', Key.taken(), task)
  return lease and Record.read_lease(lease) == token
end

-- The attempt that still runs may record the unit in hand, but no results of steps: what begins next must not use them.
function JobAttempt.let_go(id)
  local attempt = redis_call('HGET', Key.job(id), 'holder')
  if attempt and attempt:sub(1, 5) ~= 'late:' then
    redis_call('HSET', Key.job(id), 'holder', 'late:' .. attempt)
  end
end

-- Returns the state of the job for an attempt, "lost" if another one has the job; and whether the job was let go: its
-- state is then "stopped", even if it was started again.
function JobAttempt.state(id, holder)
  local stored = redis_call('HMGET', Key.job(id), 'holder', 'state')
  if stored[1] == holder then return stored[2], false end
  if stored[1] == 'late:' .. holder then return 'stopped', true end
  return 'lost', false
end

-- Ends the task of an attempt, if that still has it.
function JobAttempt.settle(holder)
  local token, task = lease_of(holder)
  Settling.settle_attempts({ task, token, 'done', '0', '', '', '', '', '', '' })
end
