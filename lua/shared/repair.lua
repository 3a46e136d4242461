-- repair: what a repair does again only where it is still wrong; `did` tells each thing done

local did = {}
local function note(what) did[#did + 1] = what end

local function stay_out(index, name, id)
  if redis.call('ZREM', index, id) == 1 then note('taken out of ' .. name) end
end

local function be_in(index, name, id, score)
  if tonumber(redis.call('ZSCORE', index, id) or '-1') == tonumber(score) then return end
  redis.call('ZADD', index, score, id)
  note('put into ' .. name)
end

-- Whether a task has a place in this lane at all.
local function belongs(id, tube, lane)
  local task = read_task(id)
  return task and task.tube == tube and task.lane == lane and task.state ~= 'buried' and task or nil
end

-- Out of those who stand behind the first.
local function drop_member(tube, lane, id)
  tally(tube, 'locked', 0 - redis.call('ZREM', lane_key(tube, lane), id))
  note('taken out of the lane ' .. lane)
end

local function stand_first(tube, lane, id)
  set_front(tube, lane, id)
  note((id or 'nobody') .. ' stands first in the lane ' .. lane)
end

-- Who stands first if nobody does who may: the next who may; at most a page of those before it is dropped.
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

-- Answers who stands first now.
local function set_first_right(tube, lane)
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

local function set_lane_right(tube, lane)
  local task = set_first_right(tube, lane)
  if not task then return end
  local score = tonumber(redis.call('ZSCORE', ready_key(tube, task.tenant), '@' .. lane) or '-1')
  if task.state ~= 'ready' then
    if score ~= -1 then
      withdraw(tube, task.tenant, '@' .. lane)
      note('lane ' .. lane .. ' offered no more')
    end
  elseif score ~= score_of(task.priority, task.order) then
    offer(tube, task.tenant, '@' .. lane, score_of(task.priority, task.order))
    note('lane ' .. lane .. ' offered')
  end
end
