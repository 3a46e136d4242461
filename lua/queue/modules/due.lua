-- due: does what is due by now, in bounded pages: promotes, expires, reclaims, drops

Due.PAGE = 100
-- A delivery becomes as many tasks as it has parcels: after this many tasks the tick ends and the caller ticks again.
local PARCELS = 300

function Due.overdue(index, page) return redis_call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, page) end

local lags
local function note_lag(tube, due)
  local lag = lags[tube] or { 0, 0 }
  lags[tube] = { lag[1] + 1, lag[2] + now - due }
end

local function promote(member)
  local released = Kinds.release(member)
  if released then return released end
  local task = Record.read(member)
  local work = task and Kinds.of(task).promote(member, task)
  if work then return work end
  WriteBuffer.write('ZREM', Key.due(), member)
  if not task then return 0 end
  note_lag(task.tube, task.due)
  -- A deferred task enters its lane now, behind the tasks already there; a task that backed off never left its place.
  if task.lane and Lane.head_of(task.tube, task.lane) ~= member then task.order = Counts.next_order() end
  Task.give_back(member, task)
  return 1
end

-- A member whose data are damaged stops no other: it is tried again later, and the audit reports it.
local AGAIN_MS = 60000
local failed
local function attempt(step, index, member)
  local is_done, result = pcall(step, member)
  if is_done then return result end
  redis.log(redis.LOG_WARNING, 'Ada: ' .. member .. ' fails: ' .. tostring(type(result) == 'table' and result.err or result))
  failed[#failed + 1] = { index, member }
  return false
end

local function put_off_failed()
  for _, one in ipairs(failed) do redis_call('ZADD', one[1], now + AGAIN_MS, one[2]) end
end

-- Returns whether something due is left.
local function promote_page(page)
  local made = 0
  for n, member in ipairs(page) do
    made = made + (attempt(promote, Key.due(), member) or 0)
    if made >= PARCELS and n < #page then return true end
  end
  return #page == Due.PAGE
end

-- Takes back a task whose lease ran out: its worker died or froze. After its last attempt it is buried (K-43). Returns whether it is left
-- for the next tick.
local function reclaim(id)
  local task = Record.read(id)
  if not task then
    redis_call('ZREM', Key.lease(), id)
    return
  end
  if not Kinds.may_end() then return true end
  Counts.count(task.tube, 'lost')
  local kind = Kinds.of(task)
  local is_over = kind.lose(id, task)
  Task.note_error(id, 'the worker was lost')
  local started, most = task.started, Task.most_attempts(task.tube, task.max)
  Task.stop_attempt(id, task)
  if redis_call('HEXISTS', Key.progress(id), 'cancel') == 1 then
    kind.cancel(id, task)
  elseif is_over then
    Task.finish(id, task, 'done')
  elseif task.attempts >= most then
    Task.bury(id, task)
  else
    Task.allow(id, most)
    redis_call('HSET', Key.progress(id), 'started', started)
    Task.give_back(id, task)
  end
end

-- Returns whether it is left for the next tick.
local function expire(id)
  local task = Record.read(id)
  if not task then
    redis_call('ZREM', Key.expires(), id)
    return
  end
  if not Kinds.may_end() then return true end
  Kinds.of(task).expire(id, task)
end

-- Works off lost leases, expired tasks and due members. Returns whether something due is left.
function Due.work_off(late, stale, ripe)
  Due.begin()
  Kinds.begin()
  WriteBuffer.gather()
  local is_left = false
  for _, id in ipairs(late) do is_left = attempt(reclaim, Key.lease(), id) or is_left end
  for _, id in ipairs(stale) do is_left = attempt(expire, Key.expires(), id) or is_left end
  local more = promote_page(ripe) or is_left
  for tube, lag in pairs(lags) do
    Counts.count(tube, 'promoted', lag[1])
    Counts.count(tube, 'lag_ms', lag[2])
  end
  WriteBuffer.write_gathered()
  put_off_failed()
  return more
end

-- Every claim begins with a tick, so there is no scheduler process and no leader. A task that enters a lane ticks first if something due
-- would be overtaken. Returns whether a page was full, so that more may be due; and whether more may be left to drop, which has time.
function Due.tick()
  local late, stale, ripe = Due.overdue(Key.lease(), Due.PAGE), Due.overdue(Key.expires(), Due.PAGE), Due.overdue(Key.due(), Due.PAGE)
  local more = (#late > 0 or #stale > 0 or #ripe > 0) and Due.work_off(late, stale, ripe)
  local is_dropping = Kinds.drop_ended()
  return more or #late == Due.PAGE or #stale == Due.PAGE, is_dropping
end

function Due.begin()
  lags = {}
  failed = {}
end
