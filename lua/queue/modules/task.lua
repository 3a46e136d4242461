-- task: moves a task from one state to another

-- By tube and name, what this call has read.
local options

-- Returns an option of a tube as text, false if it is not set.
function Task.option(tube, name)
  local known = options[tube] or {}
  options[tube] = known
  if known[name] == nil then known[name] = redis_call('HGET', Key.options(), tube .. ':' .. name) end
  return known[name]
end

-- `own`: the limit of the task itself, if it has one.
function Task.most_attempts(tube, own)
  return tonumber(own or Task.option(tube, 'attempts') or redis_call('HGET', Key.settings(), 'max_attempts') or '10')
end

-- One more attempt is allowed. The limit is stored with the task, because its tube may allow fewer later (I12).
function Task.allow(id, most) redis_call('HSET', Key.progress(id), 'allowed', most) end

-- The new state is stored when the task is saved.
function Task.turn_to(task, state)
  Counts.tally(task.tube, task.state, -1)
  Counts.tally(task.tube, state, 1)
  task.state = state
end

-- Why the last attempt failed, for operators. The caller cuts it; "" leaves what is there.
function Task.note_error(id, text)
  if text ~= '' then redis_call('HSET', Key.progress(id), 'error', text, 'erred', now) end
end

-- Ends an attempt, which counts; the task goes on.
function Task.stop_attempt(id, task)
  task.attempts, task.tried = Record.attempts_of(task), true
  Record.free(id, task)
end

-- Takes a task out of the indexes of its state and out of its lane; the next one in the lane moves up.
local function unplace(id, task)
  if task.state == 'taken' then
    if task.token then Task.stop_attempt(id, task) end
  elseif task.state == 'buried' then
    WriteBuffer.write('ZREM', Key.buried(), id)
    DeadLetters.leave(id)
  else
    if task.state == 'waiting' then WriteBuffer.write('ZREM', Key.due(), id) end
    if task.expires then WriteBuffer.write('ZREM', Key.expires(), id) end
  end
  if task.lane then
    Lane.leave_lane(id, task)
  elseif task.state == 'ready' then
    Fairness.withdraw(task.tube, task.tenant, id)
  end
end

local ANYBODY, LONGEST_FOR_ANYBODY = 'anybody', 1024

-- Writes the end of a task to the reply stream of each client that waits for it. `anybody` may wait for it later, in most cases nobody
-- does: a long answer is not kept for that.
local function reply_end(id, task, final, answer)
  answer = answer or ''
  for client in string.gmatch(task.reply, '%S+') do
    if client ~= ANYBODY or #answer <= LONGEST_FOR_ANYBODY then
      redis_call('XADD', Key.reply(client), 'MAXLEN', '~', 10000, '*', 'task', id, 'state', final, 'answer', answer)
      redis_call('PEXPIRE', Key.reply(client), REPLY_MS)
    end
  end
end

local function keep_finished(id, task, final, answer, keep_ms)
  task.state, task.ended = final, now
  Record.save_ended(id, task, keep_ms + 60000)
  redis_call('HDEL', Key.progress(id), 'cancel')
  if answer and answer ~= '' then redis_call('HSET', Key.progress(id), 'answer', answer) end
  redis_call('PEXPIRE', Key.progress(id), keep_ms + 60000)
  redis_call('ZADD', Key.finished(), now + keep_ms, id)
end

-- Ends a task. `final`: done, failed, cancelled, expired. `answer` may be left out.
function Task.finish(id, task, final, answer)
  unplace(id, task)
  Counts.tally(task.tube, task.state, -1)
  Counts.count(task.tube, final)
  if task.reply then reply_end(id, task, final, answer) end
  local keep = false
  if Kinds.of(task).INDEXED then
    Index.unindex(id, task)
    keep = Task.option(task.tube, 'keep_ms')
  end
  if keep then keep_finished(id, task, final, answer, tonumber(keep)) else Record.forget(id) end
end

-- A task that is not taken any more may expire again.
local function rearm(id, task)
  if task.expires then Timers.await_expiry(task.expires, id) end
end

-- Puts a task off until `due` ms. A task that stands first in its lane stays first: the tasks behind it wait (K-25).
function Task.put_off(id, task, due)
  if task.token then Record.free(id, task) end
  Task.turn_to(task, 'waiting')
  task.due = due
  Record.save(id, task)
  redis_call('ZADD', Key.due(), due, id)
  rearm(id, task)
end

-- Makes a task takeable again at its old place: a task that stood first in its lane still does.
function Task.give_back(id, task)
  if task.token then Record.free(id, task) end
  Task.turn_to(task, 'ready')
  Record.save(id, task)
  rearm(id, task)
  if task.lane and Lane.head_of(task.tube, task.lane) == id then
    Fairness.offer(task.tube, task.tenant, '@' .. task.lane, Fairness.score_of(task.priority, task.order))
  else
    Lane.make_takeable(id, task)
  end
end

-- Puts a task off until `due` ms, or makes it takeable at once. Returns "waiting" or "ready".
function Task.return_at(id, task, due)
  if due <= now then
    Task.give_back(id, task)
    return 'ready'
  end
  Timers.new_moment(due)
  Task.put_off(id, task, due)
  return 'waiting'
end

-- Puts a task behind all that are there now: its lane goes on without it (the tube's choice, K-25 `park`).
function Task.requeue_last(id, task, due)
  unplace(id, task)
  Index.note_aside(id, task)
  if due > now then return Task.put_off(id, task, due) end
  task.order = Counts.next_order()
  Task.give_back(id, task)
end

-- Sets a task aside until an operator acts; its lane goes on.
function Task.bury(id, task)
  unplace(id, task)
  Index.note_aside(id, task)
  Task.turn_to(task, 'buried')
  Record.save(id, task)
  redis_call('ZADD', Key.buried(), now, id)
  DeadLetters.enter(id, task, now)
  Counts.count(task.tube, 'buried')
end

-- A new call reads the options again: they may have changed.
function Task.begin()
  options = {}
end
