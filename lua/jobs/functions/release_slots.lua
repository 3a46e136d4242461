-- release_slots: take the slots of a job, or its place among those that wait, if they are still those of this attempt or task
-- ARGV    job, by, lease_ms:int
--         by: the attempt that has the slots, or the task that waits for them
-- RETURNS [task that is to be woken, its job], …
-- EVENTS  none
-- INVARIANT an attempt that another one has followed releases nothing

return function(job, by, lease_ms)
  local woken = {}
  if redis_call('HGET', Key.job_slot(job), 'by') == by then Slots.leave(job, lease_ms, woken) end
  return woken
end
