-- lane: which task stands first in a lane, and which are locked behind it

-- Returns the first task of a lane: ready, taken or backing off (I2). All behind it are locked.
function Lane.head_of(tube, lane)
  if not WriteBuffer.gathered then return redis_call('HGET', Key.head(tube), lane) end
  local known = WriteBuffer.heads_in(tube).known
  if known[lane] == nil then WriteBuffer.learn_heads(tube, { lane }) end
  return known[lane]
end

function Lane.set_head(tube, lane, id)
  if WriteBuffer.gathered then
    local heads = WriteBuffer.heads_in(tube)
    heads.known[lane], heads.moved[lane] = id, true
  elseif id then
    redis_call('HSET', Key.head(tube), lane, id)
  else
    redis_call('HDEL', Key.head(tube), lane)
  end
end

-- Returns false if the task is lost or damaged.
local function offer_head(tube, lane, id)
  local task = Record.stored_free(id)
  if not task then return false end
  Fairness.offer(tube, task.tenant, '@' .. lane, Fairness.score_of(task.priority, task.order))
  return true
end

-- The next task of the lane becomes its first. Invariant I3: a lane is offered iff its first task is ready, with that task's score.
function Lane.move_up(tube, lane)
  local id
  repeat
    id = redis_call('ZPOPMIN', Key.lane(tube, lane))[1] or false
    if id then Counts.tally(tube, 'locked', -1) end
  until not id or offer_head(tube, lane, id)
  Lane.set_head(tube, lane, id)
end

-- Returns whether the task stands first.
local function join_lane(id, task)
  if not Lane.head_of(task.tube, task.lane) then
    Lane.set_head(task.tube, task.lane, id)
    return true
  end
  Counts.tally(task.tube, 'locked', redis_call('ZADD', Key.lane(task.tube, task.lane), task.order, id))
  return false
end

function Lane.leave_lane(id, task)
  local tube, lane = task.tube, task.lane
  if task.state == 'taken' or Lane.head_of(tube, lane) == id then
    if task.state == 'ready' then Fairness.withdraw(tube, task.tenant, '@' .. lane) end
    Lane.move_up(tube, lane)
  elseif redis_call('ZREM', Key.lane(tube, lane), id) == 1 then
    Counts.tally(tube, 'locked', -1)
  end
end

-- `task`: {tube, tenant, lane (false if none), priority, order}. Returns whether it is takeable, not locked behind another task.
function Lane.make_takeable(id, task)
  if not task.lane then
    Fairness.offer(task.tube, task.tenant, id, Fairness.score_of(task.priority, task.order))
    return true
  end
  if not join_lane(id, task) then return false end
  Fairness.offer(task.tube, task.tenant, '@' .. task.lane, Fairness.score_of(task.priority, task.order))
  return true
end
