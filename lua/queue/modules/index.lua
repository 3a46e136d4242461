-- index: the indexes by which live tasks are found

-- Calls `visit(field, value, id, task)` for each index of a task. The default tenant has no index. Parcels are found through their
-- delivery and are in no index.
function Index.each_index(id, task, visit)
  if task.tenant ~= 'default' then visit('tenant', task.tenant, id, task) end
  if task.kind then visit('kind', task.kind, id, task) end
  if task.user then visit('user', task.user, id, task) end
  if not task.tags then return end
  for tag in string.gmatch(task.tags, '[^\n]+') do visit('tag', tag, id, task) end
end

-- A task that stands in its lane is found there. A task that does not, or once did not, is in an index by lane until its end. A search
-- that reads the locked tasks, then the first, then this index therefore misses no task, whatever moves meanwhile. Save the task after it.
function Index.note_aside(id, task)
  if not task.lane or not Kinds.of(task).INDEXED then return end
  task.aside = true
  redis_call('ZADD', Key.by('lane', task.lane), 'NX', task.order, id)
end

local function enter(field, value, id, task) WriteBuffer.write('ZADD', Key.by(field, value), task.order, id) end

local function leave(field, value, id) WriteBuffer.write('ZREM', Key.by(field, value), id) end

function Index.index_task(id, task)
  Index.each_index(id, task, enter)
  if task.state == 'waiting' then Index.note_aside(id, task) end
  if task.kind then WriteBuffer.write('ZADD', Key.kinds(), 0, task.kind) end
end

function Index.unindex(id, task)
  Index.each_index(id, task, leave)
  if task.aside then WriteBuffer.write('ZREM', Key.by('lane', task.lane), id) end
  if not task.kind then return end
  if WriteBuffer.gathered then WriteBuffer.gathered.kinds[task.kind] = true else WriteBuffer.drop_kind(task.kind) end
end
