-- settling: ends attempts

local WIDTH = 9

local function settle_parcel(id, task, outcomes)
  Parcels.close_items(id, task, outcomes)
  if task.left > 0 then Parcels.close_skipped(id, task) end
end

-- Whether a task has had all its attempts. A parcel has no limit of its own: each of its entries has one.
local function spent(id, task)
  local fields = redis_call('HMGET', Key.task(id), 'attempts', 'max')
  local made = tonumber(fields[1] or '0')
  local allowed = task.history and made + 1 or Task.most_attempts(task.tube, fields[2])
  if made >= allowed then return true end
  Task.allow(id, allowed)
  return false
end

local function put_back(id, task, attempt)
  local key = Key.task(id)
  if task.history or attempt.checkpoint ~= '' then redis_call('HSET', key, 'checkpoint', attempt.checkpoint) end
  if attempt.body ~= '' then redis_call('HSET', key, 'body', attempt.body) end
  redis_call('HDEL', key, 'token', 'owner', 'started')
  if attempt.unclear == '' then redis_call('HDEL', key, 'unclear') end
  if task.history then redis_call('HDEL', key, 'attempts') end
  Counts.count(task.tube, 'retried')
  -- Some of its entries may wait for earlier channels: the next tick decides when the next of them are attempted (next_channel.lua).
  if task.place and task.place > 1 then
    Timers.new_moment(now)
    Task.put_off(id, task, now)
    return 'waiting'
  end
  if attempt.due > now then Timers.new_moment(attempt.due) end
  if not task.history and Task.option(task.tube, 'retry') == 'park' then
    Task.park(id, task, attempt.due)
  elseif attempt.due > now then
    Task.put_off(id, task, attempt.due)
  else
    Task.give_back(id, task)
  end
  return attempt.due > now and 'waiting' or 'ready'
end

local function retry_or_bury(id, task, attempt)
  -- What a lost worker may have sent is among the unclear entries of this attempt.
  if task.history then redis_call('HDEL', Key.task(id), 'lost') end
  if redis_call('HEXISTS', Key.task(id), 'cancel') == 1 then
    Parcels.cancel_task(id, task)
    return 'cancelled'
  end
  if attempt.result == 'bury' or spent(id, task) then
    if attempt.checkpoint ~= '' then redis_call('HSET', Key.task(id), 'checkpoint', attempt.checkpoint) end
    Task.bury(id, task)
    return 'buried'
  end
  return put_back(id, task, attempt)
end

local function settle_one(id, token, attempt)
  local task = Task.read(id)
  if not task or task.token ~= token or task.state ~= 'taken' then return 'stale' end
  if attempt.unclear ~= '' then redis_call('HSET', Key.task(id), 'unclear', attempt.unclear) end
  if task.history then settle_parcel(id, task, attempt.outcomes) end
  local open = task.left > 0
  if not task.history then open = attempt.result == 'retry' or attempt.result == 'bury' end
  if open then return retry_or_bury(id, task, attempt) end
  local final = attempt.result == 'failed' and 'failed' or 'done'
  Task.finish(id, task, final, attempt.answer)
  return final
end

local function read_attempts(words)
  local attempts = {}
  for n = 1, #words, WIDTH do
    attempts[#attempts + 1] = {
      id = words[n], token = words[n + 1], result = words[n + 2], due = tonumber(words[n + 3]),
      checkpoint = words[n + 4], unclear = words[n + 5],
      outcomes = words[n + 6] ~= '' and cjson.decode(words[n + 6]) or {}, body = words[n + 7], answer = words[n + 8],
    }
  end
  return attempts
end

-- Returns the new state of each task. The rows are those of settle.lua.
function Settling.settle_attempts(words)
  local attempts, ends = read_attempts(words), {}
  WriteBuffer.gather()
  for n, attempt in ipairs(attempts) do ends[n] = settle_one(attempt.id, attempt.token, attempt) end
  WriteBuffer.write_gathered()
  return ends
end
