-- repair_lifetime: sets or removes the TTL of a key
-- ARGV    name, ttl_ms:int
--         ttl_ms: the TTL for a key without one; 0 removes the TTL
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  none
-- INVARIANT I16

return function(name, ttl_ms)
  local left = redis_call('PTTL', name)
  if ttl_ms == 0 and left >= 0 then
    redis_call('PERSIST', name)
    Repair.note('TTL removed')
  elseif ttl_ms > 0 and left == -1 then
    redis_call('PEXPIRE', name, ttl_ms)
    Repair.note('TTL set')
  end
  return Repair.changes
end
