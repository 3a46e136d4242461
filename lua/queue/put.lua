-- put: add tasks to a tube, each ready at once or when it is due
-- ARGV    client, call:int, answered:int, tube, tasks:rest
--         client, call: identify this call, so that its repeat after a lost connection is recognised;
--         answered: calls below it are not repeated any more
--         tasks: for each id, tenant, lane, priority, due, expires, kind, attempts, user, tags (one per line), reply, body; "" for none
-- USES    write_buffer, counts, timers, lane, index, task, due
-- LATE    tick
-- RETURNS "ready", "locked" or "waiting" for each task; "known" alone for a repeat
-- EVENTS  del of bells; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I1; tasks that fell due before enter their lane before the ones put now

if redis.call('ZSCORE', puts_key(client), call) then return { 'known' } end

local NAMES = { 'tenant', 'lane', 'priority', 'due', 'expires', 'kind', 'max', 'user', 'tags', 'reply', 'body' }
local lifetime = tonumber(option(tube, 'expires_ms') or '0')

local function read_fields(n)
  local task, fields = { tube = tube }, { 'tube', tube }
  for m, name in ipairs(NAMES) do
    local value = tasks[n + m]
    if value ~= '' then
      task[name] = value
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
  end
  return task, fields
end

local function arm(id, task, fields)
  if not task.expires then
    if lifetime == 0 then return end
    task.expires = string.format('%.0f', math.max(now, tonumber(task.due or '0')) + lifetime)
    fields[#fields + 1] = 'expires'
    fields[#fields + 1] = task.expires
  end
  write('ZADD', expires_key(), task.expires, id)
end

-- A task that would be ready at once waits its turn behind the tasks that fell due before.
local crowded = false
local function await_turn(task, fields)
  if tonumber(task.due or '0') > now then return end
  task.due = string.format('%.0f', now + 1)
  fields[#fields + 1] = 'due'
  fields[#fields + 1] = task.due
end

local first_due
local function add(n, order)
  local id = tasks[n]
  local task, fields = read_fields(n)
  if crowded and task.lane then await_turn(task, fields) end
  task.order, task.state = order, tonumber(task.due or '0') > now and 'waiting' or 'ready'
  arm(id, task, fields)
  redis.call('HSET', task_key(id), 'state', task.state, 'order', order, unpack(fields))
  index_task(id, task)
  tally(tube, task.state, 1)
  if task.state == 'ready' then return make_takeable(id, task) and 'ready' or 'locked' end
  first_due = math.min(first_due or math.huge, tonumber(task.due))
  write('ZADD', due_key(), task.due, id)
  return 'waiting'
end

-- The lanes that these tasks enter at once, in which they could overtake tasks that fell due while no worker was there.
local function lanes_entered()
  local lanes = {}
  for n = 1, #tasks, #NAMES + 1 do
    if tasks[n + 2] ~= '' and (tonumber(tasks[n + 4]) or 0) <= now then lanes[#lanes + 1] = tasks[n + 2] end
  end
  return lanes
end

local lanes = lanes_entered()
if lanes[1] and overdue(due_key(), 1)[1] then crowded = tick() end
redis.call('ZREMRANGEBYSCORE', puts_key(client), '-inf', '(' .. answered)
redis.call('ZADD', puts_key(client), call, call)
redis.call('PEXPIRE', puts_key(client), 3600000)
local width = #NAMES + 1
local many = #tasks / width
local order = redis.call('HINCRBY', counters_key(), 'order', many) - many
gather()
if lanes[1] then learn_fronts(tube, lanes) end
local states = {}
for n = 1, many do states[n] = add((n - 1) * width + 1, order + n) end
if first_due then new_moment(first_due) end
count(tube, 'put', many)
write_gathered()
return states
