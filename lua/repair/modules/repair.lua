-- repair: steps of a repair. Each reads the data again and changes only what is still wrong; `changes` lists what was changed

function Repair.note(what) Repair.changes[#Repair.changes + 1] = what end

function Repair.leave_index(index, name, id)
  if redis_call('ZREM', index, id) == 1 then Repair.note('removed from ' .. name) end
end

function Repair.enter_index(index, name, id, score)
  if tonumber(redis_call('ZSCORE', index, id) or '-1') == tonumber(score) then return end
  redis_call('ZADD', index, score, id)
  Repair.note('added to ' .. name)
end

-- Returns the task if it may stand in this lane.
function Repair.belongs(id, tube, lane)
  local task = Record.read(id)
  return task and task.tube == tube and task.lane == lane and task.state ~= 'buried' and task or nil
end

-- Removes a task from those behind the first.
function Repair.drop_member(tube, lane, id)
  Counts.tally(tube, 'locked', 0 - redis_call('ZREM', Key.lane(tube, lane), id))
  Repair.note('removed from the lane ' .. lane)
end

function Repair.stand_first(tube, lane, id)
  Lane.set_head(tube, lane, id)
  Repair.note((id or 'no task') .. ' is first in the lane ' .. lane)
end

-- Returns the next task behind the first that may become the first, and drops those before it, at most 100.
local function first_behind(tube, lane)
  for _ = 1, 100 do
    local id = redis_call('ZRANGE', Key.lane(tube, lane), 0, 0)[1]
    if not id then return false end
    local task = Repair.belongs(id, tube, lane)
    Repair.drop_member(tube, lane, id)
    if task and task.state ~= 'waiting' then return id, task end
  end
  return false
end

-- Returns the first task after the repair.
local function repair_head(tube, lane)
  local id = Lane.head_of(tube, lane)
  local task = id and Repair.belongs(id, tube, lane)
  if not task then
    local wanted
    wanted, task = first_behind(tube, lane)
    if wanted ~= id then Repair.stand_first(tube, lane, wanted) end
  elseif redis_call('ZSCORE', Key.lane(tube, lane), id) then
    Repair.drop_member(tube, lane, id)
  end
  return task
end

function Repair.repair_lane(tube, lane)
  local task = repair_head(tube, lane)
  if not task then return end
  local score = tonumber(redis_call('ZSCORE', Key.ready(tube, task.tenant), '@' .. lane) or '-1')
  if task.state ~= 'ready' then
    if score ~= -1 then
      Fairness.withdraw(tube, task.tenant, '@' .. lane)
      Repair.note('lane ' .. lane .. ' offer withdrawn')
    end
  elseif score ~= Fairness.score_of(task.priority, task.order) then
    Fairness.offer(tube, task.tenant, '@' .. lane, Fairness.score_of(task.priority, task.order))
    Repair.note('lane ' .. lane .. ' offered')
  end
end

-- A new call forgets the changes of the call before.
function Repair.begin()
  Repair.changes = {}
end
