-- mend: what a repair does again only where it is still wrong; `did` tells each thing done

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

local function drop_member(tube, lane, id)
  leave_lane(id, { tube = tube, lane = lane })
  note('taken out of the lane ' .. lane)
end

-- The first task that belongs; at most a page of those before it is dropped.
local function true_head(tube, lane)
  for _ = 1, 100 do
    local head = redis.call('ZRANGE', lane_key(tube, lane), 0, 0)[1]
    if not head then return nil end
    local task = belongs(head, tube, lane)
    if task then return head, task end
    drop_member(tube, lane, head)
  end
  return nil
end

local function let_go(tube, lane)
  redis.call('HDEL', held_key(tube), lane)
  note('lane ' .. lane .. ' let go')
end

-- A holder who is gone, or never took the task, holds nothing. Answers who holds the lane.
local function true_holder(tube, lane, head, task)
  local holder = redis.call('HGET', held_key(tube), lane)
  if holder and holder ~= head then
    local other = belongs(holder, tube, lane)
    if other and other.state ~= 'ready' and redis.call('ZSCORE', lane_key(tube, lane), holder) then return holder end
  end
  local wanted = task and task.state ~= 'ready' and head or false
  if holder and holder ~= wanted then let_go(tube, lane) end
  if wanted and holder ~= wanted then
    redis.call('HSET', held_key(tube), lane, wanted)
    note('lane ' .. lane .. ' held by ' .. wanted)
  end
  return wanted
end

local function set_lane_right(tube, lane)
  local head, task = true_head(tube, lane)
  local holder = true_holder(tube, lane, head, task)
  if not head then return end
  local score = tonumber(redis.call('ZSCORE', ready_key(tube, task.tenant), '@' .. lane) or '-1')
  if holder then
    if score ~= -1 then
      withdraw(tube, task.tenant, '@' .. lane)
      note('lane ' .. lane .. ' offered no more')
    end
  elseif score ~= score_of(task.priority, task.order) then
    offer(tube, task.tenant, '@' .. lane, score_of(task.priority, task.order))
    note('lane ' .. lane .. ' offered')
  end
end
