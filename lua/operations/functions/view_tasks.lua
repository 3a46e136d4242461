-- view_tasks: read tasks as operators see them
-- ARGV    ids:rest
-- RETURNS for each [name, value, …], in which `first` is the first task of its lane, and `ahead` how many stand before it;
--         [] if there is none
-- EVENTS  none

local VIEWED = {
  'state', 'tube', 'tenant', 'lane', 'kind', 'user', 'tags', 'priority', 'order', 'due', 'expires', 'attempts', 'started', 'owner',
  'history', 'body', 'ended',
}
local PROGRESS = { 'left', 'checkpoint', 'cancel', 'answer', 'error', 'erred' }

local function add_fact(row, name, value)
  if value then WriteBuffer.add_words(row, name, Record.text_of(value)) end
end

local function add_place(row, id, task)
  add_fact(row, 'first', redis_call('HGET', Key.head(task.tube), task.lane))
  local behind = redis_call('ZRANK', Key.lane(task.tube, task.lane), id)
  if behind then add_fact(row, 'ahead', behind + 1) end
end

local function row_of(id)
  local task, row = Record.peek(id), {}
  if not task or not task.state then return row end
  task.attempts = Record.attempts_of(task) > 0 and Record.attempts_of(task)
  for _, name in ipairs(VIEWED) do add_fact(row, name, task[name]) end
  local progress = Damaged.peek_hash(Key.progress(id), unpack(PROGRESS))
  for n, name in ipairs(PROGRESS) do add_fact(row, name, progress[n]) end
  if task.lane then add_place(row, id, task) end
  if task.state == 'buried' then add_fact(row, 'buried', redis_call('ZSCORE', Key.buried(), id)) end
  if task.state == 'taken' then add_fact(row, 'lease', redis_call('ZSCORE', Key.lease(), id)) end
  return row
end

return function(ids)
  local reply = {}
  for n, id in ipairs(ids) do reply[n] = row_of(id) end
  return reply
end
