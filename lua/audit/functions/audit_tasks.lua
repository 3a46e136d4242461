-- audit_tasks: reads tasks and every index that may name them, in one atomic read
-- ARGV    ids:rest
-- RETURNS [now, last order, last token, task, …]
--         task: [id] if there is none, or [id, facts (TASK_FACTS), scores in due, lease, expires, buried, finished, ready, lane,
--         index by lane, first task of the lane (false without a lane), TTL in ms, each index that should name it and does not, …]
-- EVENTS  none

local function add_missing_group(row, id, task)
  local group = Damaged.peek_hash(Key.progress(id), 'group')[1]
  if group and redis_call('ZSCORE', Key.dead_letter(group), id) then return end
  row[#row + 1] = 'dead letters ' .. (group or DeadLetters.group_of(id, task))
end

local function add_missing(row, id, task)
  if task.state == 'buried' and task.tube then add_missing_group(row, id, task) end
  if not task.state or not Kinds.of(task).INDEXED or task.ended then return end
  local function check(field, value)
    if not redis_call('ZSCORE', Key.by(field, value), id) then row[#row + 1] = field .. ' ' .. value end
  end
  Index.each_index(id, task, check)
  if task.state == 'buried' and task.lane then check('lane', task.lane) end
end

-- Scores in the indexes of all tasks.
local function common_scores(row, id, tube, owner)
  for _, index in ipairs({ Key.due(), Key.lease(), Key.expires(), Key.buried(), Key.finished(), Key.ready(tube, owner) }) do
    row[#row + 1] = redis_call('ZSCORE', index, id)
  end
end

local function lane_places(row, id, tube, lane)
  row[#row + 1] = lane and redis_call('ZSCORE', Key.lane(tube, lane), id)
  row[#row + 1] = lane and redis_call('ZSCORE', Key.by('lane', lane), id)
  row[#row + 1] = lane and redis_call('HGET', Key.head(tube), lane)
end

-- Facts that are not in the record.
local PROGRESS = { 'allowed', 'cancel', 'skip', 'started' }

local function facts_of_task(id, task)
  local progress, facts = Damaged.peek_hash(Key.progress(id), unpack(PROGRESS)), {}
  for n, name in ipairs(PROGRESS) do task[name] = task[name] or progress[n] end
  task.attempts = Record.attempts_of(task) > 0 and Record.attempts_of(task) or nil
  for n, name in ipairs(TASK_FACTS) do facts[n] = Record.text_of(task[name]) end
  return facts
end

local function row_of(id)
  local task = Record.peek(id)
  if not task then return { id } end
  local row = { id, facts_of_task(id, task) }
  common_scores(row, id, task.tube or '', task.tenant or '')
  lane_places(row, id, task.tube or '', task.lane or false)
  row[#row + 1] = redis_call('PTTL', Key.task(id))
  add_missing(row, id, task)
  return row
end

return function(ids)
  local last = redis_call('HMGET', Key.counters(), 'order', 'token')
  local reply = { now, last[1] or '0', last[2] or '0' }
  for _, id in ipairs(ids) do reply[#reply + 1] = row_of(id) end
  return reply
end
