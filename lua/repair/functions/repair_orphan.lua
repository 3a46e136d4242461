-- repair_orphan: removes what is left of a task that is gone
-- ARGV    id
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  none
-- INVARIANT I16

return function(id)
  if redis_call('EXISTS', Key.task(id)) == 1 then return Repair.changes end
  if redis_call('HDEL', Key.taken(), id) == 1 then Repair.note('removed from the taken tasks') end
  if redis_call('DEL', Key.progress(id)) == 1 then Repair.note('progress removed') end
  return Repair.changes
end
