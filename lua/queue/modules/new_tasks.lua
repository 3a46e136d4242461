-- new_tasks: adds tasks to a tube
-- A task is a row: id, tenant, lane, priority, due, expires, kind, attempts, user, tags (one per line), reply, body; "" for none.

local NEW_TASK = { 'tenant', 'lane', 'priority', 'due', 'expires', 'kind', 'max', 'user', 'tags', 'reply', 'body' }
local NUMBERS = { priority = true, due = true, expires = true, max = true }

local function new_task(tube, rows, n)
  local task = { tube = tube }
  for m, name in ipairs(NEW_TASK) do
    local value = rows[n + m]
    if value ~= '' then task[name] = NUMBERS[name] and tonumber(value) or value end
  end
  return task
end

local function arm(id, task)
  if not task.expires then
    local lifetime = tonumber(Task.option(task.tube, 'expires_ms') or '0')
    if lifetime == 0 then return end
    task.expires = math.max(now, task.due or 0) + lifetime
  end
  WriteBuffer.write('ZADD', Key.expires(), task.expires, id)
end

-- A task that would be ready at once waits its turn behind the tasks that fell due before.
local function await_turn(task)
  if not task.due or task.due <= now then task.due = now + 1 end
end

-- Returns "ready", "locked" or "waiting".
local function add_task(id, task, order)
  task.order, task.state = order, (task.due or 0) > now and 'waiting' or 'ready'
  arm(id, task)
  Record.taken_by[id] = false
  Index.index_task(id, task)
  Record.save(id, task)
  Counts.tally(task.tube, task.state, 1)
  if task.state == 'ready' then return Lane.make_takeable(id, task) and 'ready' or 'locked' end
  WriteBuffer.write('ZADD', Key.due(), task.due, id)
  return 'waiting'
end

-- Returns the lanes that these tasks enter at once, in which they could overtake tasks that fell due while no worker was there.
local function lanes_entered(rows)
  local lanes = {}
  for n = 1, #rows, #NEW_TASK + 1 do
    if rows[n + 2] ~= '' and (tonumber(rows[n + 4]) or 0) <= now then lanes[#lanes + 1] = rows[n + 2] end
  end
  return lanes
end

-- Adds the tasks of the rows in their order. Returns the state of each. In a step that gathers its writes these are among them: a delivery
-- that falls due, for example, adds the task of its first reminder.
function NewTasks.add(tube, rows)
  local lanes, crowded = lanes_entered(rows), false
  if lanes[1] and Due.overdue(Key.due(), 1)[1] then crowded = Due.tick() end
  local width = #NEW_TASK + 1
  local many = #rows / width
  local order = redis_call('HINCRBY', Key.counters(), 'order', many) - many
  local is_gathering = WriteBuffer.gathered
  if not is_gathering then WriteBuffer.gather() end
  if lanes[1] then WriteBuffer.learn_heads(tube, lanes) end
  local states, first = {}, math.huge
  for n = 1, many do
    local at = (n - 1) * width + 1
    local task = new_task(tube, rows, at)
    if crowded and task.lane then await_turn(task) end
    states[n] = add_task(rows[at], task, order + n)
    first = math.min(first, states[n] == 'waiting' and task.due or math.huge, task.expires or math.huge)
  end
  if first < math.huge then Timers.new_moment(first) end
  Counts.count(tube, 'put', many)
  if not is_gathering then WriteBuffer.write_gathered() end
  return states
end
