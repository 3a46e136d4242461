-- task: reads a task and moves it from one state to another

local options
function Task.option(tube, name)
  local field = tube .. ':' .. name
  if options[field] == nil then options[field] = redis_call('HGET', Key.options(), field) end
  return options[field]
end

function Task.most_attempts(tube, own)
  return tonumber(own or Task.option(tube, 'attempts') or redis_call('HGET', Key.settings(), 'max_attempts') or '10')
end

-- One more attempt is allowed. The limit is stored with the task, because its tube may allow fewer later (I12).
function Task.allow(id, most) redis_call('HSET', Key.task(id), 'allowed', most) end

-- Returns nil if there is no such task. An ended task that is kept counts as none.
function Task.read(id)
  if WriteBuffer.gathered and WriteBuffer.gathered.gone[id] then return nil end
  local facts = Damaged.read_hash(Key.task(id), 'tube', 'tenant', 'lane', 'priority', 'order', 'state', 'history', 'left', 'token', 'kind',
    'user', 'tags', 'reply', 'place')
  if not facts[1] or TASK_ENDS[facts[6]] then return nil end
  return {
    tube = facts[1], tenant = facts[2], lane = facts[3], priority = tonumber(facts[4]), order = tonumber(facts[5]), state = facts[6],
    history = facts[7], left = tonumber(facts[8] or '0'), token = facts[9], kind = facts[10], user = facts[11], tags = facts[12],
    reply = facts[13], place = tonumber(facts[14] or nil),
  }
end

function Task.turn_to(id, task, state)
  redis_call('HSET', Key.task(id), 'state', state)
  Counts.tally(task.tube, task.state, -1)
  Counts.tally(task.tube, state, 1)
  task.state = state
end

-- Takes a task out of the indexes of its state and out of its lane; the next one in the lane moves up.
local function unplace(id, task)
  if task.state == 'taken' then
    WriteBuffer.write('ZREM', Key.lease(), id)
  elseif task.state == 'buried' then
    WriteBuffer.write('ZREM', Key.buried(), id)
  else
    if task.state == 'waiting' then WriteBuffer.write('ZREM', Key.due(), id) end
    WriteBuffer.write('ZREM', Key.expires(), id)
  end
  if task.lane then
    Lane.leave_lane(id, task)
  elseif task.state == 'ready' then
    Fairness.withdraw(task.tube, task.tenant, id)
  end
end

-- Writes the end of a task to the reply stream of each client that waits for it.
local function reply_end(id, task, final, answer)
  for client in string.gmatch(task.reply, '%S+') do
    redis_call('XADD', Key.reply(client), 'MAXLEN', '~', 10000, '*', 'task', id, 'state', final, 'answer', answer or '')
    redis_call('PEXPIRE', Key.reply(client), REPLY_MS)
  end
end

local function keep_finished(id, final, answer, keep_ms)
  local key = Key.task(id)
  redis_call('HSET', key, 'state', final, 'ended', now)
  if answer then redis_call('HSET', key, 'answer', answer) end
  redis_call('HDEL', key, 'token', 'owner', 'cancel')
  redis_call('ZADD', Key.finished(), now + keep_ms, id)
  redis_call('PEXPIRE', key, keep_ms + 60000)
end

-- The end of a task. `final`: done, failed, cancelled, expired.
function Task.finish(id, task, final, answer)
  unplace(id, task)
  Counts.tally(task.tube, task.state, -1)
  Counts.count(task.tube, final)
  if task.reply then reply_end(id, task, final, answer) end
  local keep = false
  if not task.history then
    Index.unindex(id, task)
    keep = Task.option(task.tube, 'keep_ms')
  end
  if keep then keep_finished(id, final, answer, tonumber(keep)) else WriteBuffer.forget(id) end
end

-- A task that is not taken any more may expire again.
function Task.rearm(id)
  local expires = redis_call('HGET', Key.task(id), 'expires')
  if expires then redis_call('ZADD', Key.expires(), expires, id) end
end

-- Puts a task off until `due` ms. A task that stands first in its lane stays first: the tasks behind it wait (K-25).
function Task.put_off(id, task, due)
  WriteBuffer.write('ZREM', Key.lease(), id)
  Task.turn_to(id, task, 'waiting')
  redis_call('HSET', Key.task(id), 'due', due)
  redis_call('ZADD', Key.due(), due, id)
  Task.rearm(id)
end

-- Makes a task takeable again at its old place: a task that stood first in its lane still does.
function Task.give_back(id, task)
  WriteBuffer.write('ZREM', Key.lease(), id)
  Task.turn_to(id, task, 'ready')
  Task.rearm(id)
  if task.lane and Lane.front_of(task.tube, task.lane) == id then
    Fairness.offer(task.tube, task.tenant, '@' .. task.lane, Fairness.score_of(task.priority, task.order))
  else
    Lane.make_takeable(id, task)
  end
end

-- Puts a task behind all that are there now: its lane goes on without it (the tube's choice, K-25 `park`).
function Task.park(id, task, due)
  unplace(id, task)
  Index.note_aside(id, task)
  if due > now then return Task.put_off(id, task, due) end
  task.order = Counts.next_order()
  redis_call('HSET', Key.task(id), 'order', task.order)
  Task.give_back(id, task)
end

-- Lays a task aside until a person looks at it; its lane goes on.
function Task.bury(id, task)
  unplace(id, task)
  Index.note_aside(id, task)
  Task.turn_to(id, task, 'buried')
  redis_call('ZADD', Key.buried(), now, id)
  Counts.count(task.tube, 'buried')
end

-- What one call gathers is forgotten at the begin of the next.
function Task.begin()
  options = {}
end
