-- claiming: gives ready tasks of a tube to a worker
-- `request`, of a worker: tube, owner, account, limit, budget, lease_ms, max_sleep_ms.

-- An idle shard drops page after page of what has been kept since its end, with this pause.
local DROP_AGAIN_MS = 150
local BELL_MS = 600000
-- How long the timer's key lives without a claim of its keeper, in max_sleep. A new time to live is an event that all workers get.
local TIMER_SLEEPS = 20

-- Returns the ms until which the account is throttled, 0 if it is not.
local function throttled_until(request)
  local key = Key.throttles(request.tube)
  redis_call('ZREMRANGEBYSCORE', key, '-inf', now)
  local latest = 0
  for _, scope in ipairs({ 'account:' .. request.account, 'method:' .. request.account }) do
    latest = math.max(latest, tonumber(redis_call('ZSCORE', key, scope) or '0'))
  end
  return latest
end

-- Returns how many tasks the tube's pace allows now, and when it allows the next. One interval passes between two tasks; unused time is
-- saved up for a tenth of a second at most (K-26). Without a pace: as many as wanted, and -1.
local function allowed_by_pace(tube, interval, wanted)
  if interval == 0 or wanted == 0 then return wanted, -1 end
  local used_up = math.max(now, tonumber(redis_call('GET', Key.pace(tube)) or '0'))
  local burst = math.max(1, math.floor(100 / interval))
  local free = math.max(0, math.floor(burst - (used_up - now) / interval + 0.000001))
  if free >= wanted then return wanted, -1 end
  return free, math.ceil(used_up + (free - burst + 1) * interval)
end

local function use_pace(tube, interval, given)
  if interval == 0 or given == 0 then return end
  local used_up = math.max(now, tonumber(redis_call('GET', Key.pace(tube)) or '0')) + given * interval
  redis_call('SET', Key.pace(tube), string.format('%.3f', used_up), 'PX', math.ceil(used_up - now) + 1000)
end

-- Returns the next ready members, with scores, by fairness between tenants, then priority, then order, and their tenant. One if other
-- tenants wait for their turns; a tenant that is alone pays for no turn and gives up to `most`.
local function next_members(tube, most)
  local first = redis_call('ZRANGE', Key.tenants(tube), 0, 1, 'WITHSCORES')
  local tenant, alone = first[1], not first[3]
  if not tenant then return {} end
  local members = redis_call('ZPOPMIN', Key.ready(tube, tenant), alone and most or 1)
  local empty = redis_call('EXISTS', Key.ready(tube, tenant)) == 0
  if empty or not alone then redis_call('HSET', Key.turns(), tube, first[2]) end
  if empty then
    redis_call('ZREM', Key.tenants(tube), tenant)
  elseif not alone then
    redis_call('ZADD', Key.tenants(tube), tonumber(first[2]) + Fairness.turn_of(tenant), tenant)
  end
  return members, tenant
end

-- Returns the tasks that these members stand for, by member: a task itself, or the first task of a lane.
local function tasks_behind(tube, members)
  local lanes, ids = {}, {}
  for n = 1, #members, 2 do
    local member = members[n]
    if string.sub(member, 1, 1) == '@' then lanes[#lanes + 1] = string.sub(member, 2) else ids[member] = member end
  end
  local heads = lanes[1] and redis_call('HMGET', Key.head(tube), unpack(lanes)) or {}
  for n, lane in ipairs(lanes) do ids['@' .. lane] = heads[n] end
  return ids
end

-- The tasks that a claim has taken so far. What many tasks write to the same keys is written once, after the last.
local function new_page() return { tasks = {}, entries = 0, expired = 0, token = 0, taken = {}, leases = {}, disarmed = {} } end

-- Returns what earlier attempts have left behind: checkpoint, open entries, ms of the first claim after which the worker was lost.
local function progress_of(id, task)
  if not Kinds.of(task).has_progress(task) then return { false, false, false } end
  return Damaged.read_hash(Key.progress(id), 'checkpoint', 'left', 'started')
end

local function lease_to_worker(request, page, id, started)
  page.token = page.token + 1
  local lease = string.format('%.0f %s %s', page.token, started, request.owner)
  Record.taken_by[id] = lease
  WriteBuffer.add_words(page.taken, id, lease)
  WriteBuffer.add_words(page.leases, now + request.lease_ms, id)
end

-- Returns the task as the reply has it; or nil, the work done, and whether the task is lost. A task that has expired, beyond the page that
-- the tick expired, is ended (I10).
local function take(request, page, id)
  local task = id and Record.stored(id)
  if not task then return nil, 1, true end
  local progress = progress_of(id, task)
  if task.expires then
    if task.expires <= now then
      Due.work_off({}, { id }, {})
      return nil, Kinds.of(task).end_work(progress[3])
    end
    page.disarmed[#page.disarmed + 1] = id
  end
  local started = progress[3] or string.format('%.0f', now)
  lease_to_worker(request, page, id, started)
  local row = {
    id, string.format('%.0f %s', page.token, request.owner), (task.attempts or 0) + 1, started, task.body, progress[1] or '',
    progress[2] or '', task.kind or '', task.lane or '', task.expires or '', task.user or '', task.tenant,
  }
  Kinds.of(task).attach(row, id, task, progress[3])
  return row
end

local function take_member(request, page, member, id)
  local task, work, is_lost = take(request, page, id)
  if not task then
    page.expired = page.expired + work
    if is_lost and string.sub(member, 1, 1) == '@' then Lane.move_up(request.tube, string.sub(member, 2)) end
    return
  end
  page.entries = page.entries + (tonumber(task[7]) or 1)
  page.tasks[#page.tasks + 1] = task
end

-- Returns how many tasks will fit if they are as large as those before: putting back what does not fit costs time.
local function fitting(request, page)
  if #page.tasks == 0 then return 1 end
  return math.ceil((request.budget - page.entries) * #page.tasks / math.max(1, page.entries))
end

-- Takes the members, and offers again those that do not fit.
local function take_members(request, page, members, tenant)
  -- Tokens only grow; unused ones are never given to a worker.
  page.token = redis_call('HINCRBY', Key.counters(), 'token', #members / 2) - #members / 2
  local ids, found = tasks_behind(request.tube, members), {}
  for n = 1, #members, 2 do found[#found + 1] = ids[members[n]] or nil end
  Record.learn(found, false)
  for n = 1, #members, 2 do
    if page.entries < request.budget and page.expired < Due.PAGE then
      take_member(request, page, members[n], ids[members[n]])
    else
      Fairness.offer(request.tube, tenant, members[n], members[n + 1])
    end
  end
end

local function take_page(request, most)
  local page = new_page()
  while #page.tasks < most and page.entries < request.budget and page.expired < Due.PAGE do
    local members, tenant = next_members(request.tube, math.min(most - #page.tasks, fitting(request, page)))
    if #members == 0 then break end
    take_members(request, page, members, tenant)
  end
  if #page.leases > 0 then
    redis_call('HSET', Key.taken(), unpack(page.taken))
    redis_call('ZADD', Key.lease(), unpack(page.leases))
  end
  if #page.disarmed > 0 then redis_call('ZREM', Key.expires(), unpack(page.disarmed)) end
  return page
end

local function note_taken(tube, given)
  if given == 0 then return end
  Counts.count(tube, 'claimed', given)
  Counts.tally(tube, 'ready', 0 - given)
  Counts.tally(tube, 'taken', given)
end

-- The bell: while it exists, a worker of this tube sleeps, and nothing of the tube can be claimed. Its expiry is a second chance to wake,
-- not the timing.
local function set_bell(request, opens_at)
  local sleep_ms = opens_at > now and math.min(BELL_MS, opens_at - now) or BELL_MS
  redis_call('SET', Key.bell(request.tube), request.owner, 'PX', math.max(1, math.floor(sleep_ms)))
end

-- One worker of the shard keeps the timer: it claims at the next moment of the indexes, which its key has, too, for the workers that look
-- at it instead of claiming. If it dies, its key expires. A worker that claims takes the timer from a keeper that would claim too late, or
-- should have claimed by now. Returns whether it is this one.
local function keep_timer(request, next_at)
  local keeper, moment = Timers.keeper()
  local is_in_time = moment > now and (next_at < 0 or moment <= next_at)
  if keeper and keeper ~= request.owner and is_in_time then return false end
  local text, lifetime = string.format('%s %.0f', request.owner, next_at), request.max_sleep_ms * TIMER_SLEEPS
  if keeper == request.owner and redis_call('PTTL', Key.timer()) > lifetime / 2 then
    redis_call('SET', Key.timer(), text, 'KEEPTTL')
  else
    redis_call('SET', Key.timer(), text, 'PX', lifetime)
  end
  return true
end

-- Returns the ms between two tasks by the tube's pace, 0 without one, and whether an operator has paused the tube.
local function options_of(tube)
  local found = redis_call('HMGET', Key.options(), tube .. ':interval_ms', tube .. ':paused')
  return tonumber(found[1] or '0'), found[2] and true
end

-- Returns what a claim returns (claim.lua). What has fallen due happens in a paused tube too.
function Claiming.claim_tasks(request)
  local more, is_dropping = Due.tick()
  local opens_at, tasks, is_empty = throttled_until(request), {}, false
  local interval, is_paused = options_of(request.tube)
  if opens_at <= now and not is_paused then
    local most, opens = allowed_by_pace(request.tube, interval, request.limit)
    local page = take_page(request, most)
    tasks, more = page.tasks, more or page.expired >= Due.PAGE
    note_taken(request.tube, #tasks)
    use_pace(request.tube, interval, #tasks)
    is_empty = redis_call('EXISTS', Key.tenants(request.tube)) == 0
    if not is_empty then opens_at = opens end
  end
  local next_at = more and now or Timers.next_moment() or -1
  -- A put into a paused tube wakes no worker; `resume` does.
  local is_asleep = #tasks == 0 and request.limit > 0 or is_empty and #tasks < request.limit
  if is_asleep and not is_paused and not more then set_bell(request, opens_at) end
  if is_dropping then next_at = math.min(next_at < 0 and math.huge or next_at, now + DROP_AGAIN_MS) end
  local keeper = keep_timer(request, next_at) and 1 or 0
  local throttles = redis_call('ZCARD', Key.throttles(request.tube))
  local reply = { now, clock[2] % 1000, next_at, keeper, throttles, opens_at > now and opens_at or -1 }
  for n, task in ipairs(tasks) do reply[n + 6] = task end
  return reply
end
