-- put: add a task to a tube, takeable at once or at its due moment
-- ARGV    id, tube, tenant, lane, priority:int, due:int, expires:int, kind, max:int, body
--         id: made by the caller, so that a repeat after a lost connection is known; lane, kind: "" for none; due, expires, max: 0 for none
-- USES    ready
-- RETURNS "ready", "locked", "waiting", or "known" for a repeat
-- EVENTS  del of the bell
-- INVARIANT I1

local key = task_key(id)
if redis.call('EXISTS', key) == 1 then return 'known' end
local order = next_order()
local fields = { 'state', 'ready', 'tube', tube, 'tenant', tenant, 'priority', priority, 'order', order, 'body', body }
for name, value in pairs({ lane = lane, kind = kind }) do
  if value ~= '' then fields[#fields + 1] = name fields[#fields + 1] = value end
end
for name, value in pairs({ due = due, expires = expires, max = max }) do
  if value > 0 then fields[#fields + 1] = name fields[#fields + 1] = value end
end
redis.call('HSET', key, unpack(fields))
count(tube, 'put')
if expires > 0 then redis.call('ZADD', expires_key(), expires, id) end
if due > now then
  redis.call('HSET', key, 'state', 'waiting')
  new_moment(due)
  redis.call('ZADD', due_key(), due, id)
  return 'waiting'
end
local task = { tube = tube, tenant = tenant, lane = lane ~= '' and lane, priority = priority, order = order }
make_takeable(id, task)
local locked = task.lane and (redis.call('HEXISTS', held_key(tube), lane) == 1 or redis.call('ZRANGE', lane_key(tube, lane), 0, 0)[1] ~= id)
return locked and 'locked' or 'ready'
