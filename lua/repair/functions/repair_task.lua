-- repair_task: puts a task into the indexes of its state and removes it from all others
-- ARGV    id
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  del of the bell
-- INVARIANT I1, I2, I3, I5, I6

-- The lease given to a taken task without one: its worker may be alive and extend it. Otherwise the task is reclaimed after it.
local GRACE_MS = 60000
local KNOWN = { waiting = true, ready = true, taken = true, buried = true }

return function(id)
  local task = Record.read(id)
  if not task then
    local ended = Record.stored(id)
    if ended then
      for name, index in pairs({ due = Key.due(), lease = Key.lease(), expires = Key.expires(), buried = Key.buried() }) do
        Repair.leave_index(index, name, id)
      end
      if not redis_call('ZSCORE', Key.finished(), id) then Repair.enter_index(Key.finished(), 'finished', id, now) end
      if redis_call('PTTL', Key.task(id)) == -1 then
        redis_call('PEXPIRE', Key.task(id), GRACE_MS)
        Repair.note('TTL set')
      end
    end
    return Repair.changes
  end
  if not KNOWN[task.state] or not task.tenant or not task.priority or not task.order then return Repair.changes end

  local state = task.state

  local function repair_indexes()
    if state == 'waiting' then Repair.enter_index(Key.due(), 'due', id, task.due or now) else Repair.leave_index(Key.due(), 'due', id) end
    if state ~= 'taken' then
      Repair.leave_index(Key.lease(), 'lease', id)
    elseif not redis_call('ZSCORE', Key.lease(), id) then
      Repair.enter_index(Key.lease(), 'lease', id, now + GRACE_MS)
      Timers.new_moment(now + GRACE_MS)
    end
    if state ~= 'buried' then
      Repair.leave_index(Key.buried(), 'buried', id)
    elseif not redis_call('ZSCORE', Key.buried(), id) then
      Repair.enter_index(Key.buried(), 'buried', id, now)
    end
    Repair.leave_index(Key.finished(), 'finished', id)
    local expiring = task.expires and (state == 'waiting' or state == 'ready')
    if expiring then
      Repair.enter_index(Key.expires(), 'expires', id, task.expires)
    else
      Repair.leave_index(Key.expires(), 'expires', id)
    end
  end

  local function repair_offer()
    local score = tonumber(redis_call('ZSCORE', Key.ready(task.tube, task.tenant), id) or '-1')
    if state == 'ready' and not task.lane then
      if score == Fairness.score_of(task.priority, task.order) then return end
      Fairness.offer(task.tube, task.tenant, id, Fairness.score_of(task.priority, task.order))
      Repair.note('offered')
    elseif score ~= -1 then
      Fairness.withdraw(task.tube, task.tenant, id)
      Repair.note('offer withdrawn')
    end
  end

  local lane = task.lane and Key.lane(task.tube, task.lane)
  local aside = task.lane and Key.by('lane', task.lane)

  -- A task that is taken or backs off becomes the first, and so does a ready task that was submitted before the first; the former first
  -- task is locked behind it. A rival that is not ready cannot be moved.
  local function put_first()
    local other = Lane.front_of(task.tube, task.lane)
    local rival = other and Repair.belongs(other, task.tube, task.lane)
    if rival then
      if rival.state ~= 'ready' or state == 'ready' and rival.order < task.order then return false end
      Fairness.withdraw(task.tube, rival.tenant, '@' .. task.lane)
      Counts.tally(task.tube, 'locked', redis_call('ZADD', lane, rival.order, other))
    end
    Repair.stand_first(task.tube, task.lane, id)
    return true
  end

  local function put_behind(score)
    if not score then Counts.tally(task.tube, 'locked', 1) end
    Repair.enter_index(lane, 'the lane ' .. task.lane, id, task.order)
  end

  -- Returns whether the task has a place in its lane. A waiting task that is not in the index by lane backs off at its place. A later
  -- channel's parcel (strategy `first`) may wait outside its lane.
  local function has_place()
    if state ~= 'waiting' then return state ~= 'buried' end
    if task.place and task.place > 1 then return false end
    return not Kinds.of(task).INDEXED or not redis_call('ZSCORE', aside, id)
  end

  local function repair_place()
    local first, score = Lane.front_of(task.tube, task.lane), redis_call('ZSCORE', lane, id)
    if first == id then return end
    if state == 'ready' then
      if score or not first or not put_first() then put_behind(score) end
      return
    end
    if score then Repair.drop_member(task.tube, task.lane, id) end
    if has_place() and not put_first() and state == 'waiting' then
      Index.note_aside(id, task)
      Record.save(id, task)
      Repair.note('added to the index by lane ' .. task.lane)
    end
  end

  local function repair_searches()
    if not Kinds.of(task).INDEXED then return end
    local function index(field, value)
      if redis_call('ZADD', Key.by(field, value), 'NX', task.order, id) == 1 then Repair.note('added to the index by ' .. field) end
    end
    Index.each_index(id, task, index)
    if not task.lane or state ~= 'buried' then return end
    index('lane', task.lane)
    if task.aside then return end
    task.aside = true
    Record.save(id, task)
  end

  if redis_call('PERSIST', Key.task(id)) == 1 then Repair.note('TTL removed') end
  repair_indexes()
  repair_offer()
  if task.lane then
    repair_place()
    Repair.repair_lane(task.tube, task.lane)
  end
  repair_searches()
  return Repair.changes
end
