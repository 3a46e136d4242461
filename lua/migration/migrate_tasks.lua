-- migrate_tasks: stores tasks of layout 2, each of them a hash, as records with their holds and their progress
-- ARGV    ids:rest
-- RETURNS [tasks stored as records, hashes that are no tasks and were set aside]; what is no hash is left as it is
-- EVENTS  none
-- INVARIANT a task is stored as a record in one step, so the call may be repeated and interrupted; no index is changed

local TEXTS = { 'tube', 'lane', 'tenant', 'state', 'kind', 'user', 'tags', 'reply', 'history', 'body' }
local NUMBERS = { 'order', 'priority', 'due', 'expires', 'max', 'place', 'attempts', 'ended' }
local PROGRESS = { 'checkpoint', 'left', 'unclear', 'lost', 'skip', 'skipped', 'cancel', 'allowed', 'answer' }
local STATES = { waiting = true, ready = true, taken = true, buried = true }

-- Returns the fields of a hash by name; nil if the key is of another type or gone.
local function read_fields(key)
  local words = redis_pcall('HGETALL', key)
  if Damaged.is_wrong_type(words) or not words[1] then return nil end
  local fields = {}
  for n = 1, #words, 2 do fields[words[n]] = words[n + 1] end
  return fields
end

local function task_of(fields)
  local task = {}
  for _, name in ipairs(TEXTS) do task[name] = fields[name] end
  for _, name in ipairs(NUMBERS) do task[name] = tonumber(fields[name]) end
  local is_task = task.tube and task.order and (STATES[task.state] or TASK_ENDS[task.state])
  return is_task and task or nil
end

-- Returns the fields of its progress as words. A task that was given back after the loss of its worker keeps when it was started.
local function progress_of(task, fields)
  local words = {}
  for _, name in ipairs(PROGRESS) do
    if fields[name] then WriteBuffer.add_words(words, name, fields[name]) end
  end
  local is_given_back = not TASK_ENDS[task.state] and (task.state ~= 'taken' or fields.lost)
  if fields.started and is_given_back then WriteBuffer.add_words(words, 'started', fields.started) end
  return words
end

-- The attempt under way is in the hold; a record has those made before. A task without a token is damaged: it is reclaimed.
local function hold(id, task, fields)
  local started = fields.started or string.format('%.0f', now)
  redis_call('HSET', Key.held(), id, (fields.token or '0') .. ' ' .. started .. ' ' .. (fields.owner or ''))
  task.attempts = (task.attempts or 1) - 1
end

local function is_aside(id, task)
  return task.lane and not task.ended and redis_call('ZSCORE', Key.by('lane', task.lane), id) and true
end

local function store(id, task, fields)
  local key, words = Key.task(id), progress_of(task, fields)
  local ttl_ms = redis_call('PTTL', key)
  if task.state == 'taken' then hold(id, task, fields) end
  if task.attempts == 0 then task.attempts = nil end
  task.tried = words[1] ~= nil or nil
  task.aside = is_aside(id, task) or nil
  redis_call('DEL', key, Key.progress(id))
  if words[1] then redis_call('HSET', Key.progress(id), unpack(words)) end
  if ttl_ms < 0 then return Record.save(id, task) end
  Record.save_ended(id, task, math.max(1, ttl_ms))
  redis_call('PEXPIRE', Key.progress(id), math.max(1, ttl_ms))
end

return function(ids)
  local stored, damaged = 0, 0
  for _, id in ipairs(ids) do
    local fields = read_fields(Key.task(id))
    local task = fields and task_of(fields)
    if task then
      store(id, task, fields)
      stored = stored + 1
    elseif fields then
      Damaged.set_aside(Key.task(id))
      damaged = damaged + 1
    end
  end
  return { stored, damaged }
end
