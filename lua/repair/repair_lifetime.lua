-- repair_lifetime: sets or removes the TTL of a key
-- ARGV    name, ttl_ms:int
--         ttl_ms: the TTL for a key without one; 0 removes the TTL
-- USES    repair
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  none
-- INVARIANT I16

local left = redis.call('PTTL', name)
if ttl_ms == 0 and left >= 0 then
  redis.call('PERSIST', name)
  note('TTL removed')
elseif ttl_ms > 0 and left == -1 then
  redis.call('PEXPIRE', name, ttl_ms)
  note('TTL set')
end
return changes
