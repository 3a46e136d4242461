-- claim: give up to `limit` takeable tasks of a tube to a worker; what time has brought about happens first
-- ARGV    tube, owner, account, limit:int, budget:int, lease_ms:int, floor_ms:int
--         budget: no further task once those given have so many entries (a task without entries counts as one)
-- USES    ready, outcome, parcels, tick
-- RETURNS [now, µs since then, next moment or -1, 1 if this owner keeps the timer, waits in force, when a held account opens or -1, task, …]
--         task: [id, token, attempts, started, body, checkpoint, left, kind, lane, expires, history suffix, parcel, text, closed]
-- EVENTS  del of bells (what the tick made takeable); outcomes, reported, released and finished in the stream
-- INVARIANT I2 at most one task of a lane is taken; I10 nothing before due or after expiry; I12 attempts are counted here

local more = tick()

-- A held account or pace: nothing is handed out before the wait is over.
local function held_until()
  redis.call('ZREMRANGEBYSCORE', waits_key(tube), '-inf', now)
  local latest = 0
  for _, scope in ipairs({ 'account:' .. account, 'method:' .. account }) do
    latest = math.max(latest, tonumber(redis.call('ZSCORE', waits_key(tube), scope) or '0'))
  end
  return latest
end

-- The next takeable task by fairness between tenants, then priority, then order.
local function take_member()
  local tenant = redis.call('ZRANGE', tenants_key(tube), 0, 0)[1]
  if not tenant then return nil end
  local member = redis.call('ZPOPMIN', ready_key(tube, tenant))[1]
  if redis.call('EXISTS', ready_key(tube, tenant)) == 0 then
    redis.call('ZREM', tenants_key(tube), tenant)
  else
    redis.call('ZADD', tenants_key(tube), end_of_ring(tube), tenant)
  end
  return member
end

local function hold_lane(member)
  if string.sub(member, 1, 1) ~= '@' then return member end
  local lane = string.sub(member, 2)
  local head = redis.call('ZRANGE', lane_key(tube, lane), 0, 0)[1]
  redis.call('HSET', held_key(tube), lane, head)
  return head
end

local function attach_parcel(task, id, suffix)
  local channel, n = string.match(id, '%.([^.]+)%.(%d+)$')
  local facts = redis.call('HMGET', history_key(suffix), 'parcel:' .. channel .. ':' .. n, 'text', 'closed')
  task[11], task[12], task[13], task[14] = suffix, facts[1] or '', facts[2] or '', facts[3] or ''
end

local function take(id)
  local key = task_key(id)
  local token = redis.call('HINCRBY', counters_key(), 'token', 1)
  local attempts = redis.call('HINCRBY', key, 'attempts', 1)
  redis.call('HSETNX', key, 'started', now)
  redis.call('HSET', key, 'state', 'taken', 'token', token, 'owner', owner)
  redis.call('ZADD', lease_key(), now + lease_ms, id)
  local facts = redis.call('HMGET', key, 'started', 'body', 'checkpoint', 'left', 'kind', 'lane', 'history', 'expires')
  if facts[8] then redis.call('ZREM', expires_key(), id) end
  local task = { id, token, attempts, facts[1] }
  for n = 2, 6 do task[n + 3] = facts[n] or '' end
  task[10], task[11] = facts[8] or '', ''
  if facts[7] then attach_parcel(task, id, facts[7]) end
  return task
end

-- What the tick's page did not reach (I10). Answers whether it was too late for this one.
local function lapsed(id)
  local expires = redis.call('HGET', task_key(id), 'expires')
  if not expires or tonumber(expires) > now then return false end
  lapse(id)
  return true
end

local opens_at = held_until()
local tasks, entries, late = {}, 0, 0
if opens_at <= now then
  while #tasks < limit and entries < budget and late < PAGE do
    local member = take_member()
    if not member then break end
    local id = hold_lane(member)
    if lapsed(id) then
      late = late + 1
    else
      local task = take(id)
      entries = entries + (tonumber(task[7]) or 1)
      tasks[#tasks + 1] = task
    end
  end
  more = more or late == PAGE
  if #tasks > 0 then count(tube, 'claimed', #tasks) end
end

local next_at = more and now or next_moment() or -1

-- The bell: while it exists, somebody of this tube sleeps. Its own end is a second chance, not the timing.
if #tasks == 0 and limit > 0 then
  local sleep_ms = next_at > now and math.min(next_at - now, 60000) or 60000
  redis.call('SET', bell_key(tube), owner, 'PX', math.max(1, math.floor(sleep_ms)))
end

-- One worker of the shard keeps the timer on the head of the due index; should it die, its key runs out.
local keeper = redis.call('GET', timer_key())
if not keeper or keeper == owner then
  redis.call('SET', timer_key(), owner, 'PX', floor_ms * 2)
  keeper = owner
end

local waits = redis.call('ZCARD', waits_key(tube))
local reply = { now, clock[2] % 1000, next_at, keeper == owner and 1 or 0, waits, opens_at > now and opens_at or -1 }
for _, task in ipairs(tasks) do reply[#reply + 1] = task end
return reply
