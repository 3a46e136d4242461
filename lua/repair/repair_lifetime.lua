-- repair_lifetime: give a key the end it must have
-- ARGV    name, ttl_ms:int
--         ttl_ms: for a key that has no end; 0 takes the end away
-- USES    repair
-- RETURNS what was done, a line each; none if it was in order
-- EVENTS  none
-- INVARIANT I16

local left = redis.call('PTTL', name)
if ttl_ms == 0 and left >= 0 then
  redis.call('PERSIST', name)
  note('given no end')
elseif ttl_ms > 0 and left == -1 then
  redis.call('PEXPIRE', name, ttl_ms)
  note('given an end')
end
return did
