-- settling: ends attempts

local WIDTH = 9

local function settle_parcel(id, task, outcomes)
  Parcels.close_items(id, task, outcomes)
  if task.left > 0 then Parcels.close_skipped(id, task) end
end

-- Returns whether a task has had all its attempts. A parcel has no limit of its own: each of its entries has one.
local function spent(id, task)
  local allowed = task.history and task.attempts + 1 or Task.most_attempts(task.tube, task.max)
  if task.attempts >= allowed then return true end
  Task.allow(id, allowed)
  return false
end

local function put_back(id, task, attempt)
  local key = Key.progress(id)
  if task.history or attempt.checkpoint ~= '' then redis_call('HSET', key, 'checkpoint', attempt.checkpoint) end
  if attempt.body ~= '' then task.body = attempt.body end
  redis_call('HDEL', key, 'started')
  if attempt.unclear == '' then redis_call('HDEL', key, 'unclear') end
  if task.history then task.attempts = nil end
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
  if task.history then redis_call('HDEL', Key.progress(id), 'lost') end
  Task.stop_attempt(id, task)
  if redis_call('HEXISTS', Key.progress(id), 'cancel') == 1 then
    Parcels.cancel_task(id, task)
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
  if task.history then settle_parcel(id, task, attempt.outcomes) end
  local open = task.left > 0
  if not task.history then open = attempt.result == 'retry' or attempt.result == 'bury' end
  if open then return retry_or_bury(id, task, attempt) end
  local final = attempt.result == 'failed' and 'failed' or 'done'
  Task.finish(id, task, final, attempt.answer)
  return final
end

-- Returns the attempt whose words begin at `n`.
local function attempt_at(words, n)
  return {
    id = words[n], token = words[n + 1], result = words[n + 2], due = tonumber(words[n + 3]), checkpoint = words[n + 4],
    unclear = words[n + 5], outcomes = words[n + 6] ~= '' and cjson.decode(words[n + 6]) or {}, body = words[n + 7], answer = words[n + 8],
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
