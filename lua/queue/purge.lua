-- purge: delete ended tasks that are kept, before their time
-- ARGV    ids:rest
-- RETURNS how many were deleted
-- EVENTS  none

local deleted = 0
for _, id in ipairs(ids) do
  if redis.call('ZREM', finished_key(), id) == 1 then
    redis.call('DEL', task_key(id))
    deleted = deleted + 1
  end
end
return deleted
