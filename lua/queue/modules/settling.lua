-- settling: ends attempts

local WIDTH = 10

-- Returns whether a task has had all its attempts.
local function spent(id, task)
  local allowed = Kinds.of(task).most_attempts(task)
  if task.attempts >= allowed then return true end
  Task.allow(id, allowed)
  return false
end

local function put_back(id, task, attempt)
  if attempt.body ~= '' then task.body = attempt.body end
  redis_call('HDEL', Key.progress(id), 'started')
  if attempt.unclear == '' then redis_call('HDEL', Key.progress(id), 'unclear') end
  Counts.count(task.tube, 'retried')
  return Kinds.of(task).put_back(id, task, attempt)
end

local function retry_or_bury(id, task, attempt)
  Task.note_error(id, attempt.error)
  Task.stop_attempt(id, task)
  if redis_call('HEXISTS', Key.progress(id), 'cancel') == 1 then
    Kinds.of(task).cancel(id, task)
    return 'cancelled'
  end
  if attempt.result == 'bury' or spent(id, task) then
    if attempt.checkpoint ~= '' then redis_call('HSET', Key.progress(id), 'checkpoint', attempt.checkpoint) end
    Task.bury(id, task)
    return 'buried'
  end
  return put_back(id, task, attempt)
end

local function settle_one(attempt)
  local id, task = attempt.id, Record.read(attempt.id)
  if not task or task.token ~= attempt.token or task.state ~= 'taken' then return 'stale' end
  if attempt.unclear ~= '' then redis_call('HSET', Key.progress(id), 'unclear', attempt.unclear) end
  if Kinds.of(task).settle(id, task, attempt) then return retry_or_bury(id, task, attempt) end
  local final = attempt.result == 'failed' and 'failed' or 'done'
  Task.finish(id, task, final, attempt.answer)
  return final
end

-- Returns the attempt whose words begin at `n`.
local function attempt_at(words, n)
  return {
    id = words[n], token = words[n + 1], result = words[n + 2], due = tonumber(words[n + 3]), checkpoint = words[n + 4],
    unclear = words[n + 5], outcomes = words[n + 6] ~= '' and cjson.decode(words[n + 6]) or {}, body = words[n + 7],
    answer = words[n + 8], error = words[n + 9],
  }
end

-- Returns the new state of each task. The rows are those of settle.lua.
function Settling.settle_attempts(words)
  local ids, ends = {}, {}
  for n = 1, #words, WIDTH do ids[#ids + 1] = words[n] end
  Record.learn(ids, true)
  WriteBuffer.gather()
  for n = 1, #words, WIDTH do ends[#ends + 1] = settle_one(attempt_at(words, n)) end
  WriteBuffer.write_gathered()
  return ends
end
