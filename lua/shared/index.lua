-- index: the indexes by which live tasks are found
-- USES    write_buffer

-- Calls `visit(field, value)` for each index of a task. Parcels are found through their delivery and are in no index.
local function each_index(task, visit)
  for _, field in ipairs({ 'tenant', 'kind', 'user' }) do
    if task[field] then visit(field, task[field]) end
  end
  for tag in string.gmatch(task.tags or '', '[^\n]+') do visit('tag', tag) end
end

-- A task that stands in its lane is found there. A task that does not, or once did not, is in an index by lane until its end. A search
-- that reads the locked tasks, then the first, then this index therefore misses no task, whatever moves meanwhile.
local function note_aside(id, task)
  if task.lane and not task.history then redis.call('ZADD', by_key('lane', task.lane), 'NX', task.order, id) end
end

local function index_task(id, task)
  each_index(task, function(field, value) write('ZADD', by_key(field, value), task.order, id) end)
  if task.state == 'waiting' then note_aside(id, task) end
  if task.kind then write('ZADD', kinds_key(), 0, task.kind) end
end

local function unindex(id, task)
  each_index(task, function(field, value) write('ZREM', by_key(field, value), id) end)
  if task.lane then write('ZREM', by_key('lane', task.lane), id) end
  if not task.kind then return end
  if gathered then gathered.kinds[task.kind] = true else drop_kind(task.kind) end
end
