-- ready: what can be taken, in which order, and who is told
-- A lane is offered as `@lane` with its head's score; a task without a lane is offered as itself.

-- Priority first, then the order of submission. 2^42 orders fit below one step of priority.
local function score_of(priority, order) return priority * 4398046511104 + order end

local function next_order() return redis.call('HINCRBY', counters_key(), 'order', 1) end

local function count(tube, transition, n) add_up(counters_key(), tube .. ':' .. transition, n or 1) end

-- How many tasks are in which state now, so that asking costs nothing (K-35).
local function tally(tube, state, n) add_up(states_key(), tube .. ':' .. state, n) end

local function turn_to(id, task, state)
  redis.call('HSET', task_key(id), 'state', state)
  tally(task.tube, task.state, -1)
  tally(task.tube, state, 1)
  task.state = state
end

local options = {}
local function option(tube, name)
  local field = tube .. ':' .. name
  if options[field] == nil then options[field] = redis.call('HGET', options_key(), field) end
  return options[field]
end

local function most_attempts(tube, own)
  return tonumber(own or option(tube, 'attempts') or redis.call('HGET', settings_key(), 'max_attempts') or '10')
end

-- The bell: deleting it wakes the sleepers of that tube, once per idle period.
local rung = {}
local function ring(tube)
  if rung[tube] then return end
  rung[tube] = true
  redis.call('DEL', bell_key(tube))
end

-- Tenants take turns by virtual time: a turn costs a tenant TURN / weight, and who joins stands one turn of his own behind the
-- one served last. So nobody saves up turns or pays for old ones, and a tenant who leaves with each turn and comes back (a
-- single lane) does not push in before those who waited (I15).
local TURN = 1000
local function turn_of(tenant) return math.floor(TURN / tonumber(redis.call('HGET', weights_key(), tenant) or '1')) end

local function join_ring(tube, tenant)
  if redis.call('ZSCORE', tenants_key(tube), tenant) then return end
  redis.call('ZADD', tenants_key(tube), tonumber(redis.call('HGET', turns_key(), tube) or '0') + turn_of(tenant), tenant)
end

local function offer(tube, tenant, member, score)
  ring(tube)
  local key = ready_key(tube, tenant)
  local offers = gathered and gathered.offers[key]
  if not offers or not next(offers) then join_ring(tube, tenant) end
  if not gathered then return redis.call('ZADD', key, score, member) end
  offers = offers or {}
  offers[member] = score
  gathered.offers[key] = offers
end

local function withdraw(tube, tenant, member)
  local key = ready_key(tube, tenant)
  local offers = gathered and gathered.offers[key]
  if offers then offers[member] = nil end
  redis.call('ZREM', key, member)
  if redis.call('EXISTS', key) == 0 and not (offers and next(offers)) then redis.call('ZREM', tenants_key(tube), tenant) end
end

-- Who is at work in a lane, or backs off in it.
local function holder_of(tube, lane)
  if gathered and gathered.free[tube .. '\n' .. lane] then return false end
  return redis.call('HGET', held_key(tube), lane)
end

local function let_go(tube, lane)
  if gathered then gathered.free[tube .. '\n' .. lane] = true end
  write('HDEL', held_key(tube), lane)
end

-- Invariant I3: a lane is offered iff it is non-empty and unheld, with its head's score.
local function head_of(tube, lane) return redis.call('ZRANGE', lane_key(tube, lane), 0, 0)[1] end

local function offer_head(tube, lane, head)
  if not head then return end
  local facts = redis.call('HMGET', task_key(head), 'tenant', 'priority', 'order')
  offer(tube, facts[1], '@' .. lane, score_of(facts[2], facts[3]))
end

-- All of a lane but its head are locked.
local function join_lane(id, task)
  local lane = lane_key(task.tube, task.lane)
  if redis.call('ZADD', lane, task.order, id) == 0 then return false end
  local first = redis.call('ZCARD', lane) == 1
  if not first then tally(task.tube, 'locked', 1) end
  return first
end

-- Answers who is the lane's head now.
local function leave_lane(id, task)
  local was_there = redis.call('ZREM', lane_key(task.tube, task.lane), id) == 1
  local head = head_of(task.tube, task.lane)
  if was_there and head then tally(task.tube, 'locked', -1) end
  return head
end

-- `task`: {tube, tenant, lane (false if none), priority, order}. Answers whether it is takeable, not behind another.
local function make_takeable(id, task)
  if not task.lane then
    offer(task.tube, task.tenant, id, score_of(task.priority, task.order))
    return true
  end
  if not join_lane(id, task) then return false end
  if holder_of(task.tube, task.lane) then return false end
  offer(task.tube, task.tenant, '@' .. task.lane, score_of(task.priority, task.order))
  return true
end

-- What was ended and is kept for a while is no task any more.
local FINAL = { done = true, failed = true, cancelled = true, expired = true }
local function read_task(id)
  if gathered and gathered.gone[id] then return nil end
  local facts = redis.call('HMGET', task_key(id), 'tube', 'tenant', 'lane', 'priority', 'order', 'state', 'history', 'left', 'token',
    'kind', 'user', 'tags', 'reply')
  if not facts[1] or FINAL[facts[6]] then return nil end
  return {
    tube = facts[1], tenant = facts[2], lane = facts[3], priority = tonumber(facts[4]), order = tonumber(facts[5]), state = facts[6],
    history = facts[7], left = tonumber(facts[8] or '0'), token = facts[9], kind = facts[10], user = facts[11], tags = facts[12],
    reply = facts[13],
  }
end

-- Take a task out of whatever it is takeable, waiting or held by; what stands behind it in its lane moves up.
local function unplace(id, task)
  if task.state == 'taken' then
    write('ZREM', lease_key(), id)
  elseif task.state == 'buried' then
    write('ZREM', buried_key(), id)
  else
    if task.state == 'waiting' then write('ZREM', due_key(), id) end
    write('ZREM', expires_key(), id)
  end
  if not task.lane then
    if task.state == 'ready' then withdraw(task.tube, task.tenant, id) end
    return
  end
  -- Invariant I2: who is taken holds its lane.
  local holder = task.state == 'taken' and id or holder_of(task.tube, task.lane)
  local was_offered = not holder and head_of(task.tube, task.lane) == id
  local head = leave_lane(id, task)
  if holder == id then
    let_go(task.tube, task.lane)
    offer_head(task.tube, task.lane, head)
  elseif was_offered then
    withdraw(task.tube, task.tenant, '@' .. task.lane)
    offer_head(task.tube, task.lane, head)
  end
end

-- What a task is found by. Parcels are found through their delivery, and are in no index.
local function each_mark(task, visit)
  for _, field in ipairs({ 'tenant', 'lane', 'kind', 'user' }) do
    if task[field] then visit(field, task[field]) end
  end
  for tag in string.gmatch(task.tags or '', '[^\n]+') do visit('tag', tag) end
end

local function index_task(id, task)
  each_mark(task, function(field, value) write('ZADD', by_key(field, value), task.order, id) end)
  if task.kind then write('ZADD', kinds_key(), 0, task.kind) end
end

local function unindex(id, task)
  each_mark(task, function(field, value) write('ZREM', by_key(field, value), id) end)
  if not task.kind then return end
  if gathered then gathered.kinds[task.kind] = true else drop_kind(task.kind) end
end

-- Whoever waits for this end is told; an answer that nobody fetches leaves after an hour.
local REPLY_MS = 3600000
local function tell_end(id, task, final, answer)
  for client in string.gmatch(task.reply, '%S+') do
    redis.call('XADD', reply_key(client), 'MAXLEN', '~', 10000, '*', 'task', id, 'state', final, 'answer', answer or '')
    redis.call('PEXPIRE', reply_key(client), REPLY_MS)
  end
end

local function keep_finished(id, final, answer, keep_ms)
  local key = task_key(id)
  redis.call('HSET', key, 'state', final, 'ended', now)
  if answer then redis.call('HSET', key, 'answer', answer) end
  redis.call('HDEL', key, 'token', 'owner', 'cancel')
  redis.call('ZADD', finished_key(), now + keep_ms, id)
  redis.call('PEXPIRE', key, keep_ms + 60000)
end

-- The end of a task. `final`: done, failed, cancelled, expired.
local function end_task(id, task, final, answer)
  unplace(id, task)
  tally(task.tube, task.state, -1)
  count(task.tube, final)
  if task.reply then tell_end(id, task, final, answer) end
  local keep = false
  if not task.history then
    unindex(id, task)
    keep = option(task.tube, 'keep_ms')
  end
  if keep then keep_finished(id, final, answer, tonumber(keep)) else forget(id) end
end

-- A task that comes back may still expire.
local function rearm(id)
  local expires = redis.call('HGET', task_key(id), 'expires')
  if expires then redis.call('ZADD', expires_key(), expires, id) end
end

-- Put a task off until `due` ms. In a lane it keeps its place and holds the lane: what is behind it waits (K-25).
local function put_off(id, task, due)
  write('ZREM', lease_key(), id)
  turn_to(id, task, 'waiting')
  redis.call('HSET', task_key(id), 'due', due)
  redis.call('ZADD', due_key(), due, id)
  rearm(id)
end

-- Back to takeable, at its old place: the lane is let go and offered again, its head being this task.
local function give_back(id, task)
  write('ZREM', lease_key(), id)
  turn_to(id, task, 'ready')
  rearm(id)
  if task.lane and holder_of(task.tube, task.lane) == id then
    let_go(task.tube, task.lane)
    offer_head(task.tube, task.lane, head_of(task.tube, task.lane))
  else
    make_takeable(id, task)
  end
end

-- Behind all that are there now, by the tube's choice: its lane goes on without it (K-25, `park`).
local function park(id, task, due)
  unplace(id, task)
  if due > now then return put_off(id, task, due) end
  task.order = next_order()
  redis.call('HSET', task_key(id), 'order', task.order)
  give_back(id, task)
end

-- Lay a task aside until a person looks at it; its lane goes on.
local function bury_task(id, task)
  unplace(id, task)
  turn_to(id, task, 'buried')
  redis.call('ZADD', buried_key(), now, id)
  count(task.tube, 'buried')
end

-- The first moment at which a timer has something to do, or false.
local function next_moment()
  local first = false
  for _, index in ipairs({ due_key(), lease_key(), expires_key() }) do
    local head = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')[2]
    if head and (not first or tonumber(head) < first) then first = tonumber(head) end
  end
  return first
end

-- Before a moment gets into an index: the timer's keeper, and nobody else, is told if it comes first, by deleting its key.
local function new_moment(at)
  local head = redis.call('ZRANGE', due_key(), 0, 0, 'WITHSCORES')[2]
  if not head or at < tonumber(head) then redis.call('DEL', timer_key()) end
end

local function await_moment(at, member)
  new_moment(at)
  redis.call('ZADD', due_key(), at, member)
end
