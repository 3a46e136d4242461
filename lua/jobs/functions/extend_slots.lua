-- extend_slots: extend the slots of attempts that run, and give those of attempts that have died to jobs that wait
-- ARGV    lease_ms:int, attempts:rest
--         attempts: for each its job and its holder
-- RETURNS [[for each attempt 1, or 0 if it has lost a slot], [task that is to be woken, its job], …]
-- EVENTS  none
-- INVARIANT a slot that another job has taken is not extended

return function(lease_ms, attempts)
  local extended = {}
  for n = 1, #attempts, 2 do
    extended[#extended + 1] = Slots.extend(attempts[n], attempts[n + 1], lease_ms) and 1 or 0
  end
  local reply = { extended }
  Slots.serve_some(lease_ms, reply)
  return reply
end
