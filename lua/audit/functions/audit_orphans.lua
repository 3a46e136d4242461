-- audit_orphans: reads which leases or progress of tasks are left without their task, in one atomic read
-- ARGV    kind, ids:rest
--         kind: taken or progress
-- RETURNS the ids of those that are there, although the task is not
-- EVENTS  none

return function(kind, ids)
  local function is_there(id)
    if kind == 'taken' then return redis_call('HEXISTS', Key.taken(), id) == 1 end
    return redis_call('EXISTS', Key.progress(id)) == 1
  end

  local orphans = {}
  for _, id in ipairs(ids) do
    if is_there(id) and redis_call('EXISTS', Key.task(id)) == 0 then orphans[#orphans + 1] = id end
  end
  return orphans
end
