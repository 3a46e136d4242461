-- remember_step: keep what a step has made outside its run, unless the same step has made something before
-- ARGV    tenant, step, result, kept_ms:int
-- RETURNS the result that was kept first
-- EVENTS  none

local known = redis.call('GET', stepresult_key(tenant, step))
if known then return known end
redis.call('SET', stepresult_key(tenant, step), result, 'PX', kept_ms)
return result
