-- purge: forget ended tasks that are kept, before their time
-- ARGV    ids:rest
-- RETURNS how many were forgotten
-- EVENTS  none

local forgotten = 0
for _, id in ipairs(ids) do
  if redis.call('ZREM', finished_key(), id) == 1 then
    redis.call('DEL', task_key(id))
    forgotten = forgotten + 1
  end
end
return forgotten
