-- reserve: reserve a history key for a delivery that does not exist yet
-- ARGV    suffix, tenant, ttl_ms:int
-- RETURNS 1, or 0 if the key is used or reserved by another tenant
-- EVENTS  none

if redis.call('EXISTS', history_key(suffix)) == 1 then return 0 end
local owner = redis.call('GET', reserved_key(suffix))
if owner and owner ~= tenant then return 0 end
redis.call('SET', reserved_key(suffix), tenant, 'PX', ttl_ms)
return 1
