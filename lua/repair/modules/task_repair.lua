-- task_repair: puts a task where its state demands: into indexes, offers, its lane, searches

-- The lease given to a taken task without one: its worker may be alive and extend it. Otherwise the task is reclaimed after it.
local GRACE_MS = 60000

function TaskRepair.repair_ended(id)
  for name, index in pairs({ due = Key.due(), lease = Key.lease(), expires = Key.expires(), buried = Key.buried() }) do
    Repair.leave_index(index, name, id)
  end
  DeadLetters.leave(id)
  if not redis_call('ZSCORE', Key.finished(), id) then Repair.enter_index(Key.finished(), 'finished', id, now) end
  if redis_call('PTTL', Key.task(id)) == -1 then
    redis_call('PEXPIRE', Key.task(id), GRACE_MS)
    Repair.note('TTL set')
  end
end

-- Enters the task at `score` if it has no place in the index. Returns whether it did.
local function enter_if_missing(index, name, id, score)
  if redis_call('ZSCORE', index, id) then return false end
  Repair.enter_index(index, name, id, score)
  return true
end

local function repair_group(id, task)
  local group = Damaged.peek_hash(Key.progress(id), 'group')[1]
  if group and redis_call('ZSCORE', Key.dead_letter(group), id) then return end
  DeadLetters.enter(id, task, redis_call('ZSCORE', Key.buried(), id))
  Repair.note('added to the dead letters')
end

local function repair_indexes(id, task)
  local state = task.state
  if state == 'waiting' then Repair.enter_index(Key.due(), 'due', id, task.due or now) else Repair.leave_index(Key.due(), 'due', id) end
  if state ~= 'taken' then
    Repair.leave_index(Key.lease(), 'lease', id)
  elseif enter_if_missing(Key.lease(), 'lease', id, now + GRACE_MS) then
    Timers.new_moment(now + GRACE_MS)
  end
  if state == 'buried' then
    enter_if_missing(Key.buried(), 'buried', id, now)
    repair_group(id, task)
  else
    DeadLetters.leave(id)
    Repair.leave_index(Key.buried(), 'buried', id)
  end
  Repair.leave_index(Key.finished(), 'finished', id)
  if task.expires and (state == 'waiting' or state == 'ready') then
    Repair.enter_index(Key.expires(), 'expires', id, task.expires)
  else
    Repair.leave_index(Key.expires(), 'expires', id)
  end
end

local function repair_offer(id, task)
  local score = tonumber(redis_call('ZSCORE', Key.ready(task.tube, task.tenant), id) or '-1')
  local wanted = Fairness.score_of(task.priority, task.order)
  if task.state == 'ready' and not task.lane then
    if score == wanted then return end
    Fairness.offer(task.tube, task.tenant, id, wanted)
    Repair.note('offered')
  elseif score ~= -1 then
    Fairness.withdraw(task.tube, task.tenant, id)
    Repair.note('offer withdrawn')
  end
end

-- A task that is taken or backs off becomes the first, and so does a ready task that was submitted before the first; the former first
-- task is locked behind it. A rival that is not ready cannot be moved.
local function put_first(id, task)
  local other = Lane.head_of(task.tube, task.lane)
  local rival = other and Repair.belongs(other, task.tube, task.lane)
  if rival then
    if rival.state ~= 'ready' or task.state == 'ready' and rival.order < task.order then return false end
    Fairness.withdraw(task.tube, rival.tenant, '@' .. task.lane)
    Counts.tally(task.tube, 'locked', redis_call('ZADD', Key.lane(task.tube, task.lane), rival.order, other))
  end
  Repair.stand_first(task.tube, task.lane, id)
  return true
end

local function put_behind(id, task, score)
  if not score then Counts.tally(task.tube, 'locked', 1) end
  Repair.enter_index(Key.lane(task.tube, task.lane), 'the lane ' .. task.lane, id, task.order)
end

-- Returns whether the task has a place in its lane. A waiting task that is not in the index by lane backs off at its place. A later
-- channel's parcel (strategy `first`), or one that asks again, may wait outside its lane.
local function has_place(id, task)
  if task.state ~= 'waiting' then return task.state ~= 'buried' end
  if task.place == ASKS_AGAIN or task.place and task.place > 1 then return false end
  return not Kinds.of(task).INDEXED or not redis_call('ZSCORE', Key.by('lane', task.lane), id)
end

local function repair_place(id, task)
  local first, score = Lane.head_of(task.tube, task.lane), redis_call('ZSCORE', Key.lane(task.tube, task.lane), id)
  if first == id then return end
  if task.state == 'ready' then
    if score or not first or not put_first(id, task) then put_behind(id, task, score) end
    return
  end
  if score then Repair.drop_member(task.tube, task.lane, id) end
  if has_place(id, task) and not put_first(id, task) and task.state == 'waiting' then
    Index.note_aside(id, task)
    Record.save(id, task)
    Repair.note('added to the index by lane ' .. task.lane)
  end
end

local function add_to_index(field, value, id, task)
  if redis_call('ZADD', Key.by(field, value), 'NX', task.order, id) == 1 then Repair.note('added to the index by ' .. field) end
end

local function repair_searches(id, task)
  if not Kinds.of(task).INDEXED then return end
  Index.each_index(id, task, add_to_index)
  if not task.lane or task.state ~= 'buried' then return end
  add_to_index('lane', task.lane, id, task)
  if task.aside then return end
  task.aside = true
  Record.save(id, task)
end

function TaskRepair.repair_live(id, task)
  if redis_call('PERSIST', Key.task(id)) == 1 then Repair.note('TTL removed') end
  repair_indexes(id, task)
  repair_offer(id, task)
  if task.lane then
    repair_place(id, task)
    Repair.repair_lane(task.tube, task.lane)
  end
  repair_searches(id, task)
end
