-- ready: what can be taken, in which order, and who is told
-- A lane is offered as `@lane` with the score of who stands first in it; a task without a lane is offered as itself.

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

-- Another attempt is allowed; by what number is kept with the task, as a tube may allow fewer tomorrow (I12).
local function allow(id, most) redis.call('HSET', task_key(id), 'allowed', most) end

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

-- Who stands first in a lane: to be taken next, taken, or backing off (I2). All behind it are locked.
local function front_of(tube, lane)
  if not gathered then return redis.call('HGET', front_key(tube), lane) end
  local known = fronts_in(tube).known
  if known[lane] == nil then learn_fronts(tube, { lane }) end
  return known[lane]
end

local function set_front(tube, lane, id)
  if gathered then
    local fronts = fronts_in(tube)
    fronts.known[lane], fronts.moved[lane] = id, true
  elseif id then
    redis.call('HSET', front_key(tube), lane, id)
  else
    redis.call('HDEL', front_key(tube), lane)
  end
end

local function offer_front(tube, lane, id)
  local facts = redis.call('HMGET', task_key(id), 'tenant', 'priority', 'order')
  offer(tube, facts[1], '@' .. lane, score_of(facts[2], facts[3]))
end

-- The next one in the lane stands first now. Invariant I3: a lane is offered iff its first is ready, with that one's score.
local function move_up(tube, lane)
  local id = redis.call('ZPOPMIN', lane_key(tube, lane))[1] or false
  set_front(tube, lane, id)
  if not id then return end
  tally(tube, 'locked', -1)
  offer_front(tube, lane, id)
end

-- Answers whether it stands first.
local function join_lane(id, task)
  if not front_of(task.tube, task.lane) then
    set_front(task.tube, task.lane, id)
    return true
  end
  tally(task.tube, 'locked', redis.call('ZADD', lane_key(task.tube, task.lane), task.order, id))
  return false
end

local function leave_lane(id, task)
  local tube, lane = task.tube, task.lane
  if task.state == 'taken' or front_of(tube, lane) == id then
    if task.state == 'ready' then withdraw(tube, task.tenant, '@' .. lane) end
    move_up(tube, lane)
  elseif redis.call('ZREM', lane_key(tube, lane), id) == 1 then
    tally(tube, 'locked', -1)
  end
end

-- `task`: {tube, tenant, lane (false if none), priority, order}. Answers whether it is takeable, not behind another.
local function make_takeable(id, task)
  if not task.lane then
    offer(task.tube, task.tenant, id, score_of(task.priority, task.order))
    return true
  end
  if not join_lane(id, task) then return false end
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

-- Take a task out of wherever it is to be taken, waits or is at work; what stands behind it in its lane moves up.
local function unplace(id, task)
  if task.state == 'taken' then
    write('ZREM', lease_key(), id)
  elseif task.state == 'buried' then
    write('ZREM', buried_key(), id)
  else
    if task.state == 'waiting' then write('ZREM', due_key(), id) end
    write('ZREM', expires_key(), id)
  end
  if task.lane then
    leave_lane(id, task)
  elseif task.state == 'ready' then
    withdraw(task.tube, task.tenant, id)
  end
end

-- What a task is found by. Parcels are found through their delivery, and are in no index.
local function each_mark(task, visit)
  for _, field in ipairs({ 'tenant', 'kind', 'user' }) do
    if task[field] then visit(field, task[field]) end
  end
  for tag in string.gmatch(task.tags or '', '[^\n]+') do visit('tag', tag) end
end

-- By its lane a task is found where it stands in it. Who does not, or lost its place, is noted apart until its end: so whoever looks
-- at those behind, the first, and then at these, misses nobody, whatever moves meanwhile.
local function note_aside(id, task)
  if task.lane and not task.history then redis.call('ZADD', by_key('lane', task.lane), 'NX', task.order, id) end
end

local function index_task(id, task)
  each_mark(task, function(field, value) write('ZADD', by_key(field, value), task.order, id) end)
  if task.state == 'waiting' then note_aside(id, task) end
  if task.kind then write('ZADD', kinds_key(), 0, task.kind) end
end

local function unindex(id, task)
  each_mark(task, function(field, value) write('ZREM', by_key(field, value), id) end)
  if task.lane then write('ZREM', by_key('lane', task.lane), id) end
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

-- Put a task off until `due` ms. Who stands first in a lane goes on standing there: what is behind it waits (K-25).
local function put_off(id, task, due)
  write('ZREM', lease_key(), id)
  turn_to(id, task, 'waiting')
  redis.call('HSET', task_key(id), 'due', due)
  redis.call('ZADD', due_key(), due, id)
  rearm(id)
end

-- Back to takeable, at its old place: who stands first in its lane still does.
local function give_back(id, task)
  write('ZREM', lease_key(), id)
  turn_to(id, task, 'ready')
  rearm(id)
  if task.lane and front_of(task.tube, task.lane) == id then
    offer(task.tube, task.tenant, '@' .. task.lane, score_of(task.priority, task.order))
  else
    make_takeable(id, task)
  end
end

-- Behind all that are there now, by the tube's choice: its lane goes on without it (K-25, `park`).
local function park(id, task, due)
  unplace(id, task)
  note_aside(id, task)
  if due > now then return put_off(id, task, due) end
  task.order = next_order()
  redis.call('HSET', task_key(id), 'order', task.order)
  give_back(id, task)
end

-- Lay a task aside until a person looks at it; its lane goes on.
local function bury_task(id, task)
  unplace(id, task)
  note_aside(id, task)
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
