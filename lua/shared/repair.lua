-- repair: steps of a repair. Each looks again and changes only what is still wrong; `changes` lists what was changed
-- USES    counts, fairness, lane, task

local changes = {}
local function note(what) changes[#changes + 1] = what end

local function leave_index(index, name, id)
  if redis.call('ZREM', index, id) == 1 then note('removed from ' .. name) end
end

local function enter_index(index, name, id, score)
  if tonumber(redis.call('ZSCORE', index, id) or '-1') == tonumber(score) then return end
  redis.call('ZADD', index, score, id)
  note('added to ' .. name)
end

-- Returns the task if it may stand in this lane.
local function belongs(id, tube, lane)
  local task = read_task(id)
  return task and task.tube == tube and task.lane == lane and task.state ~= 'buried' and task or nil
end

-- Removes a task from those behind the first.
local function drop_member(tube, lane, id)
  tally(tube, 'locked', 0 - redis.call('ZREM', lane_key(tube, lane), id))
  note('removed from the lane ' .. lane)
end

local function stand_first(tube, lane, id)
  set_front(tube, lane, id)
  note((id or 'no task') .. ' is first in the lane ' .. lane)
end

-- Returns the next task behind the first that may become the first, and drops those before it, at most 100.
local function first_behind(tube, lane)
  for _ = 1, 100 do
    local id = redis.call('ZRANGE', lane_key(tube, lane), 0, 0)[1]
    if not id then return false end
    local task = belongs(id, tube, lane)
    drop_member(tube, lane, id)
    if task and task.state ~= 'waiting' then return id, task end
  end
  return false
end

-- Returns the first task after the repair.
local function repair_front(tube, lane)
  local id = front_of(tube, lane)
  local task = id and belongs(id, tube, lane)
  if not task then
    local wanted
    wanted, task = first_behind(tube, lane)
    if wanted ~= id then stand_first(tube, lane, wanted) end
  elseif redis.call('ZSCORE', lane_key(tube, lane), id) then
    drop_member(tube, lane, id)
  end
  return task
end

local function repair_lane(tube, lane)
  local task = repair_front(tube, lane)
  if not task then return end
  local score = tonumber(redis.call('ZSCORE', ready_key(tube, task.tenant), '@' .. lane) or '-1')
  if task.state ~= 'ready' then
    if score ~= -1 then
      withdraw(tube, task.tenant, '@' .. lane)
      note('lane ' .. lane .. ' offer withdrawn')
    end
  elseif score ~= score_of(task.priority, task.order) then
    offer(tube, task.tenant, '@' .. lane, score_of(task.priority, task.order))
    note('lane ' .. lane .. ' offered')
  end
end
