-- ready: what can be taken, in which order, and who is told
-- A lane is offered as `@lane` with its head's score; a task without a lane is offered as itself.

-- Priority first, then the order of submission. 2^42 orders fit below one step of priority.
local function score_of(priority, order) return priority * 4398046511104 + order end

local function next_order() return redis.call('HINCRBY', counters_key(), 'order', 1) end

local function count(tube, transition, n) redis.call('HINCRBY', counters_key(), tube .. ':' .. transition, n or 1) end

-- The bell: deleting it wakes the sleepers of that tube, once per idle period.
local rung = {}
local function ring(tube)
  if rung[tube] then return end
  rung[tube] = true
  redis.call('DEL', bell_key(tube))
end

-- Tenants take turns: who was served, and who joins, stands behind all the others. So nobody saves up turns or pays for old ones,
-- and a tenant who leaves with each turn and comes back (a single lane) does not push in before those who waited (I15).
local function end_of_ring(tube) return (redis.call('ZRANGE', tenants_key(tube), -1, -1, 'WITHSCORES')[2] or 0) + 1 end

local function join_ring(tube, tenant)
  if redis.call('ZSCORE', tenants_key(tube), tenant) then return end
  redis.call('ZADD', tenants_key(tube), end_of_ring(tube), tenant)
end

local function offer(tube, tenant, member, score)
  redis.call('ZADD', ready_key(tube, tenant), score, member)
  join_ring(tube, tenant)
  ring(tube)
end

local function withdraw(tube, tenant, member)
  redis.call('ZREM', ready_key(tube, tenant), member)
  if redis.call('EXISTS', ready_key(tube, tenant)) == 0 then redis.call('ZREM', tenants_key(tube), tenant) end
end

-- Invariant I3: a lane is offered iff it is non-empty and unheld, with its head's score.
local function offer_head(tube, lane)
  local head = redis.call('ZRANGE', lane_key(tube, lane), 0, 0)[1]
  if not head then return end
  local facts = redis.call('HMGET', task_key(head), 'tenant', 'priority', 'order')
  offer(tube, facts[1], '@' .. lane, score_of(facts[2], facts[3]))
end

-- `task`: {tube, tenant, lane (false if none), priority, order}
local function make_takeable(id, task)
  if not task.lane then
    offer(task.tube, task.tenant, id, score_of(task.priority, task.order))
    return
  end
  redis.call('ZADD', lane_key(task.tube, task.lane), task.order, id)
  if redis.call('HEXISTS', held_key(task.tube), task.lane) == 0 and redis.call('ZCARD', lane_key(task.tube, task.lane)) == 1 then
    offer_head(task.tube, task.lane)
  end
end

local function read_task(id)
  local facts = redis.call('HMGET', task_key(id), 'tube', 'tenant', 'lane', 'priority', 'order', 'state', 'history', 'left', 'token', 'kind')
  if not facts[1] then return nil end
  return {
    tube = facts[1], tenant = facts[2], lane = facts[3], priority = tonumber(facts[4]), order = tonumber(facts[5]), state = facts[6],
    history = facts[7], left = tonumber(facts[8] or '0'), token = facts[9], kind = facts[10],
  }
end

-- Take a task out of whatever it is takeable, waiting or held by; what stands behind it in its lane moves up.
local function unplace(id, task)
  redis.call('ZREM', due_key(), id)
  redis.call('ZREM', expires_key(), id)
  redis.call('ZREM', lease_key(), id)
  redis.call('ZREM', buried_key(), id)
  if not task.lane then
    if task.state == 'ready' then withdraw(task.tube, task.tenant, id) end
    return
  end
  local lane, held = lane_key(task.tube, task.lane), held_key(task.tube)
  local holder = redis.call('HGET', held, task.lane)
  local was_head = redis.call('ZRANGE', lane, 0, 0)[1] == id
  redis.call('ZREM', lane, id)
  if holder == id then
    redis.call('HDEL', held, task.lane)
    offer_head(task.tube, task.lane)
  elseif not holder and was_head then
    withdraw(task.tube, task.tenant, '@' .. task.lane)
    offer_head(task.tube, task.lane)
  end
end

-- The end of a task. `final`: done, failed, cancelled, expired.
local function end_task(id, task, final)
  unplace(id, task)
  redis.call('DEL', task_key(id))
  count(task.tube, final)
end

-- A task that comes back may still expire.
local function rearm(id)
  local expires = redis.call('HGET', task_key(id), 'expires')
  if expires then redis.call('ZADD', expires_key(), expires, id) end
end

-- Put a task off until `due` ms. In a lane it keeps its place and holds the lane: what is behind it waits (K-25).
local function put_off(id, task, due)
  redis.call('ZREM', lease_key(), id)
  redis.call('HSET', task_key(id), 'state', 'waiting', 'due', due)
  redis.call('ZADD', due_key(), due, id)
  rearm(id)
end

-- Back to takeable, at its old place: the lane is let go and offered again, its head being this task.
local function give_back(id, task)
  redis.call('ZREM', lease_key(), id)
  redis.call('HSET', task_key(id), 'state', 'ready')
  rearm(id)
  if task.lane and redis.call('HGET', held_key(task.tube), task.lane) == id then
    redis.call('HDEL', held_key(task.tube), task.lane)
    offer_head(task.tube, task.lane)
  else
    make_takeable(id, task)
  end
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

-- A moment earlier than the timer's keeper knows of: tell the keeper, and nobody else, by deleting its key.
local function new_moment(at)
  local head = redis.call('ZRANGE', due_key(), 0, 0, 'WITHSCORES')[2]
  if not head or at < tonumber(head) then redis.call('DEL', timer_key()) end
end
