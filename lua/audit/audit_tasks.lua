-- audit_tasks: reads tasks and every index that may name them, in one atomic read
-- ARGV    ids:rest
-- USES    index
-- RETURNS [now, last order, last token, task, …]
--         task: [id] if there is none, or [id, facts (TASK_FACTS), scores in due, lease, expires, buried, finished, ready, lane,
--         index by lane, first task of the lane, TTL in ms, each index that should name it and does not, …]
-- EVENTS  none

local function add_missing(row, id, task)
  if task.history or task.ended then return end
  local function check(field, value)
    if not redis.call('ZSCORE', by_key(field, value), id) then row[#row + 1] = field .. ' ' .. value end
  end
  each_index(task, check)
  if task.state == 'buried' and task.lane then check('lane', task.lane) end
end

local function row_of(id)
  if redis.call('TYPE', task_key(id)).ok ~= 'hash' then return { id } end
  local facts = redis.call('HMGET', task_key(id), unpack(TASK_FACTS))
  local task = {}
  for n, name in ipairs(TASK_FACTS) do task[name] = facts[n] end
  local tube, lane = task.tube or '', task.lane or ''
  local row = { id, facts }
  for _, index in ipairs({ due_key(), lease_key(), expires_key(), buried_key(), finished_key(), ready_key(tube, task.tenant or ''),
    lane_key(tube, lane), by_key('lane', lane) }) do
    row[#row + 1] = redis.call('ZSCORE', index, id)
  end
  row[#row + 1] = redis.call('HGET', front_key(tube), lane)
  row[#row + 1] = redis.call('PTTL', task_key(id))
  add_missing(row, id, task)
  return row
end

local last = redis.call('HMGET', counters_key(), 'order', 'token')
local reply = { now, last[1] or '0', last[2] or '0' }
for _, id in ipairs(ids) do reply[#reply + 1] = row_of(id) end
return reply
