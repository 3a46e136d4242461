-- repair_task: puts a task into the indexes of its state and removes it from all others
-- ARGV    id
-- USES    counts, timers, fairness, lane, index, task, repair
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  del of the bell
-- INVARIANT I1, I2, I3, I5, I6

-- The lease given to a taken task without one: its worker may be alive and extend it. Otherwise the task is reclaimed after it.
local GRACE_MS = 60000
local KNOWN = { waiting = true, ready = true, taken = true, buried = true }

local task = read_task(id)
if not task then
  local facts = redis.call('HMGET', task_key(id), 'ended', 'tube')
  if facts[1] then
    for name, index in pairs({ due = due_key(), lease = lease_key(), expires = expires_key(), buried = buried_key() }) do
      leave_index(index, name, id)
    end
    if not redis.call('ZSCORE', finished_key(), id) then enter_index(finished_key(), 'finished', id, now) end
    if redis.call('PTTL', task_key(id)) == -1 then
      redis.call('PEXPIRE', task_key(id), GRACE_MS)
      note('TTL set')
    end
  end
  return changes
end
if not KNOWN[task.state] or not task.tenant or not task.priority or not task.order then return changes end

local state = task.state
local facts = redis.call('HMGET', task_key(id), 'due', 'expires')

local function repair_indexes()
  if state == 'waiting' then enter_index(due_key(), 'due', id, facts[1] or now) else leave_index(due_key(), 'due', id) end
  if state ~= 'taken' then
    leave_index(lease_key(), 'lease', id)
  elseif not redis.call('ZSCORE', lease_key(), id) then
    enter_index(lease_key(), 'lease', id, now + GRACE_MS)
    new_moment(now + GRACE_MS)
  end
  if state ~= 'buried' then
    leave_index(buried_key(), 'buried', id)
  elseif not redis.call('ZSCORE', buried_key(), id) then
    enter_index(buried_key(), 'buried', id, now)
  end
  leave_index(finished_key(), 'finished', id)
  local expiring = facts[2] and (state == 'waiting' or state == 'ready')
  if expiring then enter_index(expires_key(), 'expires', id, facts[2]) else leave_index(expires_key(), 'expires', id) end
end

local function repair_offer()
  local score = tonumber(redis.call('ZSCORE', ready_key(task.tube, task.tenant), id) or '-1')
  if state == 'ready' and not task.lane then
    if score == score_of(task.priority, task.order) then return end
    offer(task.tube, task.tenant, id, score_of(task.priority, task.order))
    note('offered')
  elseif score ~= -1 then
    withdraw(task.tube, task.tenant, id)
    note('offer withdrawn')
  end
end

local lane = task.lane and lane_key(task.tube, task.lane)
local aside = task.lane and by_key('lane', task.lane)

-- A task that is taken or backs off becomes the first, and so does a ready task that was submitted before the first; the former first
-- task is locked behind it. A rival that is not ready cannot be moved.
local function put_first()
  local other = front_of(task.tube, task.lane)
  local rival = other and belongs(other, task.tube, task.lane)
  if rival then
    if rival.state ~= 'ready' or state == 'ready' and rival.order < task.order then return false end
    withdraw(task.tube, rival.tenant, '@' .. task.lane)
    tally(task.tube, 'locked', redis.call('ZADD', lane, rival.order, other))
  end
  stand_first(task.tube, task.lane, id)
  return true
end

local function put_behind(score)
  if not score then tally(task.tube, 'locked', 1) end
  enter_index(lane, 'the lane ' .. task.lane, id, task.order)
end

-- Returns whether the task has a place in its lane. A waiting task that is not in the index by lane backs off at its place. A later
-- channel's parcel (strategy `first`) may wait outside its lane.
local function has_place()
  if state ~= 'waiting' then return state ~= 'buried' end
  if task.place and task.place > 1 then return false end
  return task.history or not redis.call('ZSCORE', aside, id)
end

local function repair_place()
  local first, score = front_of(task.tube, task.lane), redis.call('ZSCORE', lane, id)
  if first == id then return end
  if state == 'ready' then
    if score or not first or not put_first() then put_behind(score) end
    return
  end
  if score then drop_member(task.tube, task.lane, id) end
  if has_place() and not put_first() and state == 'waiting' then
    note_aside(id, task)
    note('added to the index by lane ' .. task.lane)
  end
end

local function repair_searches()
  if task.history then return end
  local function index(field, value)
    if redis.call('ZADD', by_key(field, value), 'NX', task.order, id) == 1 then note('added to the index by ' .. field) end
  end
  each_index(task, index)
  if task.lane and state == 'buried' then index('lane', task.lane) end
end

if redis.call('PERSIST', task_key(id)) == 1 then note('TTL removed') end
repair_indexes()
repair_offer()
if task.lane then
  repair_place()
  repair_lane(task.tube, task.lane)
end
repair_searches()
return changes
