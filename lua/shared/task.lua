-- task: reads a task and moves it from one state to another
-- USES    write_buffer, damaged, counts, fairness, lane, index

local options = {}
local function option(tube, name)
  local field = tube .. ':' .. name
  if options[field] == nil then options[field] = redis.call('HGET', options_key(), field) end
  return options[field]
end

local function most_attempts(tube, own)
  return tonumber(own or option(tube, 'attempts') or redis.call('HGET', settings_key(), 'max_attempts') or '10')
end

-- One more attempt is allowed. The limit is stored with the task, because its tube may allow fewer later (I12).
local function allow(id, most) redis.call('HSET', task_key(id), 'allowed', most) end

-- Returns nil if there is no such task. An ended task that is kept counts as none.
local function read_task(id)
  if gathered and gathered.gone[id] then return nil end
  local facts = read_hash(task_key(id), 'tube', 'tenant', 'lane', 'priority', 'order', 'state', 'history', 'left', 'token', 'kind',
    'user', 'tags', 'reply', 'place')
  if not facts[1] or TASK_ENDS[facts[6]] then return nil end
  return {
    tube = facts[1], tenant = facts[2], lane = facts[3], priority = tonumber(facts[4]), order = tonumber(facts[5]), state = facts[6],
    history = facts[7], left = tonumber(facts[8] or '0'), token = facts[9], kind = facts[10], user = facts[11], tags = facts[12],
    reply = facts[13], place = tonumber(facts[14] or nil),
  }
end

local function turn_to(id, task, state)
  redis.call('HSET', task_key(id), 'state', state)
  tally(task.tube, task.state, -1)
  tally(task.tube, state, 1)
  task.state = state
end

-- Takes a task out of the indexes of its state and out of its lane; the next one in the lane moves up.
local function unplace(id, task)
  if task.state == 'taken' then
    write('ZREM', lease_key(), id)
  elseif task.state == 'buried' then
    write('ZREM', buried_key(), id)
  else
    if task.state == 'waiting' then write('ZREM', due_key(), id) end
    write('ZREM', expires_key(), id)
  end
  if task.lane then
    leave_lane(id, task)
  elseif task.state == 'ready' then
    withdraw(task.tube, task.tenant, id)
  end
end

-- Writes the end of a task to the reply stream of each client that waits for it.
local function reply_end(id, task, final, answer)
  for client in string.gmatch(task.reply, '%S+') do
    redis.call('XADD', reply_key(client), 'MAXLEN', '~', 10000, '*', 'task', id, 'state', final, 'answer', answer or '')
    redis.call('PEXPIRE', reply_key(client), REPLY_MS)
  end
end

local function keep_finished(id, final, answer, keep_ms)
  local key = task_key(id)
  redis.call('HSET', key, 'state', final, 'ended', now)
  if answer then redis.call('HSET', key, 'answer', answer) end
  redis.call('HDEL', key, 'token', 'owner', 'cancel')
  redis.call('ZADD', finished_key(), now + keep_ms, id)
  redis.call('PEXPIRE', key, keep_ms + 60000)
end

-- The end of a task. `final`: done, failed, cancelled, expired.
local function end_task(id, task, final, answer)
  unplace(id, task)
  tally(task.tube, task.state, -1)
  count(task.tube, final)
  if task.reply then reply_end(id, task, final, answer) end
  local keep = false
  if not task.history then
    unindex(id, task)
    keep = option(task.tube, 'keep_ms')
  end
  if keep then keep_finished(id, final, answer, tonumber(keep)) else forget(id) end
end

-- A task that is not taken any more may expire again.
local function rearm(id)
  local expires = redis.call('HGET', task_key(id), 'expires')
  if expires then redis.call('ZADD', expires_key(), expires, id) end
end

-- Puts a task off until `due` ms. A task that stands first in its lane stays first: the tasks behind it wait (K-25).
local function put_off(id, task, due)
  write('ZREM', lease_key(), id)
  turn_to(id, task, 'waiting')
  redis.call('HSET', task_key(id), 'due', due)
  redis.call('ZADD', due_key(), due, id)
  rearm(id)
end

-- Makes a task takeable again at its old place: a task that stood first in its lane still does.
local function give_back(id, task)
  write('ZREM', lease_key(), id)
  turn_to(id, task, 'ready')
  rearm(id)
  if task.lane and front_of(task.tube, task.lane) == id then
    offer(task.tube, task.tenant, '@' .. task.lane, score_of(task.priority, task.order))
  else
    make_takeable(id, task)
  end
end

-- Puts a task behind all that are there now: its lane goes on without it (the tube's choice, K-25 `park`).
local function park(id, task, due)
  unplace(id, task)
  note_aside(id, task)
  if due > now then return put_off(id, task, due) end
  task.order = next_order()
  redis.call('HSET', task_key(id), 'order', task.order)
  give_back(id, task)
end

-- Lays a task aside until a person looks at it; its lane goes on.
local function bury_task(id, task)
  unplace(id, task)
  note_aside(id, task)
  turn_to(id, task, 'buried')
  redis.call('ZADD', buried_key(), now, id)
  count(task.tube, 'buried')
end
