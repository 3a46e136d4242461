-- lane: which task stands first in a lane, and which are locked behind it
-- USES    write_buffer, damaged, counts, fairness

-- Returns the first task of a lane: ready, taken or backing off (I2). All behind it are locked.
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

-- Returns false if the task is lost or damaged.
local function offer_front(tube, lane, id)
  local facts = read_hash(task_key(id), 'tenant', 'priority', 'order')
  if not facts[1] then return false end
  offer(tube, facts[1], '@' .. lane, score_of(facts[2], facts[3]))
  return true
end

-- The next task of the lane becomes its first. Invariant I3: a lane is offered iff its first task is ready, with that task's score.
local function move_up(tube, lane)
  local id
  repeat
    id = redis.call('ZPOPMIN', lane_key(tube, lane))[1] or false
    if id then tally(tube, 'locked', -1) end
  until not id or offer_front(tube, lane, id)
  set_front(tube, lane, id)
end

-- Returns whether the task stands first.
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

-- `task`: {tube, tenant, lane (false if none), priority, order}. Returns whether it is takeable, not locked behind another task.
local function make_takeable(id, task)
  if not task.lane then
    offer(task.tube, task.tenant, id, score_of(task.priority, task.order))
    return true
  end
  if not join_lane(id, task) then return false end
  offer(task.tube, task.tenant, '@' .. task.lane, score_of(task.priority, task.order))
  return true
end
