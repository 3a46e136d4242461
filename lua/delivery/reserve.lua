-- reserve: hand out a history key before there is a delivery
-- ARGV    suffix, tenant, ttl_ms:int
-- RETURNS 1, or 0 if the key is taken
-- EVENTS  none

if redis.call('EXISTS', history_key(suffix)) == 1 then return 0 end
local owner = redis.call('GET', reserved_key(suffix))
if owner and owner ~= tenant then return 0 end
redis.call('SET', reserved_key(suffix), tenant, 'PX', ttl_ms)
return 1
