-- take_slots: give a job a slot of each of its limits, or let it wait for the first that has none
-- ARGV    job, holder, task, lease_ms:int, limits:json
--         job: its name in keys; holder: the attempt; task: its task, which is to be woken; lease_ms: after that a slot ends if it is not
--         extended; limits: [[name, how many slots], …]
-- RETURNS [the limit for which it waits, "" if it has its slots, [task that is to be woken, its job], …]
-- EVENTS  none
-- INVARIANT a limit has no more slots than that; a job has all of its slots or none; those that wait get them in their order

return function(job, holder, task, lease_ms, limits)
  local reply = { '' }
  reply[1] = Slots.take(job, limits, holder, task, lease_ms, reply) or ''
  return reply
end
