-- purge: delete ended tasks that are kept, before their time
-- ARGV    ids:rest
-- RETURNS how many were deleted
-- EVENTS  none

return function(ids)
  local deleted = 0
  for _, id in ipairs(ids) do
    if redis_call('ZREM', Key.finished(), id) == 1 then
      redis_call('DEL', Key.task(id), Key.progress(id))
      deleted = deleted + 1
    end
  end
  return deleted
end
