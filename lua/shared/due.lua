-- due: does what is due by now, in bounded pages: promotes, expires, reclaims, drops
-- USES    write_buffer, counts, lane, task, parcels, next_channel

local PAGE = 100
local DROPS = 10
-- A delivery becomes as many tasks as it has parcels: after this many tasks the tick ends and the caller ticks again.
local PARCELS = 300

local function overdue(index, page) return redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, page) end

local lags = {}
local function note_lag(tube, due)
  local lag = lags[tube] or { 0, 0 }
  lags[tube] = { lag[1] + 1, lag[2] + now - due }
end

local function promote(member)
  local ns, sender = string.match(member, '^order:(%d+):(.*)$')
  local task = not ns and read_task(member)
  if task and task.place and task.place > 1 then return decide_next(member, task) end
  write('ZREM', due_key(), member)
  if ns then return release_delivery(sender .. ':' .. ns) end
  if not task then return 0 end
  note_lag(task.tube, tonumber(redis.call('HGET', task_key(member), 'due')))
  -- A deferred task enters its lane now, behind the tasks already there; a task that backed off never left its place.
  if task.lane and front_of(task.tube, task.lane) ~= member then
    task.order = next_order()
    redis.call('HSET', task_key(member), 'order', task.order)
  end
  give_back(member, task)
  return 1
end

-- A member whose data are damaged stops no other: it is tried again later, and the audit reports it.
local AGAIN_MS = 60000
local failed = {}
local function attempt(step, index, member)
  local is_done, result = pcall(step, member)
  if is_done then return result end
  redis.log(redis.LOG_WARNING, 'Ada: ' .. member .. ' fails: ' .. tostring(type(result) == 'table' and result.err or result))
  failed[#failed + 1] = { index, member }
  return false
end

local function put_off_failed()
  for _, one in ipairs(failed) do redis.call('ZADD', one[1], now + AGAIN_MS, one[2]) end
end

-- Returns whether something due is left.
local function promote_page(page)
  local made = 0
  for n, member in ipairs(page) do
    made = made + (attempt(promote, due_key(), member) or 0)
    if made >= PARCELS and n < #page then return true end
  end
  return #page == PAGE
end

-- Takes a task back whose lease ran out: its worker died or froze. After its last attempt it is buried (K-43). Returns whether it is left
-- for the next tick.
local function reclaim(id)
  local task = read_task(id)
  if not task then
    redis.call('ZREM', lease_key(), id)
    return
  end
  if not may_close() then return true end
  count(task.tube, 'lost')
  if task.history then
    mark_lost(id)
    close_skipped(id, task)
  end
  local facts = redis.call('HMGET', task_key(id), 'attempts', 'max', 'cancel')
  local most = most_attempts(task.tube, facts[2])
  if facts[3] then
    cancel_task(id, task)
  elseif task.history and task.left == 0 then
    end_task(id, task, 'done')
  elseif tonumber(facts[1]) >= most then
    bury_task(id, task)
  else
    allow(id, most)
    give_back(id, task)
  end
end

-- Returns whether it is left for the next tick.
local function expire(id)
  local task = read_task(id)
  if not task then
    redis.call('ZREM', expires_key(), id)
    return
  end
  if not may_close() then return true end
  if task.history then
    redis.call('HSET', history_key(task.history), 'lapsed', 1)
    close_parcel(id, task, 'expired')
  else
    end_task(id, task, 'expired')
  end
end

local function drop_history(member)
  local tenant, suffix = string.match(member, '^([^|]*)|(.*)$')
  redis.call('ZREM', retained_key(), member)
  redis.call('ZREM', listed_key(tenant), suffix)
  redis.call('DEL', history_key(suffix), outcomes_key(suffix), reached_key(suffix))
end

-- Drops an ended task that was kept for a while (K-34).
local function drop_finished(id)
  redis.call('ZREM', finished_key(), id)
  redis.call('DEL', task_key(id))
end

-- Works off lost leases, expired tasks and due members. Most claims find none of them (therefore LATE). Returns whether something due is
-- left.
local function work_off(late, stale, ripe)
  gather()
  local is_left = false
  for _, id in ipairs(late) do is_left = attempt(reclaim, lease_key(), id) or is_left end
  for _, id in ipairs(stale) do is_left = attempt(expire, expires_key(), id) or is_left end
  local more = promote_page(ripe) or is_left
  for tube, lag in pairs(lags) do
    count(tube, 'promoted', lag[1])
    count(tube, 'lag_ms', lag[2])
  end
  write_gathered()
  put_off_failed()
  return more
end

-- Every claim begins with a tick, so there is no scheduler process and no leader. A task that enters a lane ticks first if something due
-- would be overtaken. Returns whether a page was full, so that more may be due.
local function tick()
  local late, stale, ripe = overdue(lease_key(), PAGE), overdue(expires_key(), PAGE), overdue(due_key(), PAGE)
  local more = (#late > 0 or #stale > 0 or #ripe > 0) and work_off(late, stale, ripe)
  for _, id in ipairs(overdue(finished_key(), PAGE)) do drop_finished(id) end
  for _, member in ipairs(overdue(retained_key(), DROPS)) do drop_history(member) end
  return more or #late == PAGE or #stale == PAGE
end
