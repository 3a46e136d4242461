-- repair_recount: writes the counters of a delivery from a recount of its outcomes, if it has not changed since
-- ARGV    suffix, version, counts:json, reached:json
--         counts: field → number; reached: numbers of the recipients reached
-- RETURNS one line for each change; none if the delivery changed since
-- EVENTS  none
-- INVARIANT I13

return function(suffix, version, counts, reached)
  local history = Key.history(suffix)
  if redis_call('HGET', history, 'version') ~= version then return Repair.changes end
  for name, number in pairs(counts) do redis_call('HSET', history, name, number) end
  local left = redis_call('PTTL', Key.reached(suffix))
  redis_call('DEL', Key.reached(suffix))
  for _, number in ipairs(reached) do redis_call('SETBIT', Key.reached(suffix), number, 1) end
  if left < 0 then left = redis_call('PTTL', history) end
  if left > 0 then redis_call('PEXPIRE', Key.reached(suffix), left) end
  Repair.note('recounted')
  return Repair.changes
end
