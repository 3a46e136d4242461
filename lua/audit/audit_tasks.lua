-- audit_tasks: tasks and every place that may name them, seen in one moment
-- ARGV    ids:rest
-- USES    write_buffer, ready
-- RETURNS [now, last order, last token, task, …]
--         task: [id] if there is none, or [id, facts (FACTS), scores in due, lease, expires, buried, finished, ready, lane,
--         those put aside in the lane, first of the lane, ms to live, what it should be found by and is not, …]
-- EVENTS  none

local FACTS = {
  'state', 'tube', 'tenant', 'lane', 'priority', 'order', 'due', 'expires', 'attempts', 'allowed', 'token', 'started', 'cancel', 'skip',
  'history', 'kind', 'user', 'tags', 'ended',
}

local function add_unfound(row, id, task)
  if task.history or task.ended then return end
  local function look(field, value)
    if not redis.call('ZSCORE', by_key(field, value), id) then row[#row + 1] = field .. ' ' .. value end
  end
  each_mark(task, look)
  if task.state == 'buried' and task.lane then look('lane', task.lane) end
end

local function seen(id)
  if redis.call('EXISTS', task_key(id)) == 0 then return { id } end
  local facts = redis.call('HMGET', task_key(id), unpack(FACTS))
  local task = {}
  for n, name in ipairs(FACTS) do task[name] = facts[n] end
  local tube, lane = task.tube or '', task.lane or ''
  local row = { id, facts }
  for _, index in ipairs({ due_key(), lease_key(), expires_key(), buried_key(), finished_key(), ready_key(tube, task.tenant or ''),
    lane_key(tube, lane), by_key('lane', lane) }) do
    row[#row + 1] = redis.call('ZSCORE', index, id)
  end
  row[#row + 1] = redis.call('HGET', front_key(tube), lane)
  row[#row + 1] = redis.call('PTTL', task_key(id))
  add_unfound(row, id, task)
  return row
end

local last = redis.call('HMGET', counters_key(), 'order', 'token')
local reply = { now, last[1] or '0', last[2] or '0' }
for _, id in ipairs(ids) do reply[#reply + 1] = seen(id) end
return reply
