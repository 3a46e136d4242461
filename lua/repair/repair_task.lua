-- repair_task: put a task into the places of its state and out of all others, as far as it is not so
-- ARGV    id
-- USES    write_buffer, ready, repair
-- RETURNS what was done, a line each; none if it was in order
-- EVENTS  del of the bell
-- INVARIANT I1, I2, I3, I5, I6

-- A taken task without a lease: its worker may live and extend it; if not, it is taken back after this.
local GRACE_MS = 60000
local KNOWN = { waiting = true, ready = true, taken = true, buried = true }

local task = read_task(id)
if not task then
  local facts = redis.call('HMGET', task_key(id), 'ended', 'tube')
  if facts[1] then
    for name, index in pairs({ due = due_key(), lease = lease_key(), expires = expires_key(), buried = buried_key() }) do
      stay_out(index, name, id)
    end
    if not redis.call('ZSCORE', finished_key(), id) then be_in(finished_key(), 'finished', id, now) end
    if redis.call('PTTL', task_key(id)) == -1 then
      redis.call('PEXPIRE', task_key(id), GRACE_MS)
      note('given an end')
    end
  end
  return did
end
if not KNOWN[task.state] or not task.tenant or not task.priority or not task.order then return did end

local state = task.state
local facts = redis.call('HMGET', task_key(id), 'due', 'expires')

local function mend_indexes()
  if state == 'waiting' then be_in(due_key(), 'due', id, facts[1] or now) else stay_out(due_key(), 'due', id) end
  if state ~= 'taken' then
    stay_out(lease_key(), 'lease', id)
  elseif not redis.call('ZSCORE', lease_key(), id) then
    be_in(lease_key(), 'lease', id, now + GRACE_MS)
    new_moment(now + GRACE_MS)
  end
  if state ~= 'buried' then
    stay_out(buried_key(), 'buried', id)
  elseif not redis.call('ZSCORE', buried_key(), id) then
    be_in(buried_key(), 'buried', id, now)
  end
  stay_out(finished_key(), 'finished', id)
  local expiring = facts[2] and (state == 'waiting' or state == 'ready')
  if expiring then be_in(expires_key(), 'expires', id, facts[2]) else stay_out(expires_key(), 'expires', id) end
end

local function mend_offer()
  local score = tonumber(redis.call('ZSCORE', ready_key(task.tube, task.tenant), id) or '-1')
  if state == 'ready' and not task.lane then
    if score == score_of(task.priority, task.order) then return end
    offer(task.tube, task.tenant, id, score_of(task.priority, task.order))
    note('offered')
  elseif score ~= -1 then
    withdraw(task.tube, task.tenant, id)
    note('offered no more')
  end
end

local lane = task.lane and lane_key(task.tube, task.lane)
local aside = task.lane and by_key('lane', task.lane)

-- Who is taken or backs off stands first, or who is before the one that stands there; that one stands behind again. Of two at work
-- none can be put back.
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
  be_in(lane, 'the lane ' .. task.lane, id, task.order)
end

-- Who waits and was not put aside backs off.
local function stands()
  if state ~= 'waiting' then return state ~= 'buried' end
  return task.history or not redis.call('ZSCORE', aside, id)
end

local function mend_place()
  local first, score = front_of(task.tube, task.lane), redis.call('ZSCORE', lane, id)
  if first == id then return end
  if state == 'ready' then
    if score or not first or not put_first() then put_behind(score) end
    return
  end
  if score then drop_member(task.tube, task.lane, id) end
  if stands() and not put_first() and state == 'waiting' then
    note_aside(id, task)
    note('put aside in the lane ' .. task.lane)
  end
end

local function mend_marks()
  if task.history then return end
  local function mark(field, value)
    if redis.call('ZADD', by_key(field, value), 'NX', task.order, id) == 1 then note('found by ' .. field) end
  end
  each_mark(task, mark)
  if task.lane and state == 'buried' then mark('lane', task.lane) end
end

if redis.call('PERSIST', task_key(id)) == 1 then note('given no end') end
mend_indexes()
mend_offer()
if task.lane then
  mend_place()
  set_lane_right(task.tube, task.lane)
end
mend_marks()
return did
