-- claim: give up to `limit` ready tasks of a tube to a worker; first leases end, tasks expire and deferred tasks become ready
-- ARGV    tube, owner, account, limit:int, budget:int, lease_ms:int, max_sleep_ms:int
--         budget: claim no further task once the claimed ones have this many entries (a task without entries counts as one)
-- USES    write_buffer, damaged, counts, timers, fairness, lane, task, due
-- LATE    work_off, move_up
-- RETURNS [now, µs since then, when something is due next or -1, 1 if this owner keeps the timer, throttles in force, when a throttle
--         or the pace allows the next task or -1, task, …]
--         task: [id, token, attempts, started, body, checkpoint, left, kind, lane, expires, user, tenant] and for parcels
--         also [history suffix, parcel, text, closed, place of the channel in the strategy first, content if there is one]
-- EVENTS  del of bells (for tasks that became ready); outcomes, reported, released and finished
-- INVARIANT I2 of a lane only the first is taken; I10 nothing before due or after expiry; I12 attempts are counted here

local more = tick()

-- The ms until which the account is throttled, 0 if it is not.
local function throttled_until()
  redis.call('ZREMRANGEBYSCORE', waits_key(tube), '-inf', now)
  local latest = 0
  for _, scope in ipairs({ 'account:' .. account, 'method:' .. account }) do
    latest = math.max(latest, tonumber(redis.call('ZSCORE', waits_key(tube), scope) or '0'))
  end
  return latest
end

-- How many tasks the tube's pace allows now, and when it allows the next. One interval passes between two tasks; unused time is
-- saved up for a tenth of a second at most (K-26). Without a pace: as many as wanted.
local interval = tonumber(option(tube, 'interval_ms') or '0')
local function allowed_by_pace(wanted)
  if interval == 0 or wanted == 0 then return wanted, -1 end
  local used_up = math.max(now, tonumber(redis.call('GET', pace_key(tube)) or '0'))
  local burst = math.max(1, math.floor(100 / interval))
  local free = math.floor(burst - (used_up - now) / interval + 0.000001)
  if free >= 1 then return math.min(wanted, free), -1 end
  return 0, math.ceil(used_up - (burst - 1) * interval)
end

local function use_pace(given)
  if interval == 0 or given == 0 then return end
  local used_up = math.max(now, tonumber(redis.call('GET', pace_key(tube)) or '0')) + given * interval
  redis.call('SET', pace_key(tube), string.format('%.3f', used_up), 'PX', math.ceil(used_up - now) + 1000)
end

-- The next ready members, with scores, by fairness between tenants, then priority, then order: one if other tenants wait for
-- their turns; a tenant that is alone pays for no turn and gives up to `most`.
local function next_members(most)
  local first = redis.call('ZRANGE', tenants_key(tube), 0, 1, 'WITHSCORES')
  local tenant, alone = first[1], not first[3]
  if not tenant then return {} end
  local members = redis.call('ZPOPMIN', ready_key(tube, tenant), alone and most or 1)
  local empty = redis.call('EXISTS', ready_key(tube, tenant)) == 0
  if empty or not alone then redis.call('HSET', turns_key(), tube, first[2]) end
  if empty then
    redis.call('ZREM', tenants_key(tube), tenant)
  elseif not alone then
    redis.call('ZADD', tenants_key(tube), tonumber(first[2]) + turn_of(tenant), tenant)
  end
  return members, tenant
end

-- The tasks that these members stand for, by member: a task itself, or the first task of a lane.
local function tasks_behind(members)
  local lanes, ids = {}, {}
  for n = 1, #members, 2 do
    if string.sub(members[n], 1, 1) == '@' then lanes[#lanes + 1] = string.sub(members[n], 2) else ids[members[n]] = members[n] end
  end
  local fronts = lanes[1] and redis.call('HMGET', front_key(tube), unpack(lanes)) or {}
  for n, lane in ipairs(lanes) do ids['@' .. lane] = fronts[n] end
  return ids
end

local function attach_parcel(task, id, suffix, place)
  local channel, n = string.match(id, '%.([^.]+)%.(%d+)$')
  local fields = read_hash(history_key(suffix), 'parcel:' .. channel .. ':' .. n, 'text', 'closed', 'content')
  task[13], task[14], task[15], task[16], task[17] = suffix, fields[1] or '', fields[2] or '', fields[3] or '', place or ''
  task[18] = fields[4] or nil
end

-- What many tasks write to the same keys is written once, after the last.
local leases, disarmed = { 'ZADD', lease_key() }, { 'ZREM', expires_key() }
local function write_taken()
  if #leases > 2 then redis.call(unpack(leases)) end
  if #disarmed > 2 then redis.call(unpack(disarmed)) end
end

-- nil if the task has expired, beyond the page that the tick expired (I10), or if the lane is empty.
local token = 0
local FIELDS = { 'started', 'body', 'checkpoint', 'left', 'kind', 'lane', 'expires', 'user', 'tenant', 'history', 'attempts', 'place' }
local function take(id)
  local key = task_key(id or '')
  local fields = read_hash(key, unpack(FIELDS))
  if not fields[9] then return nil, 1, true end
  if fields[7] then
    if tonumber(fields[7]) <= now then
      work_off({}, { id }, {})
      -- A ready parcel that was started lost its worker: to end it may be much work.
      return nil, fields[1] and PAGE or 1
    end
    add_words(disarmed, id)
  end
  token = token + 1
  local attempts, started = (tonumber(fields[11]) or 0) + 1, fields[1] or now
  redis.call('HSET', key, 'state', 'taken', 'token', token, 'owner', owner, 'attempts', attempts, 'started', started)
  add_words(leases, now + lease_ms, id)
  local task = { id, token, attempts, tostring(started) }
  for n = 2, 9 do task[n + 3] = fields[n] or '' end
  if fields[10] then attach_parcel(task, id, fields[10], fields[12]) end
  return task
end

local opens_at = throttled_until()
local tasks, entries, expired = {}, 0, 0
if opens_at <= now then
  local most, opens = allowed_by_pace(limit)
  local function add_task(id, member)
    local task, work, is_lost = take(id)
    if not task then
      expired = expired + work
      if is_lost and string.sub(member, 1, 1) == '@' then move_up(tube, string.sub(member, 2)) end
      return
    end
    entries = entries + (tonumber(task[7]) or 1)
    tasks[#tasks + 1] = task
  end
  -- As many as will fit if they are as large as those before: putting back what does not fit costs time.
  local function fitting() return #tasks == 0 and 1 or math.ceil((budget - entries) * #tasks / math.max(1, entries)) end
  while #tasks < most and entries < budget and expired < PAGE do
    local members, tenant = next_members(math.min(most - #tasks, fitting()))
    if #members == 0 then break end
    -- Tokens only grow; unused ones are never given to a worker.
    token = redis.call('HINCRBY', counters_key(), 'token', #members / 2) - #members / 2
    local ids = tasks_behind(members)
    for n = 1, #members, 2 do
      if entries < budget and expired < PAGE then add_task(ids[members[n]], members[n]) else offer(tube, tenant, members[n], members[n + 1]) end
    end
  end
  write_taken()
  more = more or expired >= PAGE
  if #tasks > 0 then
    count(tube, 'claimed', #tasks)
    tally(tube, 'ready', 0 - #tasks)
    tally(tube, 'taken', #tasks)
    use_pace(#tasks)
  end
  if redis.call('EXISTS', tenants_key(tube)) == 1 then opens_at = opens end
end

local next_at = more and now or next_moment() or -1

-- The bell: while it exists, a worker of this tube sleeps. Its expiry is a second chance to wake, not the timing.
if #tasks == 0 and limit > 0 then
  local sleep_ms = next_at > now and math.min(next_at - now, 60000) or 60000
  redis.call('SET', bell_key(tube), owner, 'PX', math.max(1, math.floor(sleep_ms)))
end

-- One worker of the shard keeps the timer on the head of the due index; if it dies, its key expires.
local keeper = redis.call('GET', timer_key())
if not keeper or keeper == owner then
  redis.call('SET', timer_key(), owner, 'PX', max_sleep_ms * 2)
  keeper = owner
end

local throttles = redis.call('ZCARD', waits_key(tube))
local reply = { now, clock[2] % 1000, next_at, keeper == owner and 1 or 0, throttles, opens_at > now and opens_at or -1 }
for _, task in ipairs(tasks) do reply[#reply + 1] = task end
return reply
