-- record: the stored form of a task: a line `tube<tab>lane<tab>order<tab>rest`, then the body. The rest is JSON, or nothing
-- What a task does not have, or has like most tasks, is not stored. While a task is taken, the key `taken` names it: "<token> <started ms>
-- <owner>"; its record stays as it is. What only some tasks have (checkpoint, open entries, cancellation, answer …) is in `progress`.

local REST = {
  'tenant', 'priority', 'state', 'due', 'expires', 'kind', 'max', 'user', 'tags', 'reply', 'history', 'place', 'attempts', 'tried', 'aside',
  'ended',
}
-- Times are stored as text: JSON would keep 14 digits of them.
local TIMES = { due = true, expires = true }
local USUAL = { tenant = 'default', priority = 5, state = 'ready' }

local function hex_of(byte) return string.format('%%%02x', string.byte(byte)) end
local function byte_of(hex) return string.char(tonumber(hex, 16)) end

-- Tubes and lanes are any text, but the line has no control characters in it.
local function escaped(text) return string.find(text, '[%c%%]') and string.gsub(text, '[%c%%]', hex_of) or text end
local function unescaped(text) return string.find(text, '%', 1, true) and string.gsub(text, '%%(%x%x)', byte_of) or text end

local function rest_of(task)
  local rest
  for _, name in ipairs(REST) do
    local value = task[name]
    if value and value ~= USUAL[name] and value ~= 'taken' then
      rest = rest or {}
      rest[name] = TIMES[name] and string.format('%.0f', value) or value
    end
  end
  return rest and cjson.encode(rest) or ''
end

local function encoded(task)
  local lane = task.lane and escaped(task.lane) or ''
  return escaped(task.tube) .. '\t' .. lane .. '\t' .. string.format('%.0f', task.order)
    .. '\t' .. rest_of(task) .. '\n' .. (task.body or '')
end

local function decoded(text)
  local tube, lane, order, rest, body = string.match(text, '^([^\t\n]+)\t([^\t\n]*)\t(%d+)\t([^\n]*)\n()')
  local task = {
    tube = unescaped(tube), lane = lane ~= '' and unescaped(lane), order = tonumber(order), body = string.sub(text, body), left = 0,
    tenant = 'default', priority = 5, state = 'ready', token = nil, started = nil, owner = nil,
  }
  if rest ~= '' then
    for name, value in pairs(cjson.decode(rest)) do task[name] = TIMES[name] and tonumber(value) or value end
  end
  return task
end

-- `records` and `taken_by`: what this call has read or written of tasks, by id; false if there is none.
local function learn_one(id, may_be_taken)
  if Record.records[id] ~= nil then return end
  Record.records[id] = Damaged.read_text(Key.task(id))
  Record.taken_by[id] = may_be_taken and redis_call('HGET', Key.taken(), id)
end

-- Reads many tasks at once. `may_be_taken` false: none of them is.
function Record.learn(ids, may_be_taken)
  if not ids[1] then return end
  local keys = {}
  for n, id in ipairs(ids) do keys[n] = Key.task(id) end
  local texts, lease = redis_call('MGET', unpack(keys)), may_be_taken and redis_call('HMGET', Key.taken(), unpack(ids))
  for n, id in ipairs(ids) do
    -- MGET returns nothing for a key of another type, which has to be set aside.
    if texts[n] then Record.records[id], Record.taken_by[id] = texts[n], lease and lease[n] end
  end
end

-- Returns the token of a lease, the ms at which the attempt began, and the owner. The owner is part of the token: after a promotion without
-- the last writes a number may be given out twice (I8).
function Record.read_lease(lease)
  local number, started, owner = string.match(lease, '^(%d+) (%d+) (.*)$')
  if number then return number .. ' ' .. owner, started, owner end
end

-- Returns the task, nil if there is none; false if its record cannot be read.
local function task_in(text, lease)
  if not text then return nil end
  local is_readable, task = pcall(decoded, text)
  if not is_readable then return false end
  if lease then
    task.state = 'taken'
    task.token, task.started, task.owner = Record.read_lease(lease)
  end
  return task
end

local function known_task(id)
  local task = task_in(Record.records[id], Record.taken_by[id])
  if task then return task end
  if Record.records[id] then Damaged.set_aside(Key.task(id)) end
  Record.records[id] = false
  return nil
end

-- Returns a task in any state, ended ones that are kept included; nil if there is none. `attempts`: those made before it was taken.
function Record.stored(id)
  learn_one(id, true)
  return known_task(id)
end

-- The same for a task that cannot be taken.
function Record.stored_free(id)
  learn_one(id, false)
  return known_task(id)
end

-- Returns nil if there is no such task. An ended task that is kept counts as none.
function Record.read(id)
  local task = Record.stored(id)
  if not task or TASK_ENDS[task.state] then return nil end
  Kinds.of(task).load(id, task)
  return task
end

function Record.save(id, task)
  local text = encoded(task)
  Record.records[id] = text
  if WriteBuffer.gathered then WriteBuffer.gathered.texts[id] = text else redis_call('SET', Key.task(id), text) end
end

-- Stores an ended task until the server drops it.
function Record.save_ended(id, task, ttl_ms)
  Record.records[id] = encoded(task)
  if WriteBuffer.gathered then WriteBuffer.gathered.texts[id] = nil end
  redis_call('SET', Key.task(id), Record.records[id], 'PX', ttl_ms)
end

function Record.forget(id)
  Record.records[id], Record.taken_by[id] = false, false
  if not WriteBuffer.gathered then return redis_call('DEL', Key.task(id), Key.progress(id)) end
  WriteBuffer.gathered.texts[id] = nil
  WriteBuffer.add_words(WriteBuffer.gathered.deleted, Key.task(id), Key.progress(id))
end

-- Ends the lease of a taken task's worker.
function Record.free(id, task)
  Record.taken_by[id] = false
  task.token, task.started, task.owner = nil, nil, nil
  if WriteBuffer.gathered then
    WriteBuffer.gathered.freed[#WriteBuffer.gathered.freed + 1] = id
  else
    redis_call('HDEL', Key.taken(), id)
    redis_call('ZREM', Key.lease(), id)
  end
end

-- Returns the attempts made, the one under way included.
function Record.attempts_of(task) return (task.attempts or 0) + (task.token and 1 or 0) end

-- Returns a task as `Record.stored` does, but sets no key aside; nil if there is none, {} if its record cannot be read.
function Record.peek(id)
  local text = redis_pcall('GET', Key.task(id))
  if Damaged.is_wrong_type(text) then return nil end
  local task = task_in(text, redis_call('HGET', Key.taken(), id))
  return task == false and {} or task
end

-- Returns a fact in the form of a reply: text, or false if there is none.
function Record.text_of(value)
  if type(value) == 'number' then return string.format('%.0f', value) end
  return value or false
end

-- A new call forgets what the call before has read and written.
function Record.begin()
  Record.records = {}
  Record.taken_by = {}
end
