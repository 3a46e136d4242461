-- audit_tasks: reads tasks and every index that may name them, in one atomic read
-- ARGV    ids:rest
-- USES    index, damaged
-- RETURNS [now, last order, last token, task, …]
--         task: [id] if there is none, or [id, facts (TASK_FACTS), scores in due, lease, expires, buried, finished, ready, lane,
--         index by lane, first task of the lane (false without a lane), TTL in ms, each index that should name it and does not, …]
-- EVENTS  none

local function add_missing(row, id, task)
  if task.history or task.ended then return end
  local function check(field, value)
    if not redis.call('ZSCORE', by_key(field, value), id) then row[#row + 1] = field .. ' ' .. value end
  end
  each_index(task, check)
  if task.state == 'buried' and task.lane then check('lane', task.lane) end
end

-- Scores in the indexes of all tasks.
local function common_scores(row, id, tube, owner)
  for _, index in ipairs({ due_key(), lease_key(), expires_key(), buried_key(), finished_key(), ready_key(tube, owner) }) do
    row[#row + 1] = redis.call('ZSCORE', index, id)
  end
end

local function lane_places(row, id, tube, lane)
  row[#row + 1] = lane and redis.call('ZSCORE', lane_key(tube, lane), id)
  row[#row + 1] = lane and redis.call('ZSCORE', by_key('lane', lane), id)
  row[#row + 1] = lane and redis.call('HGET', front_key(tube), lane)
end

local function row_of(id)
  local facts = peek_hash(task_key(id), unpack(TASK_FACTS))
  if not facts[1] and redis.call('TYPE', task_key(id)).ok ~= 'hash' then return { id } end
  local task, row = {}, { id, facts }
  for n, name in ipairs(TASK_FACTS) do task[name] = facts[n] end
  common_scores(row, id, task.tube or '', task.tenant or '')
  lane_places(row, id, task.tube or '', task.lane)
  row[#row + 1] = redis.call('PTTL', task_key(id))
  add_missing(row, id, task)
  return row
end

local last = redis.call('HMGET', counters_key(), 'order', 'token')
local reply = { now, last[1] or '0', last[2] or '0' }
for _, id in ipairs(ids) do reply[#reply + 1] = row_of(id) end
return reply
